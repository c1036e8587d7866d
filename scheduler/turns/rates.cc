#include "scheduler/turns/rates.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

/// By JobClass: what a class keeps of every link whatever better ones want.
constexpr double kFloors[] = {0, 0.05, 0.01};

}  // namespace

void MaxMinPolicy::Decide(FabricState& state, Nanoseconds /*now*/, Decision& decision) {
  decision.lanes.assign(state.lanes.size(), LaneDecision{});
  decision.next = kNever;
  room_.clear();
  for (const LinkState& link : state.links) room_.push_back(link.rate);
  active_lanes_.assign(state.jobs.size(), 0.0);
  for (const LaneState& lane : state.lanes) active_lanes_[lane.job] += lane.active ? 1 : 0;
  flows_.clear();
  classes_.clear();
  flow_lanes_.clear();
  for (std::uint32_t i = 0; i < state.lanes.size(); ++i) {
    const LaneState& lane = state.lanes[i];
    const JobState& job = state.jobs[lane.job];
    decision.lanes[i].level = QueueLevel(job.job_class);
    decision.lanes[i].rate = PathRate(state, lane);
    if (!lane.active) continue;
    flow_lanes_.push_back(i);
    classes_.push_back(static_cast<std::uint8_t>(job.job_class));
    flows_.push_back({lane.links, job.weight / active_lanes_[lane.job], std::numeric_limits<double>::infinity()});
  }
  shares_.Fill(flows_, classes_, kFloors, room_, rates_);
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    decision.lanes[flow_lanes_[f]].rate = std::max(rates_[f], kAdoptedFloor);
  }
}

void NonePolicy::Decide(FabricState& state, Nanoseconds /*now*/, Decision& decision) {
  decision.lanes.assign(state.lanes.size(), LaneDecision{});
  decision.next = kNever;
}

}  // namespace weir::scheduler
