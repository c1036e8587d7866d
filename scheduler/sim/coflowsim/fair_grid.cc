#include "scheduler/sim/coflowsim/fair_grid.h"

#include <algorithm>

#include "scheduler/sim/coflowsim/options.h"

namespace weir::scheduler::coflowsim {
FairGrid::FairGrid(const Coflow& coflow, FlowCounts* counts)
    : coflow_(&coflow), counts_(counts), open_(coflow.receivers.size()) {
  const std::size_t senders = coflow.senders.size();
  const std::size_t receivers = coflow.receivers.size();
  const std::size_t blocks = (receivers + kLanes - 1) / kLanes;
  remaining_.assign((blocks * senders + 1) * kLanes, 0.0);
  while (reinterpret_cast<std::uintptr_t>(&remaining_[begin_]) % (kLanes * sizeof(double)) != 0) {
    ++begin_;
  }
  left_.assign(blocks * kLanes, 0.0);
  std::copy(coflow.bytes.begin(), coflow.bytes.end(), left_.begin());
  ended_.assign(receivers, 0);
  for (std::size_t first = 0; first < receivers; first += kLanes) {
    Block& block = blocks_.emplace_back();
    block.first = first;
    const std::size_t lanes = std::min(kLanes, receivers - first);
    for (std::uint32_t s = 0; s < senders; ++s) {
      block.rows.push_back({s, (1U << lanes) - 1});
      counts->up[coflow.senders[s]] += static_cast<std::uint32_t>(lanes);
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        RowOf(block, s)[lane] = coflow.bytes[first + lane] / static_cast<double>(senders);
        ++counts->down[coflow.receivers[first + lane]];
        ++flows_;
      }
    }
  }
}

bool FairGrid::Step(std::span<const double> up, std::span<const double> down) {
  bool ends = false;
  for (Block& block : blocks_) {
    ends |= !block.rows.empty() && StepBlock(up, down, &block);
  }
  return ends;
}

bool FairGrid::StepBlock(std::span<const double> up, std::span<const double> down, Block* block) {
  FairStep step;
  step.rows = block->rows;
  step.senders = coflow_->senders.data();
  step.up = up.data();
  step.remaining = RowOf(*block, 0);
  for (std::size_t lane = 0; lane < kLanes && block->first + lane < ended_.size(); ++lane) {
    step.down[lane] = down[coflow_->receivers[block->first + lane]];
  }
  double* left = &left_[block->first];
  std::copy_n(left, kLanes, step.left);
  kernel_(&step);
  std::copy_n(step.left, kLanes, left);
  block->flows_end = std::any_of(step.ending, step.ending + kLanes, [](double moved) { return moved > 0; });
  return CloseReceivers(*block) || block->flows_end;
}

bool FairGrid::HasFlows(const Block& block, std::size_t lane) {
  return std::any_of(block.rows.begin(), block.rows.end(),
                     [&](const Row& row) { return RowOf(block, row.sender)[lane] > kZero; });
}

bool FairGrid::CloseReceivers(const Block& block) {
  bool closed = false;
  for (std::size_t lane = 0; lane < kLanes && block.first + lane < ended_.size(); ++lane) {
    const std::size_t r = block.first + lane;
    if (ended_[r] == 0 && (left_[r] <= kZero || (block.flows_end && !HasFlows(block, lane)))) {
      ended_[r] = 1;
      --open_;
      closed = true;
    }
  }
  return closed;
}

void FairGrid::TakeEnds() {
  for (Block& block : blocks_) {
    if (block.flows_end) {
      TakeEndsOf(&block);
    }
  }
}

void FairGrid::TakeEndsOf(Block* block) {
  block->flows_end = false;
  for (Row& row : block->rows) {
    double* remaining = RowOf(*block, row.sender);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((row.alive >> lane & 1U) != 0 && remaining[lane] <= kZero) {
        remaining[lane] = 0;
        row.alive &= ~(1U << lane);
        --flows_;
        --counts_->up[coflow_->senders[row.sender]];
        --counts_->down[coflow_->receivers[block->first + lane]];
      }
    }
  }
  std::erase_if(block->rows, [](const Row& row) { return row.alive == 0; });
}

}  // namespace weir::scheduler::coflowsim
