#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/live/fabric.h"
#include "scheduler/live/falling_keys.h"

namespace weir::scheduler {

/// The coflows by key, then arrival, then id, with a label each that grows along the order: who is in front is one
/// comparison of two numbers, and putting one coflow elsewhere changes its own label only. Labels are given with wide
/// gaps; a newcomer takes the middle of its gap. Where gaps run out everybody is labelled anew.
///
/// Cost: Insert and Take O(log n) comparisons and one move of memory, the places O(log distance); Rebuild O(n log n).
/// Thread: one at a time.
class RankedOrder {
 public:
  /// Both must outlive this.
  RankedOrder(const LiveFabric& fabric, FallingKeys* keys);

  std::span<const CoflowSlot> order() const { return order_; }
  /// 1 or more; only of slots in the order, or what it was when the slot was taken out.
  std::uint64_t label(CoflowSlot slot) const { return label_[slot]; }

  /// Who is next in front of a coflow in the order, or kNobody.
  CoflowSlot InFrontOf(CoflowSlot slot) const { return in_front_[slot]; }

  /// False if there was no gap left and every label is new.
  bool Insert(CoflowSlot slot);
  void Take(CoflowSlot slot);
  /// Sorts all live coflows of the fabric by keys that were set now.
  void Rebuild();

  std::size_t PositionOf(CoflowSlot slot);
  /// Where in the order these are, ascending. Valid until the next call. Reads all if there are many.
  std::span<const std::uint32_t> PositionsOf(std::span<const CoflowSlot> slots);
  /// Where the coflow at `position` belongs if its key fell (at `position` or before) or rose (at it or behind); on
  /// that side everybody must be in order.
  std::size_t PlaceAfterFall(std::size_t position);
  std::size_t PlaceAfterRise(std::size_t position);
  /// A label for who moves from one position to another; 0 if there is no gap.
  std::uint64_t LabelFor(std::size_t from, std::size_t to) const;
  /// Those in between move up by one.
  void Carry(std::size_t from, std::size_t to, std::uint64_t label);

  /// Some gap is narrow: Relabel at the next moment when nobody remembers labels.
  bool wants_labels() const { return wants_labels_; }
  void Relabel();

 private:
  struct Ranked {
    double key = 0;
    CoflowSlot slot = 0;
  };

  void Link(std::size_t position);

  const LiveFabric& fabric_;
  FallingKeys& keys_;
  std::vector<CoflowSlot> order_;
  std::vector<std::uint64_t> label_;
  std::vector<CoflowSlot> in_front_;   ///< By slot.
  std::vector<std::uint32_t> was_at_;  ///< By slot: a position near its own.
  std::vector<Ranked> ranked_;         ///< Of Rebuild.
  std::vector<std::uint8_t> wanted_;   ///< By slot; set within PositionsOf only.
  std::vector<std::uint32_t> positions_;
  bool wants_labels_ = false;
};

}  // namespace weir::scheduler
