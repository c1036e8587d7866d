#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/live/fabric.h"

namespace weir::scheduler {

/// The coflows by key, then arrival, then id, with a label each that grows along the order: who is in front is one
/// comparison of two numbers, and putting one coflow elsewhere changes its own label only. Labels are given with wide
/// gaps; a newcomer takes the middle of its gap. Where gaps run out everybody is labelled anew.
///
/// Cost: Insert and Take O(log n) comparisons and one move of memory, the places O(log distance); Rebuild O(n log n).
/// Thread: one at a time.
class RankedOrder {
 public:
  /// Refers to `fabric` for arrivals and ids; it must outlive this.
  explicit RankedOrder(const LiveFabric& fabric);

  std::span<const CoflowSlot> order() const { return order_; }
  double key(CoflowSlot slot) const { return key_[slot]; }
  /// 1 or more; only of slots in the order, or what it was when the slot was taken out.
  std::uint64_t label(CoflowSlot slot) const { return label_[slot]; }

  /// Of a coflow that will be inserted, or of one in the order that is then carried where it belongs.
  void SetKey(CoflowSlot slot, double key) { key_[slot] = key; }
  /// False if there was no gap left and every label is new.
  bool Insert(CoflowSlot slot);
  void Take(CoflowSlot slot);
  /// Sorts all live coflows of the fabric by their keys.
  void Rebuild();

  /// Where in the order these are, ascending. Valid until the next call. Reads all if there are many.
  std::span<const std::uint32_t> PositionsOf(std::span<const CoflowSlot> slots);
  /// Where the coflow at `position` belongs if its key fell (at `position` or before) or rose (at it or behind); on
  /// that side everybody must be in order.
  std::size_t PlaceAfterFall(std::size_t position) const;
  std::size_t PlaceAfterRise(std::size_t position) const;
  /// A label for who moves from one position to another; 0 if there is no gap.
  std::uint64_t LabelFor(std::size_t from, std::size_t to) const;
  /// Those in between move up by one.
  void Carry(std::size_t from, std::size_t to, std::uint64_t label);

  /// Some gap is narrow: Relabel at the next moment when nobody remembers labels.
  bool wants_labels() const { return wants_labels_; }
  void Relabel();

 private:
  bool Before(CoflowSlot a, CoflowSlot b) const;
  std::size_t PositionOf(CoflowSlot slot) const;

  const LiveFabric& fabric_;
  std::vector<CoflowSlot> order_;
  std::vector<double> key_;
  std::vector<std::uint64_t> label_;
  std::vector<std::uint8_t> wanted_;  ///< By slot; set within PositionsOf only.
  std::vector<std::uint32_t> positions_;
  bool wants_labels_ = false;
};

}  // namespace weir::scheduler
