#include "scheduler/sim/coflowsim/fair_grid.h"

#include <algorithm>
#include <cstring>

#include "scheduler/sim/coflowsim/options.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Two doubles, which every x86-64 and AArch64 subtracts and compares at once.
using Pair = double __attribute__((vector_size(16)));
constexpr std::size_t kPairs = 4;

Pair Load(const double* from) {
  Pair pair;
  std::memcpy(&pair, from, sizeof(Pair));
  return pair;
}

Pair Both(double value) {
  return Pair{value, value};
}

/// `ending` grows above zero where a flow ends. What a flow that has ended moves is zero, because nothing is left of
/// it.
inline void MovePair(Pair of_sender, Pair of_receiver, double* at, Pair* left, Pair* ending) {
  Pair remaining = Load(at);
  Pair moved = of_sender < of_receiver ? of_sender : of_receiver;
  moved = moved < remaining ? moved : remaining;
  remaining -= moved;
  *left -= moved;
  const Pair last = remaining > Both(kZero) ? Pair{} : moved;
  *ending = last > *ending ? last : *ending;
  std::memcpy(at, &remaining, sizeof(Pair));
}

}  // namespace

FairGrid::FairGrid(const Coflow& coflow, FlowCounts* counts)
    : coflow_(&coflow), counts_(counts), open_(coflow.receivers.size()) {
  const std::size_t senders = coflow.senders.size();
  const std::size_t receivers = coflow.receivers.size();
  const std::size_t blocks = (receivers + kLanes - 1) / kLanes;
  remaining_.assign(blocks * senders * kLanes, 0.0);
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
  Pair shares[kPairs] = {};
  Pair left[kPairs];
  Pair ending[kPairs] = {};
  for (std::size_t lane = 0; lane < kLanes && block->first + lane < ended_.size(); ++lane) {
    shares[lane / 2][lane % 2] = down[coflow_->receivers[block->first + lane]];
  }
  for (std::size_t i = 0; i < kPairs; ++i) {
    left[i] = Load(&left_[block->first + 2 * i]);
  }
  for (const Row& row : block->rows) {
    double* at = RowOf(*block, row.sender);
    const Pair of_sender = Both(up[coflow_->senders[row.sender]]);
    // Written out, for then all of them stay in registers.
    MovePair(of_sender, shares[0], at, &left[0], &ending[0]);
    MovePair(of_sender, shares[1], at + 2, &left[1], &ending[1]);
    MovePair(of_sender, shares[2], at + 4, &left[2], &ending[2]);
    MovePair(of_sender, shares[3], at + 6, &left[3], &ending[3]);
  }
  std::memcpy(&left_[block->first], left, sizeof(left));
  block->flows_end = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    block->flows_end |= ending[lane / 2][lane % 2] > 0;
  }
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
