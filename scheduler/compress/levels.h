#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/order/active_table.h"

namespace weir::scheduler {

/// Turns a total order into `levels` priority levels by rank: the first levels - 1 coflows have a level of their own,
/// the rest share the last one. On deep queues this loses least, because the coflows that matter next are at the head.
/// `order` keeps its head; the tail, which the fabric cannot tell apart, is put in order of arrival.
void ShareLastLevel(const ActiveTable& table, int levels, std::vector<std::uint32_t>* order);

/// The level of the coflow at `rank` (0 first) under the same rule.
constexpr int LevelOfRank(std::size_t rank, int levels) {
  return rank + 1 < static_cast<std::size_t>(levels) ? static_cast<int>(rank) : levels - 1;
}

}  // namespace weir::scheduler
