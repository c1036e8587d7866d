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

RankedOrder::RankedOrder(const LiveFabric& fabric, FallingKeys* keys)
    : fabric_(fabric),
      keys_(*keys),
      label_(fabric.limits.coflows, 0),
      in_front_(fabric.limits.coflows, LiveFabric::kNobody),
      was_at_(fabric.limits.coflows, 0),
      wanted_(fabric.limits.coflows, 0) {
  order_.reserve(fabric.limits.coflows);
  positions_.reserve(fabric.limits.coflows);
  ranked_.reserve(fabric.limits.coflows);
}

/// Steps that double, from where it was when it was last looked for: others have moved it little since.
std::size_t RankedOrder::PositionOf(CoflowSlot slot) {
  const std::uint64_t label = label_[slot];
  const auto label_at = [&](std::size_t position) { return label_[order_[position]]; };
  std::size_t low = std::min<std::size_t>(was_at_[slot], order_.size() - 1);
  std::size_t high = low;  // Then labels from `low` to `high` include its own.
  for (std::size_t step = 1; label_at(low) > label && low > 0; step *= 2) {
    high = low;
    low = low > step ? low - step : 0;
  }
  for (std::size_t step = 1; label_at(high) < label && high + 1 < order_.size(); step *= 2) {
    low = high;
    high = std::min(order_.size() - 1, high + step);
  }
  const auto at = std::lower_bound(order_.begin() + static_cast<std::ptrdiff_t>(low),
                                   order_.begin() + static_cast<std::ptrdiff_t>(high), label,
                                   [&](CoflowSlot other, std::uint64_t mine) { return label_[other] < mine; });
  WEIR_CHECK(*at == slot);
  was_at_[slot] = static_cast<std::uint32_t>(at - order_.begin());
  return was_at_[slot];
}

/// Tells who stands there whom it has in front.
void RankedOrder::Link(std::size_t position) {
  if (position < order_.size()) {
    in_front_[order_[position]] = position == 0 ? LiveFabric::kNobody : order_[position - 1];
  }
}

bool RankedOrder::Insert(CoflowSlot slot) {
  const auto at =
      std::ranges::lower_bound(order_, slot, [&](CoflowSlot a, CoflowSlot b) { return keys_.Before(a, b); });
  const std::uint64_t low = at == order_.begin() ? 0 : label_[*(at - 1)];
  const std::uint64_t high = at == order_.end() ? kEnd : label_[*at];
  label_[slot] = Between(low, high);
  const auto position = static_cast<std::size_t>(at - order_.begin());
  order_.insert(at, slot);
  was_at_[slot] = static_cast<std::uint32_t>(position);
  Link(position);
  Link(position + 1);
  wants_labels_ |= high - low < kNarrow;
  if (label_[slot] == 0) {
    Relabel();
    return false;
  }
  return true;
}

void RankedOrder::Take(CoflowSlot slot) {
  const std::size_t position = PositionOf(slot);
  order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(position));
  Link(position);
}

std::span<const std::uint32_t> RankedOrder::PositionsOf(std::span<const CoflowSlot> slots) {
  positions_.clear();
  // A search costs as much as looking at some dozens of neighbours.
  if (slots.size() * 64 < order_.size()) {
    for (const CoflowSlot slot : slots) {
      positions_.push_back(static_cast<std::uint32_t>(PositionOf(slot)));
    }
    std::sort(positions_.begin(), positions_.end());
    return positions_;
  }
  for (const CoflowSlot slot : slots) {
    wanted_[slot] = 1;
  }
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    if (wanted_[order_[i]] != 0) {
      positions_.push_back(i);
      wanted_[order_[i]] = 0;
    }
  }
  return positions_;
}

/// Steps that double find a range with the place in it: most moves are short.
std::size_t RankedOrder::PlaceAfterFall(std::size_t position) {
  const CoflowSlot slot = order_[position];
  std::size_t high = position;  // Everybody from here to `position` is behind.
  std::size_t low = position;
  for (std::size_t step = 1; low > 0 && keys_.Before(slot, order_[low - 1]); step *= 2) {
    high = low - 1;
    low = high > step ? high - step : 0;
  }
  const auto begin = order_.begin();
  return static_cast<std::size_t>(std::lower_bound(begin + static_cast<std::ptrdiff_t>(low),
                                                   begin + static_cast<std::ptrdiff_t>(high), slot,
                                                   [&](CoflowSlot a, CoflowSlot b) { return keys_.Before(a, b); }) -
                                  begin);
}

std::size_t RankedOrder::PlaceAfterRise(std::size_t position) {
  const CoflowSlot slot = order_[position];
  const std::size_t last = order_.size() - 1;
  std::size_t low = position;  // Everybody from `position` to here is in front.
  std::size_t high = position;
  for (std::size_t step = 1; high < last && keys_.Before(order_[high + 1], slot); step *= 2) {
    low = high + 1;
    high = std::min(last, low + step);
  }
  const auto begin = order_.begin();
  const auto next =
      std::lower_bound(begin + static_cast<std::ptrdiff_t>(low + 1), begin + static_cast<std::ptrdiff_t>(high + 1),
                       slot, [&](CoflowSlot a, CoflowSlot b) { return keys_.Before(a, b); });
  return static_cast<std::size_t>(next - begin) - 1;
}

std::uint64_t RankedOrder::LabelFor(std::size_t from, std::size_t to) const {
  const std::size_t behind = to < from ? to : to + 1;  // Who will be behind it.
  return Between(behind == 0 ? 0 : label_[order_[behind - 1]], behind == order_.size() ? kEnd : label_[order_[behind]]);
}

void RankedOrder::Carry(std::size_t from, std::size_t to, std::uint64_t label) {
  const CoflowSlot slot = order_[from];
  const auto begin = order_.begin();
  const auto at = [&](std::size_t position) { return begin + static_cast<std::ptrdiff_t>(position); };
  if (to < from) {
    std::copy_backward(at(to), at(from), at(from + 1));
  } else {
    std::copy(at(from + 1), at(to + 1), at(from));
  }
  order_[to] = slot;
  label_[slot] = label;
  was_at_[slot] = static_cast<std::uint32_t>(to);
  Link(to);
  Link(to + 1);
  Link(to < from ? from + 1 : from);
  const std::uint64_t low = to == 0 ? 0 : label_[order_[to - 1]];
  const std::uint64_t high = to + 1 == order_.size() ? kEnd : label_[order_[to + 1]];
  wants_labels_ |= high - low < kNarrow;
}

void RankedOrder::Rebuild() {
  ranked_.clear();
  for (CoflowSlot slot = 0; slot < fabric_.live.size(); ++slot) {
    if (fabric_.live[slot] != 0) {
      ranked_.push_back({keys_.key(slot), slot});
    }
  }
  std::sort(ranked_.begin(), ranked_.end(), [&](const Ranked& a, const Ranked& b) {
    return a.key != b.key ? a.key < b.key : keys_.Before(a.slot, b.slot);
  });
  order_.resize(ranked_.size());
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    order_[i] = ranked_[i].slot;
    was_at_[order_[i]] = i;
    Link(i);
  }
  Relabel();
}

void RankedOrder::Relabel() {
  for (std::size_t i = 0; i < order_.size(); ++i) {
    label_[order_[i]] = kFirst + i * kStep;
  }
  wants_labels_ = false;
}

}  // namespace weir::scheduler
