#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/fair_kernels.h"

namespace weir::scheduler::coflowsim {

/// Flows that have something left, per port; all coflows together.
struct FlowCounts {
  explicit FlowCounts(std::uint32_t ports) : up(ports), down(ports) {}
  std::vector<std::uint32_t> up, down;
};

/// The flows of one running coflow under FAIR, where some flow ends in nearly every step, so that there are no long
/// runs of like steps. Eight receivers, which do not depend on each other, are worked on at once: within a receiver the
/// order of subtractions is CoflowSim's. A step costs a cycle a flow at most. Not thread safe; coflow and counts must
/// outlive it. No allocation after construction.
class FairGrid {
 public:
  /// Adds its flows to `counts`, and takes them out as they end.
  FairGrid(const Coflow& coflow, FlowCounts* counts);

  const Coflow& coflow() const { return *coflow_; }
  std::size_t open_receivers() const { return open_; }
  /// False when the last residue is gone; flows may outlive their receiver.
  bool has_flows() const { return flows_ > 0; }
  std::size_t flows() const { return flows_; }

  /// Every flow moves the smaller of what a flow may at its two ports; bytes, by port. Flows that end stay in the
  /// counts until TakeEnds. Returns whether a flow or a receiver has ended.
  bool Step(std::span<const double> up, std::span<const double> down);
  /// Takes flows that have ended out of the counts.
  void TakeEnds();

 private:
  static constexpr std::size_t kLanes = FairStep::kLanes;
  using Row = FairStep::Row;
  struct Block {
    std::size_t first = 0;   ///< Receiver.
    std::vector<Row> rows;   ///< Those with a flow alive.
    bool flows_end = false;  ///< In the last step.
  };

  double* RowOf(const Block& block, std::uint32_t sender) {
    return &remaining_[begin_ + (block.first / kLanes * coflow_->senders.size() + sender) * kLanes];
  }
  bool StepBlock(std::span<const double> up, std::span<const double> down, Block* block);
  bool CloseReceivers(const Block& block);
  void TakeEndsOf(Block* block);
  bool HasFlows(const Block& block, std::size_t lane);

  const Coflow* coflow_;
  FlowCounts* counts_;
  FairKernel kernel_ = FairKernels().front();
  std::vector<double> remaining_;    ///< From begin_ on in blocks of receivers, in these by sender, kLanes each.
  std::size_t begin_ = 0;            ///< Where a cache line begins, so that a row is in one.
  std::vector<double> left_;         ///< By receiver, and spare lanes.
  std::vector<std::uint8_t> ended_;  ///< By receiver.
  std::vector<Block> blocks_;
  std::size_t open_ = 0;
  std::size_t flows_ = 0;
};

}  // namespace weir::scheduler::coflowsim
