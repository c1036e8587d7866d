#include "scheduler/live/ranked_order.h"

#include <algorithm>

#include "coflow/check.h"

namespace weir::scheduler {
namespace {

constexpr std::uint64_t kStep = std::uint64_t{1} << 44;
constexpr std::uint64_t kFirst = std::uint64_t{1} << 62;  ///< Room in front: new coflows are often the smallest.
constexpr std::uint64_t kNarrow = std::uint64_t{1} << 10;
constexpr std::uint64_t kEnd = std::uint64_t{1} << 63;

/// A label between two others, as far from both as helps; 0 if there is none.
std::uint64_t Between(std::uint64_t low, std::uint64_t high) {
  if (high == kEnd && kEnd - low > kStep) {
    return low + kStep;
  }
  if (low == 0 && high > kStep) {
    return high - kStep;
  }
  return high - low > 1 ? low + (high - low) / 2 : 0;
}

}  // namespace

RankedOrder::RankedOrder(const LiveFabric& fabric)
    : fabric_(fabric),
      key_(fabric.limits.coflows, 0),
      label_(fabric.limits.coflows, 0),
      changed_(fabric.limits.coflows, 0) {
  order_.reserve(fabric.limits.coflows);
  positions_.reserve(fabric.limits.coflows);
}

bool RankedOrder::Before(CoflowSlot a, CoflowSlot b) const {
  if (key_[a] != key_[b]) {
    return key_[a] < key_[b];
  }
  if (fabric_.arrival[a] != fabric_.arrival[b]) {
    return fabric_.arrival[a] < fabric_.arrival[b];
  }
  return fabric_.id[a] != fabric_.id[b] ? fabric_.id[a] < fabric_.id[b] : a < b;
}

std::size_t RankedOrder::PositionOf(CoflowSlot slot) const {
  const auto at = std::ranges::lower_bound(order_, label_[slot], {}, [&](CoflowSlot s) { return label_[s]; });
  WEIR_CHECK(at != order_.end() && *at == slot);
  return static_cast<std::size_t>(at - order_.begin());
}

bool RankedOrder::Insert(CoflowSlot slot) {
  const auto at = std::ranges::lower_bound(order_, slot, [&](CoflowSlot a, CoflowSlot b) { return Before(a, b); });
  const std::uint64_t low = at == order_.begin() ? 0 : label_[*(at - 1)];
  const std::uint64_t high = at == order_.end() ? kEnd : label_[*at];
  label_[slot] = Between(low, high);
  order_.insert(at, slot);
  wants_labels_ |= high - low < kNarrow;
  if (label_[slot] == 0) {
    Relabel();
    return false;
  }
  return true;
}

void RankedOrder::Take(CoflowSlot slot) {
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(PositionOf(slot)));
}

void RankedOrder::FindPositions(std::span<const CoflowSlot> changed) {
  positions_.clear();
  // A search costs as much as looking at some dozens of neighbours.
  if (changed.size() * 64 < order_.size()) {
    for (const CoflowSlot slot : changed) {
      positions_.push_back(static_cast<std::uint32_t>(PositionOf(slot)));
    }
    std::sort(positions_.begin(), positions_.end());
    return;
  }
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    if (changed_[order_[i]] != 0) {
      positions_.push_back(i);
    }
  }
}

/// Between who was kept in front of it and the next whose key did not change: those never need to make room.
bool RankedOrder::Fits(std::size_t position, const CoflowSlot* previous) const {
  const CoflowSlot slot = order_[position];
  if (previous != nullptr && !Before(*previous, slot)) {
    return false;
  }
  const auto next = std::find_if(order_.begin() + static_cast<std::ptrdiff_t>(position), order_.end(),
                                 [&](CoflowSlot s) { return changed_[s] == 0; });
  return next == order_.end() || Before(slot, *next);
}

void RankedOrder::TakeMisfits(std::vector<CoflowSlot>* changed, std::vector<CoflowSlot>* taken) {
  if (changed->empty()) {
    return;
  }
  for (const CoflowSlot slot : *changed) {
    changed_[slot] = 1;
  }
  FindPositions(*changed);
  // Closes the holes on the way: `out` is where the next that stays goes.
  std::size_t out = positions_.front();
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    const std::size_t position = positions_[i];
    const CoflowSlot slot = order_[position];
    if (Fits(position, out > 0 ? &order_[out - 1] : nullptr)) {
      order_[out++] = slot;
    } else {
      taken->push_back(slot);
    }
    const std::size_t next = i + 1 < positions_.size() ? positions_[i + 1] : order_.size();
    if (out != position + 1) {
      std::copy(order_.begin() + static_cast<std::ptrdiff_t>(position + 1),
                order_.begin() + static_cast<std::ptrdiff_t>(next), order_.begin() + static_cast<std::ptrdiff_t>(out));
    }
    out += next - position - 1;
  }
  order_.resize(out);
  for (const CoflowSlot slot : *changed) {
    changed_[slot] = 0;
  }
}

void RankedOrder::Rebuild() {
  order_.clear();
  for (CoflowSlot slot = 0; slot < fabric_.live.size(); ++slot) {
    if (fabric_.live[slot] != 0) {
      order_.push_back(slot);
    }
  }
  std::sort(order_.begin(), order_.end(), [&](CoflowSlot a, CoflowSlot b) { return Before(a, b); });
  Relabel();
}

void RankedOrder::Relabel() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    label_[order_[i]] = kFirst + i * kStep;
  }
  wants_labels_ = false;
}

}  // namespace weir::scheduler
