// The order's part of LiveScheduler: coflows whose keys changed are carried where they belong, on every link they
// cross.
#include <algorithm>

#include "scheduler/live/scheduler.h"

namespace weir::scheduler {
namespace {

/// So many moves, or this share of the coflows, cost as much as computing everything anew.
constexpr std::uint32_t kManyMoves = 64;
constexpr std::uint32_t kManyMovesShare = 32;
/// Passing so few coflows, it is worth to look whether one of them is met on a link at all.
constexpr std::size_t kFewPassed = 8;

}  // namespace

void LiveScheduler::Mark(CoflowSlot slot) {
  if (marked_[slot] == 0) {
    marked_[slot] = 1;
    marks_.push_back(slot);
  }
}

/// False if the rest is not worth it, or not possible, and everything has to be computed anew.
bool LiveScheduler::RepairOrder() {
  SortMarks();
  moves_ = 0;
  return CarryAfterFall() && CarryAfterRise();
}

void LiveScheduler::SortMarks() {
  falling_.clear();
  rising_.clear();
  for (const CoflowSlot slot : marks_) {
    marked_[slot] = 0;
    if (place_[slot] == Place::kPlaced) {
      new_key_[slot] = FindKey(slot);
      if (new_key_[slot] != order_.key(slot)) {
        (new_key_[slot] < order_.key(slot) ? falling_ : rising_).push_back(slot);
      }
    }
  }
  marks_.clear();
}

/// From the front: everybody in front of the next one is in order, because whose key stayed is still behind all who
/// were in front of it.
bool LiveScheduler::CarryAfterFall() {
  for (const CoflowSlot slot : falling_) {
    order_.SetKey(slot, new_key_[slot]);
  }
  for (const std::size_t position : order_.PositionsOf(falling_)) {
    if (!Carry(position, order_.PlaceAfterFall(position))) {
      return false;
    }
  }
  return true;
}

/// The same from the back.
bool LiveScheduler::CarryAfterRise() {
  for (const CoflowSlot slot : rising_) {
    order_.SetKey(slot, new_key_[slot]);
  }
  const auto positions = order_.PositionsOf(rising_);
  for (std::size_t i = positions.size(); i-- > 0;) {
    if (!Carry(positions[i], order_.PlaceAfterRise(positions[i]))) {
      return false;
    }
  }
  return true;
}

bool LiveScheduler::Carry(std::size_t from, std::size_t to) {
  if (from == to) {
    return true;
  }
  const CoflowSlot slot = order_.order()[from];
  const std::uint64_t label = order_.LabelFor(from, to);
  if (label == 0) {
    return false;
  }
  const bool alone = MeetsNobody(slot, from, to);
  bool concerned = false;
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    concerned |= CarryOnLink(row, slot, label, alone);
  }
  order_.Carry(from, to, label);
  if (concerned) {
    sweep_.Force(slot);
  }
  moves_ += alone ? 0 : 1;
  return moves_ <= kManyMoves + fabric_.coflow_count / kManyMovesShare;
}

/// Whether none of the few that it passes crosses a link of its own. Says no if they are many.
bool LiveScheduler::MeetsNobody(CoflowSlot slot, std::size_t from, std::size_t to) {
  const auto passed = to < from ? order_.order().subspan(to, from - to) : order_.order().subspan(from + 1, to - from);
  if (passed.size() > kFewPassed) {
    return false;
  }
  ++move_;
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    crossed_[row.link] = move_;
  }
  return std::ranges::none_of(passed, [&](CoflowSlot other) {
    return std::ranges::any_of(fabric_.Rows(other),
                               [&](const LiveFabric::Row& row) { return crossed_[row.link] == move_; });
  });
}

/// True if it passes somebody who uses this link, or did, or who could not because of it, and may have another share
/// there. What it uses is then given up. Else it stands where it stood, under another label: who has room on a link and
/// does not use it is kept from it by others.
bool LiveScheduler::CarryOnLink(const LiveFabric::Row& row, CoflowSlot slot, std::uint64_t label, bool alone) {
  if (row.flows == 0) {
    return false;
  }
  const std::uint64_t old_label = order_.label(slot);
  const std::uint64_t full_from = queues_.full_from(row.link);
  const auto [front, back] = std::minmax(label, old_label);
  queues_.Carry(row.link, slot, row.flows, label, alone);
  if (full_from < front) {
    return false;
  }
  const bool lets_through = full_from == old_label && label > old_label;
  if ((!alone && (lets_through || queues_.IsUsedBetween(row.link, slot, front, back))) ||
      sweep_.WasUsedBetween(row.link, front, back)) {
    GiveUp(row.link, slot);
    return true;
  }
  if (full_from == old_label) {
    queues_.SetFullFrom(row.link, label);
  }
  return false;
}

/// Takes the coflow off the links, with what it uses there.
void LiveScheduler::Unplace(CoflowSlot slot) {
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    GiveUp(row.link, slot);
  }
  queues_.Erase(slot);
}

/// The coflow, which stands in the order, has no more flows on the link.
void LiveScheduler::GiveUp(LinkIndex link, CoflowSlot slot) {
  if (queues_.full_from(link) >= order_.label(slot) && queues_.UseOf(link, slot).has_value()) {
    sweep_.Touch(link);
    sweep_.Seed(link, order_.label(slot));
    queues_.SetUse(link, slot, std::nullopt);
  }
}

}  // namespace weir::scheduler
