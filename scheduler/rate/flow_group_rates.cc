// The part of FlowGroup that sets rates: proportional ones, and the steps of progressive filling.
#include <algorithm>
#include <utility>

#include "scheduler/rate/flow_group.h"

namespace weir::scheduler {

void FlowGroup::SetProportional(double per_tick) {
  RefreshSums();
  proportional_ = per_tick;
  idle_ = per_tick <= 0 && idle_;
  ends_stale_ = true;
  asked_bytes_ = -1;
  rate_ = per_tick * left_;
  for (std::size_t local = 0; local < links_.size(); ++local) {
    use_[local] = per_tick * load_[local];
  }
}

void FlowGroup::BeginFilling() {
  RefreshSums();
  filled_by_ = nullptr;
  old_level_ = level_;
  std::fill(level_.begin(), level_.end(), 0);
  open_up_.assign(live_of_down_.words(), ~std::uint64_t{0});
  open_down_.assign(live_pairs_.words(), ~std::uint64_t{0});
  for (std::size_t local = 0; local < links_.size(); ++local) {
    use_[local] = proportional_ * load_[local];
  }
  moved_ = 0;
  idle_ = proportional_ <= 0;
  ends_stale_ = true;
  asked_bytes_ = -1;
}

void FlowGroup::BeginSharedFilling(const void* by) {
  sums_known_ = false;
  old_level_ = level_;
  std::fill(level_.begin(), level_.end(), 0);
  open_up_.assign(live_of_down_.words(), ~std::uint64_t{0});
  open_down_.assign(live_pairs_.words(), ~std::uint64_t{0});
  moved_ = 0;
  idle_ = true;
  ends_stale_ = true;
  asked_bytes_ = -1;
  filled_by_ = by;
  ended_pairs_.clear();
}

void FlowGroup::ResumeFilling() {
  sums_known_ = false;
  old_level_ = level_;
  moved_ = 0;
  ends_stale_ = true;
  asked_bytes_ = -1;
  ended_pairs_.clear();
}

void FlowGroup::ReopenPort(std::uint32_t local) {
  const bool up = local < uplinks_;
  const std::size_t row = up ? local : local - uplinks_;
  level_[local] = 0;
  (up ? open_up_ : open_down_)[row / 64] |= std::uint64_t{1} << (row % 64);
}

void FlowGroup::BeginPathFilling() {
  BeginFilling();
  growing_ = count_;
  stopped_.ClearAll();
  stopped_of_down_.ClearAll();
  growing_links_.clear();
  for (std::uint32_t local = 0; local < links_.size(); ++local) {
    if (growing_[local] > 0) {
      growing_links_.push_back(local);
    }
  }
}

// A flow grows as long as neither of its ports is settled and no inner link has stopped it. So the growing flows of an
// uplink are its live ones in the columns of the open downlinks, whole words at a time.
void FlowGroup::Freeze(std::span<const std::uint32_t> full, double rate, double weight, FillingLinks* links) {
  idle_ = idle_ && rate <= 0;
  for (const std::uint32_t local : full) {
    level_[local] = rate;
    if (local < downlinks_end_) {
      StopFlowsOfPort(local);
    } else {
      StopFlowsOfInner(local);
    }
  }
  for (const std::uint32_t local : stopping_links_) {
    TakeStopped(local, std::exchange(stopping_[local], 0), rate, weight, links);
  }
  stopping_links_.clear();
}

void FlowGroup::TakeStopped(std::uint32_t local, std::uint32_t stopped, double rate, double weight,
                            FillingLinks* links) {
  const std::uint32_t link = links_[local];
  links->room[link] -= rate * stopped;
  links->weight[link] -= weight * stopped;
  links->flows[link] -= stopped;
  use_[local] += rate * stopped;
  growing_[local] -= stopped;
}

/// Closes a port; its growing flows belong to it from now on.
void FlowGroup::StopFlowsOfPort(std::uint32_t local) {
  const bool up = local < uplinks_;
  const auto row = static_cast<std::uint32_t>(up ? local : local - uplinks_);
  const std::uint64_t* live = up ? live_pairs_.Row(row) : live_of_down_.Row(row);
  const std::uint64_t* stopped = !has_inner_links() ? nullptr : up ? stopped_.Row(row) : stopped_of_down_.Row(row);
  const std::vector<std::uint64_t>& open = up ? open_down_ : open_up_;
  for (std::size_t word = 0; word < open.size(); ++word) {
    const std::uint64_t growing = live[word] & open[word] & (stopped == nullptr ? ~std::uint64_t{0} : ~stopped[word]);
    ForBits(growing, static_cast<std::uint32_t>(word * 64), [&](std::uint32_t column) {
      const std::uint32_t from = up ? row : column;
      const std::uint32_t to = up ? column : row;
      CountStopped(from, to);
      Move(FlowOf(from, to), local);
    });
  }
  (up ? open_up_ : open_down_)[row / 64] &= ~(std::uint64_t{1} << (row % 64));
}

void FlowGroup::CountStopped(std::uint32_t up, std::uint32_t down) {
  const auto note = [this](std::size_t local) {
    if (stopping_[local]++ == 0) {
      stopping_links_.push_back(static_cast<std::uint32_t>(local));
    }
  };
  note(up);
  note(uplinks_ + down);
  if (has_inner_links()) {
    const auto path = PathOf(FlowOf(up, down));
    for (const std::uint32_t inner : path.subspan(1, path.size() - 2)) {
      note(inner);
    }
  }
}

void FlowGroup::StopFlowsOfInner(std::uint32_t local) {
  for (const std::uint32_t f : FlowsOf(local)) {
    const std::uint32_t up = PathOf(f).front();
    const auto down = static_cast<std::uint32_t>(PathOf(f).back() - uplinks_);
    const bool open = (open_up_[up / 64] >> (up % 64) & open_down_[down / 64] >> (down % 64) & 1) != 0;
    if (!open || stopped_.IsSet(up, down)) {
      continue;
    }
    stopped_.Set(up, down);
    stopped_of_down_.Set(down, up);
    CountStopped(up, down);
    Move(f, local);
  }
}

std::size_t FlowGroup::EndFilling() {
  changed_ = false;
  std::size_t other = 0;
  double above = 0;
  for (std::size_t o = 0; o < owned_.size(); ++o) {
    if (owned_[o] > 0) {
      other += level_[o] != old_level_[o] ? owned_[o] : 0;
      above += level_[o] * owned_[o];
    }
  }
  rate_ = proportional_ * left_ + above;
  return std::max(other, moved_);
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
  room_seen_.resize(before.empty() ? 0 : links_.size());
  for (std::size_t local = 0; local < room_seen_.size(); ++local) {
    room_seen_[local] = before[links_[local]];
  }
}

void FlowGroup::NoteRoomLeft(std::span<const double> after) {
  room_left_.resize(links_.size());
  for (std::size_t local = 0; local < links_.size(); ++local) {
    room_left_[local] = after[links_[local]];
  }
}

void FlowGroup::Serve(std::size_t f, std::span<const std::uint32_t> path, std::size_t local, double rate) {
  Move(f, static_cast<std::uint32_t>(local));
  level_[local] = rate;
  idle_ = false;
  for (const std::uint32_t hop : path) {
    use_[hop] += rate;
  }
}

}  // namespace weir::scheduler
