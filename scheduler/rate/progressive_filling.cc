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
constexpr std::uint32_t kNoEntry = UINT32_MAX;

}  // namespace

void ProgressiveFilling::Open(std::span<const double> capacity) {
  links_.room.assign(capacity.begin(), capacity.end());
  links_.weight.assign(capacity.size(), 0);
  links_.flows.assign(capacity.size(), 0);
  first_entry_.assign(capacity.size(), kNoEntry);
  full_below_.resize(capacity.size());
  for (std::size_t link = 0; link < capacity.size(); ++link) {
    full_below_[link] = capacity[link] * kRoomSlack;
  }
}

void ProgressiveFilling::EnterLink(std::uint32_t link, std::uint32_t flows, double weight) {
  if (links_.flows[link] == 0) {
    touched_.push_back(link);
    links_.weight[link] = 0;
    first_entry_[link] = kNoEntry;
    if (links_.room[link] < full_below_[link]) {
      links_.room[link] = 0;
    }
  }
  links_.flows[link] += flows;
  links_.weight[link] += weight * flows;
}

void ProgressiveFilling::Enter(std::size_t place, const RankedGroup& ranked) {
  FlowGroup& group = *ranked.group;
  group.BeginPathFilling();
  for (const std::uint32_t local : group.growing_links()) {
    const std::uint32_t link = group.links()[local];
    EnterLink(link, group.Growing(local), ranked.weight);
    entries_.push_back({static_cast<std::uint32_t>(place), local, first_entry_[link]});
    first_entry_[link] = static_cast<std::uint32_t>(entries_.size() - 1);
  }
}

/// Forgets links on which nothing grows any more.
double ProgressiveFilling::LowestShare() {
  double lowest = kInfinity;
  std::size_t kept = 0;
  for (const std::uint32_t link : touched_) {
    if (links_.flows[link] > 0) {
      const double share = std::max(0.0, links_.room[link]) / links_.weight[link];
      lowest = std::min(lowest, share);
      share_[kept] = share;
      touched_[kept++] = link;
    }
  }
  touched_.resize(kept);
  return lowest;
}

void ProgressiveFilling::MarkFull(double share) {
  marked_.clear();
  const double most = share * (1 + kShareSlack);
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    if (share_[i] <= most) {
      marked_.push_back(touched_[i]);
    }
  }
}

/// Sorts the full links by the groups that have growing flows there.
void ProgressiveFilling::CollectFull() {
  concerned_.clear();
  for (const std::uint32_t link : marked_) {
    for (std::uint32_t entry = first_entry_[link]; entry != kNoEntry; entry = entries_[entry].next) {
      const std::uint32_t place = entries_[entry].place;
      if (full_of_[place].empty()) {
        concerned_.push_back(place);
      }
      full_of_[place].push_back(entries_[entry].local);
    }
  }
  std::sort(concerned_.begin(), concerned_.end());
}

std::size_t ProgressiveFilling::Fill(std::span<const RankedGroup> groups) {
  if (groups.size() == 1 && !groups.front().group->has_inner_links()) {
    ports_.Fill(groups.front().group, links_.room, full_below_);
  } else {
    FillPaths(groups);
  }
  std::size_t changed = 0;
  for (const RankedGroup& ranked : groups) {
    changed += ranked.group->EndFilling();
    ranked.group->NoteRoom({});
  }
  return changed;
}

void ProgressiveFilling::FillPaths(std::span<const RankedGroup> groups) {
  touched_.clear();
  entries_.clear();
  full_of_.resize(std::max(full_of_.size(), groups.size()));
  for (std::size_t place = 0; place < groups.size(); ++place) {
    Enter(place, groups[place]);
  }
  share_.resize(touched_.size());
  for (double share = LowestShare(); share < kInfinity; share = LowestShare()) {
    MarkFull(share);
    CollectFull();
    for (const std::uint32_t place : concerned_) {
      const RankedGroup& ranked = groups[place];
      ranked.group->Freeze(full_of_[place], share * ranked.weight, ranked.weight, &links_);
      full_of_[place].clear();
    }
    for (const std::uint32_t link : marked_) {
      links_.room[link] = 0;
    }
  }
}

std::size_t ProgressiveFilling::FillShared(std::span<const RankedGroup> groups, SharedFilling* last) {
  return last->Fill(groups, links_.room, full_below_);
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
