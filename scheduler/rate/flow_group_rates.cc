// The part of FlowGroup that sets rates: proportional ones, and the steps of progressive filling.
#include <algorithm>

#include "scheduler/rate/flow_group.h"

namespace weir::scheduler {

void FlowGroup::SetProportional(double per_tick) {
  proportional_ = per_tick;
  idle_ = per_tick <= 0 && idle_;
  end_stale_ = true;
  for (std::size_t local = 0; local < links_.size(); ++local) {
    use_[local] = per_tick * load_[local];
  }
}

void FlowGroup::BeginFilling() {
  old_level_ = level_;
  growing_ = count_;
  growing_total_ = live_;
  std::fill(level_.begin(), level_.end(), 0);
  std::fill(settled_level_.begin(), settled_level_.end(), 0);
  for (std::size_t local = 0; local < links_.size(); ++local) {
    use_[local] = proportional_ * load_[local];
  }
  moved_ = 0;
  idle_ = proportional_ <= 0;
  end_stale_ = true;
}

// A flow grows as long as no link of its path is settled. So the flows to stop are those of the links that are full now
// and, seen from the other side, the flows that go on are all in the lists of owners that are not settled. Whichever
// are fewer are looked at.
void FlowGroup::FreezeFull(double rate, double weight, FillingLinks* links) {
  idle_ = idle_ && rate <= 0;
  hits_.clear();
  std::size_t stopping = 0;
  for (std::uint32_t local = 0; local < links_.size(); ++local) {
    if (growing_[local] > 0 && links->filled[links_[local]] != 0) {
      hits_.push_back(local);
      stopping += growing_[local];
    }
  }
  if (hits_.empty()) {
    return;
  }
  before_ = growing_;
  std::size_t listed = 0;
  for (std::size_t o = 0; o < head_.size(); ++o) {
    listed += settled_level_[o] == 0 ? owned_[o] : 0;
  }
  for (const std::uint32_t local : hits_) {
    level_[local] = rate;
    listed -= owned_[local];
  }
  if (stopping < listed) {
    StopFlowsOfHits();
  } else {
    KeepFlowsOfOthers();
  }
  for (std::size_t local = 0; local < links_.size(); ++local) {
    const std::uint32_t stopped = before_[local] - growing_[local];
    if (stopped > 0) {
      const std::uint32_t link = links_[local];
      links->room[link] -= rate * stopped;
      links->weight[link] -= weight * stopped;
      links->flows[link] -= stopped;
      use_[local] += rate * stopped;
    }
  }
}

void FlowGroup::StopFlowsOfHits() {
  for (const std::uint32_t local : hits_) {
    for (const std::uint32_t f : FlowsOf(local)) {
      const auto path = PathOf(f);
      if (std::any_of(path.begin(), path.end(), [this](std::uint32_t hop) { return settled_level_[hop] != 0; })) {
        continue;
      }
      for (const std::uint32_t hop : path) {
        --growing_[hop];
      }
      --growing_total_;
      Move(f, local);
    }
    settled_level_[local] = 1;
  }
}

void FlowGroup::KeepFlowsOfOthers() {
  for (const std::uint32_t local : hits_) {
    settled_level_[local] = 1;
  }
  std::fill(growing_.begin(), growing_.end(), 0);
  growing_total_ = 0;
  for (std::size_t o = 0; o < head_.size(); ++o) {
    if (settled_level_[o] != 0) {
      continue;
    }
    for (std::uint32_t f = head_[o]; f != kNobody;) {
      const std::uint32_t next = next_[f];
      const auto path = PathOf(f);
      const auto hit =
          std::find_if(path.begin(), path.end(), [this](std::uint32_t hop) { return settled_level_[hop] != 0; });
      if (hit != path.end()) {
        Move(f, *hit);
      } else {
        for (const std::uint32_t hop : path) {
          ++growing_[hop];
        }
        ++growing_total_;
      }
      f = next;
    }
  }
}

std::size_t FlowGroup::EndFilling() {
  changed_ = false;
  std::size_t other = 0;
  for (std::size_t o = 0; o < head_.size(); ++o) {
    other += level_[o] != old_level_[o] ? owned_[o] : 0;
  }
  return std::max(other, moved_);
}

void FlowGroup::Disown() {
  const auto none = static_cast<std::uint32_t>(links_.size());
  for (std::uint32_t o = 0; o < none; ++o) {
    while (head_[o] != kNobody) {
      Move(head_[o], none);
    }
  }
}

bool FlowGroup::KeepRates(std::span<double> room) const {
  if (changed_ || room_seen_.size() != links_.size()) {
    return false;
  }
  for (std::size_t local = 0; local < links_.size(); ++local) {
    if (room_seen_[local] != room[links_[local]]) {
      return false;
    }
  }
  for (std::size_t local = 0; local < links_.size(); ++local) {
    room[links_[local]] = room_left_[local];
  }
  return true;
}

void FlowGroup::NoteRoom(std::span<const double> before) {
  room_seen_.clear();
  for (std::size_t local = 0; !before.empty() && local < links_.size(); ++local) {
    room_seen_.push_back(before[links_[local]]);
  }
}

void FlowGroup::NoteRoomLeft(std::span<const double> after) {
  room_left_.clear();
  for (const std::uint32_t link : links_) {
    room_left_.push_back(after[link]);
  }
}

void FlowGroup::Serve(std::size_t f, std::size_t local, double rate) {
  Move(f, static_cast<std::uint32_t>(local));
  level_[local] = rate;
  idle_ = false;
  for (const std::uint32_t hop : PathOf(f)) {
    use_[hop] += rate;
  }
}

}  // namespace weir::scheduler
