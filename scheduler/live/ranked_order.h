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
/// Cost: Insert and Take O(log n) comparisons and one move of memory; Rebuild O(n log n). Thread: one at a time.
class RankedOrder {
 public:
  /// Refers to `fabric` for arrivals and ids; it must outlive this.
  explicit RankedOrder(const LiveFabric& fabric);

  std::span<const CoflowSlot> order() const { return order_; }
  double key(CoflowSlot slot) const { return key_[slot]; }
  /// 1 or more; only of slots in the order, or what it was when the slot was taken out.
  std::uint64_t label(CoflowSlot slot) const { return label_[slot]; }

  /// Of a coflow in the order, followed by TakeMisfits; or of one that will be inserted.
  void SetKey(CoflowSlot slot, double key) { key_[slot] = key; }
  /// False if there was no gap left and every label is new.
  bool Insert(CoflowSlot slot);
  void Take(CoflowSlot slot);
  /// Takes out those of `changed` whose new key does not fit where they stand, and appends them to `taken`.
  /// Reorders `changed`, which names nobody twice.
  void TakeMisfits(std::vector<CoflowSlot>* changed, std::vector<CoflowSlot>* taken);
  /// Sorts all live coflows of the fabric by their keys.
  void Rebuild();

  /// Some gap is narrow: Relabel at the next moment when nobody remembers labels.
  bool wants_labels() const { return wants_labels_; }
  void Relabel();

 private:
  bool Before(CoflowSlot a, CoflowSlot b) const;
  std::size_t PositionOf(CoflowSlot slot) const;
  void FindPositions(std::span<const CoflowSlot> changed);
  bool Fits(std::size_t position, const CoflowSlot* previous) const;

  const LiveFabric& fabric_;
  std::vector<CoflowSlot> order_;
  std::vector<double> key_;
  std::vector<std::uint64_t> label_;
  std::vector<std::uint8_t> changed_;     ///< By slot; set within TakeMisfits only.
  std::vector<std::uint32_t> positions_;  ///< Scratch: where the changed ones stand, ascending.
  bool wants_labels_ = false;
};

}  // namespace weir::scheduler
