#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/active_table.h"

namespace weir::scheduler {

/// Turns a total order into a few priority levels, losing as little of it as can be:
/// - coflows that have no link in common may share a level at no loss, so a coflow goes one level below the last of
/// those
///   before it with which it shares a link on which both have flows left, at the top if there is none;
/// - levels are spent from the head of the order, because the coflows that matter next are there; whatever does not fit
///   shares the last level, first come first served.
/// A coflow is never above one that goes before it and shares a link with it. Keeps its scratch, so that the steady
/// state allocates nothing. Not thread-safe.
class LevelMap {
 public:
  /// Assigns levels 0 .. `levels` - 1 and reorders `order`, which names every slot at most once: by level, as it was
  /// inside all but the last one, by arrival inside that. `levels` >= 1. O(coflows x (links + levels x links / 64)).
  void Assign(const ActiveTable& table, int levels, std::vector<std::uint32_t>* order);

  /// By rank in the order that Assign() left: its level, never less than that of the rank before.
  std::span<const std::uint32_t> levels() const { return level_of_rank_; }

 private:
  struct Placed {
    std::uint32_t slot, level;
    std::uint32_t rank;  ///< In the order as it was given.
  };

  std::vector<Placed> placed_;
  std::vector<std::uint32_t> level_of_rank_;
  std::vector<std::uint64_t> used_;   ///< By level: the links that its coflows use, a bit each.
  std::vector<std::uint64_t> links_;  ///< Of the coflow at hand.
};

}  // namespace weir::scheduler
