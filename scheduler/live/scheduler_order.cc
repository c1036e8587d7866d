// The order's part of LiveScheduler: coflows whose keys changed are carried where they belong, on every link they
// cross.
#include <algorithm>

#include "scheduler/live/scheduler.h"

namespace weir::scheduler {
namespace {

/// So many moves, or this share of the coflows, cost as much as computing everything anew.
constexpr std::uint32_t kManyMoves = 64;
constexpr std::uint32_t kManyMovesShare = 32;
/// Passing so few coflows, it is worth to look on which links one of them is met.
constexpr std::size_t kFewPassed = 8;

}  // namespace

/// Before what makes its key changes. Until the next Update it stands in the order with the key that it has now.
void LiveScheduler::Mark(CoflowSlot slot) {
  if (marked_[slot] == 0) {
    marked_[slot] = 1;
    marks_.push_back(slot);
    if (place_[slot] == Place::kPlaced) {
      keys_.Freeze(slot);
    }
  }
}

/// False if the rest is not worth it, or not possible, and everything has to be computed anew.
bool LiveScheduler::RepairOrder() {
  moves_ = 0;
  if (keys_.AnyFalls() && ordered_at_ < fabric_.now) {
    FindOvertakers();
    if (!CarryOvertakers()) {
      return false;
    }
    ordered_at_ = fabric_.now;
  }
  SortMarks();
  return CarryAfterFall() && CarryAfterRise();
}

/// Of those whose keys fell while they moved. Keys of all others are what they were.
void LiveScheduler::FindOvertakers() {
  overtakers_.clear();
  for (const CoflowSlot slot : allocation_.served()) {
    if (keys_.MayHaveFallen(slot) && HasOvertaken(slot)) {
      overtakers_.push_back(slot);
    }
  }
  for (const CoflowSlot slot : marks_) {
    if (place_[slot] == Place::kPlaced && HasOvertaken(slot)) {
      overtakers_.push_back(slot);
    }
  }
  std::ranges::sort(overtakers_, {}, [&](CoflowSlot slot) { return order_.label(slot); });
}

bool LiveScheduler::HasOvertaken(CoflowSlot slot) {
  const CoflowSlot front = order_.InFrontOf(slot);
  return front != LiveFabric::kNobody && keys_.Before(slot, front);
}

/// From the front: who is no overtaker is behind the one in front, until that one moves away.
bool LiveScheduler::CarryOvertakers() {
  for (const CoflowSlot slot : overtakers_) {
    for (std::size_t at = order_.PositionOf(slot); at < order_.order().size(); ++at) {
      const std::size_t to = order_.PlaceAfterFall(at);
      if (to == at) {
        break;
      }
      if (!Carry(at, to)) {
        return false;
      }
    }
  }
  return true;
}

void LiveScheduler::SortMarks() {
  falling_.clear();
  rising_.clear();
  for (const CoflowSlot slot : marks_) {
    marked_[slot] = 0;
    if (place_[slot] == Place::kPlaced) {
      const double old_key = keys_.key(slot);
      new_key_[slot] = keys_.Find(slot);
      if (new_key_[slot] == old_key) {
        keys_.Set(slot, old_key);
      } else {
        (new_key_[slot] < old_key ? falling_ : rising_).push_back(slot);
      }
    }
  }
  marks_.clear();
}

/// From the front: everybody in front of the next one is in order, because whose key stayed is still behind all who
/// were in front of it.
bool LiveScheduler::CarryAfterFall() {
  for (const CoflowSlot slot : falling_) {
    keys_.Set(slot, new_key_[slot]);
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
    keys_.Set(slot, new_key_[slot]);
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
  const bool found = FindMeetings(from, to);
  bool concerned = false;
  bool meets = false;
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    const bool alone = found && crossed_[row.link] != move_;
    concerned |= CarryOnLink(row, slot, label, alone);
    meets |= !alone;
  }
  order_.Carry(from, to, label);
  if (concerned) {
    sweep_.Force(slot);
  }
  moves_ += meets ? 1 : 0;
  return moves_ <= kManyMoves + fabric_.coflow_count / kManyMovesShare;
}

/// On which links somebody is met that is passed. Says no if they are too many to ask each.
bool LiveScheduler::FindMeetings(std::size_t from, std::size_t to) {
  const auto passed = to < from ? order_.order().subspan(to, from - to) : order_.order().subspan(from + 1, to - from);
  if (passed.size() > kFewPassed) {
    return false;
  }
  ++move_;
  for (const CoflowSlot other : passed) {
    for (const LiveFabric::Row& row : fabric_.Rows(other)) {
      crossed_[row.link] = move_;
    }
  }
  return true;
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
