#include "scheduler/rate/progressive_filling.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Room below this share of a link's capacity is a rounding error.
constexpr double kRoomSlack = 1e-9;
/// Links whose shares are that close, relative to each other, are full at once.
constexpr double kShareSlack = 1e-10;

}  // namespace

void ProgressiveFilling::Open(std::span<const double> capacity) {
  links_.room.assign(capacity.begin(), capacity.end());
  links_.weight.assign(capacity.size(), 0);
  links_.flows.assign(capacity.size(), 0);
  links_.filled.assign(capacity.size(), 0);
  full_below_.resize(capacity.size());
  for (std::size_t link = 0; link < capacity.size(); ++link) {
    full_below_[link] = capacity[link] * kRoomSlack;
  }
}

void ProgressiveFilling::Enter(const RankedGroup& ranked) {
  FlowGroup& group = *ranked.group;
  group.BeginFilling();
  const auto links = group.links();
  for (std::size_t local = 0; local < links.size(); ++local) {
    const std::uint32_t flows = group.Growing(local);
    if (flows == 0) {
      continue;
    }
    const std::uint32_t link = links[local];
    if (links_.flows[link] == 0) {
      touched_.push_back(link);
      links_.weight[link] = 0;
      if (links_.room[link] < full_below_[link]) {
        links_.room[link] = 0;
      }
    }
    links_.flows[link] += flows;
    links_.weight[link] += ranked.weight * flows;
  }
}

double ProgressiveFilling::LowestShare() {
  double lowest = kInfinity;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const std::uint32_t link = touched_[i];
    share_[i] = links_.flows[link] == 0 ? kInfinity : std::max(0.0, links_.room[link]) / links_.weight[link];
    lowest = std::min(lowest, share_[i]);
  }
  return lowest;
}

void ProgressiveFilling::MarkFull(double share) {
  marked_.clear();
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (share_[i] <= share * (1 + kShareSlack)) {
      marked_.push_back(touched_[i]);
      links_.filled[touched_[i]] = 1;
    }
  }
}

std::size_t ProgressiveFilling::Fill(std::span<const RankedGroup> groups) {
  touched_.clear();
  for (const RankedGroup& ranked : groups) {
    Enter(ranked);
  }
  share_.resize(touched_.size());
  for (double share = LowestShare(); share < kInfinity; share = LowestShare()) {
    MarkFull(share);
    for (const RankedGroup& ranked : groups) {
      if (ranked.group->growing() > 0) {
        ranked.group->FreezeFull(share * ranked.weight, ranked.weight, &links_);
      }
    }
    for (const std::uint32_t link : marked_) {
      links_.filled[link] = 0;
      links_.room[link] = 0;
    }
  }
  std::size_t changed = 0;
  for (const RankedGroup& ranked : groups) {
    changed += ranked.group->EndFilling();
    ranked.group->NoteRoom({});
  }
  return changed;
}

std::size_t ProgressiveFilling::FillIfChanged(const RankedGroup& ranked) {
  FlowGroup* group = ranked.group;
  if (group->KeepRates(links_.room)) {
    return 0;
  }
  before_.assign(links_.room.begin(), links_.room.end());
  const std::size_t changed = Fill({&ranked, 1});
  group->NoteRoom(before_);
  group->NoteRoomLeft(links_.room);
  return changed;
}

}  // namespace weir::scheduler
