#include "scheduler/turns/state.h"

#include <algorithm>

namespace weir::scheduler {

BytesPerSecond PathRate(const FabricState& state, const LaneState& lane) {
  BytesPerSecond rate = state.links[lane.links.front()].rate;
  for (const LinkIndex link : lane.links) rate = std::min(rate, state.links[link].rate);
  return rate;
}

double BottleneckShare(const FabricState& state, const JobProfile& profile) {
  if (profile.alone <= 0) return 0;
  double busy = 0;
  for (const JobProfile::Link& use : profile.links) busy = std::max(busy, use.bytes / state.links[use.link].rate);
  return busy / ToSeconds(profile.alone);
}

}  // namespace weir::scheduler
