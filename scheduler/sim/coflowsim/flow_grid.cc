#include "scheduler/sim/coflowsim/flow_grid.h"

#include <algorithm>
#include <limits>

#include "scheduler/sim/coflowsim/options.h"
#include "scheduler/sim/coflowsim/repeated_subtraction.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Rounding can bring an end forward or put it off, by far less than a step: these are taken off all estimates.
constexpr double kSpareSteps = 2;
constexpr double kSpareShare = 1e-9;
/// Fewer steps are not worth the beginning and end of a longer run.
constexpr std::int64_t kRegularStepsMin = 4;

/// Whole steps before `steps`, with some to spare; kNever for infinity.
std::int64_t StepsBefore(double steps) {
  constexpr double kMax = 1e15;
  const double whole = steps * (1 - kSpareShare) - kSpareSteps;
  return whole > kMax ? FlowGrid::kNever : std::max<std::int64_t>(0, static_cast<std::int64_t>(whole));
}

/// Until no more than kZero of `bytes` is left.
double StepsOf(double bytes, double bytes_per_step) {
  return bytes_per_step > 0 ? (bytes - kZero) / bytes_per_step : std::numeric_limits<double>::infinity();
}

/// What leads to the ends of one receiver.
struct Outlook {
  double first_flow = std::numeric_limits<double>::infinity();  ///< Steps until the first flow ends.
  double last_flow = 0;                                         ///< Until the last one does.
  double per_step = 0;                                          ///< Bytes.
};

Outlook Look(std::span<const double> remaining, std::span<const double> moves) {
  Outlook outlook;
  double same_remaining = 0;
  double same_move = 0;
  double steps = 0;
  for (std::size_t s = 0; s < remaining.size(); ++s) {
    if (remaining[s] == 0) {
      continue;
    }
    if (remaining[s] != same_remaining || moves[s] != same_move) {
      same_remaining = remaining[s];
      same_move = moves[s];
      steps = StepsOf(same_remaining, same_move);
    }
    outlook.first_flow = std::min(outlook.first_flow, steps);
    outlook.last_flow = std::max(outlook.last_flow, steps);
    outlook.per_step += moves[s];
  }
  return outlook;
}

}  // namespace

FlowGrid::FlowGrid(const Coflow& coflow)
    : coflow_(&coflow), left_(coflow.bytes), stated_left_(coflow.stated_bytes), open_(coflow.receivers.size()) {
  remaining_.reserve(receivers() * senders());
  for (const double bytes : coflow.bytes) {
    remaining_.insert(remaining_.end(), senders(), bytes / static_cast<double>(senders()));
  }
  move_.assign(remaining_.size(), 0.0);
  ended_.assign(receivers(), 0);
  dropped_.assign(receivers(), 0);
  moves_.assign(receivers(), 0);
}

void FlowGrid::ClearMoves() {
  std::fill(move_.begin(), move_.end(), 0.0);
}

void FlowGrid::DropEndedReceivers() {
  dropped_ = ended_;
}

/// Flows that have ended are given nothing to move, so that whoever adds moves up need not ask.
std::size_t FlowGrid::OnMoves() {
  moving_ = false;
  std::size_t flows = 0;
  for (std::size_t r = 0; r < receivers(); ++r) {
    bool moves = false;
    for (std::size_t s = 0; s < senders(); ++s) {
      const bool has_rest = remaining(s, r) > 0;
      double& amount = move(s, r);
      amount = has_rest && dropped_[r] == 0 ? amount : 0.0;
      flows += has_rest ? 1U : 0U;
      moves |= amount > 0;
    }
    moves_[r] = moves ? 1 : 0;
    moving_ |= moves;
  }
  return flows;
}

std::int64_t FlowGrid::StepsWithoutEnd() const {
  double steps = 0;
  for (std::size_t r = 0; r < receivers(); ++r) {
    if (ended_[r] == 0) {
      const Outlook outlook = Look(RemainingOf(r), MovesOf(r));
      steps = std::max(steps, std::min(StepsOf(left_[r], outlook.per_step), outlook.last_flow));
    }
  }
  return StepsBefore(steps);
}

bool FlowGrid::Advance(std::int64_t steps) {
  bool ends = false;
  for (std::size_t r = 0; r < receivers(); ++r) {
    ends |= moves_[r] != 0 && AdvanceReceiver(r, steps);
  }
  return ends;
}

bool FlowGrid::AdvanceReceiver(std::size_t receiver, std::int64_t steps) {
  bool ends = false;
  while (steps > 0 && moves_[receiver] != 0) {
    const std::int64_t regular = std::min(steps, steps > kRegularStepsMin ? RegularSteps(receiver) : 0);
    if (regular > kRegularStepsMin) {
      AdvanceRegularly(receiver, regular);
      steps -= regular;
    } else {
      ends |= StepReceiver(receiver);
      --steps;
    }
  }
  return ends;
}

/// Steps in which every flow moves its full amount and nothing comes down to zero.
std::int64_t FlowGrid::RegularSteps(std::size_t receiver) const {
  if (ended_[receiver] != 0) {
    return 0;  // Its count is below zero.
  }
  const Outlook outlook = Look(RemainingOf(receiver), MovesOf(receiver));
  double steps = std::min(outlook.first_flow, StepsOf(left_[receiver], outlook.per_step));
  if (stated_left_[receiver] > 0) {
    steps = std::min(steps, StepsOf(stated_left_[receiver], outlook.per_step));
  }
  return StepsBefore(steps);
}

void FlowGrid::AdvanceRegularly(std::size_t receiver, std::int64_t steps) {
  const std::span<const double> moves = MovesOf(receiver);
  const double left = left_[receiver];
  left_[receiver] = SubtractRepeatedly(left, moves, steps);
  if (stated_left_[receiver] == left) {
    stated_left_[receiver] = left_[receiver];
  } else if (stated_left_[receiver] > 0) {
    stated_left_[receiver] = SubtractRepeatedly(stated_left_[receiver], moves, steps);
  }
  // Neighbours are often alike.
  double same_before = 0;
  double same_move = 0;
  double same_after = 0;
  for (std::size_t s = 0; s < senders(); ++s) {
    double& remaining = RemainingOf(receiver)[s];
    if (moves[s] == 0) {
      continue;
    }
    if (remaining != same_before || moves[s] != same_move) {
      same_before = remaining;
      same_move = moves[s];
      same_after = SubtractRepeatedly(remaining, moves.subspan(s, 1), steps);
    }
    remaining = same_after;
  }
}

/// One step as CoflowSim does it: a receiver's count is set to zero when it ends, and the flows behind that one go on
/// taking from it. Returns whether the receiver has ended.
bool FlowGrid::StepReceiver(std::size_t receiver) {
  const std::span<double> remaining = RemainingOf(receiver);
  auto flows = std::count_if(remaining.begin(), remaining.end(), [](double bytes) { return bytes > 0; });
  bool ends = false;
  bool moves = false;
  for (std::size_t s = 0; s < senders(); ++s) {
    double& amount = move_[At(s, receiver)];
    if (amount == 0) {
      continue;
    }
    const double moved = std::min(amount, remaining[s]);
    remaining[s] -= moved;
    left_[receiver] -= moved;
    stated_left_[receiver] = std::max(0.0, stated_left_[receiver] - moved);
    if (remaining[s] <= kZero) {
      remaining[s] = 0;
      amount = 0;
      --flows;
    }
    moves |= amount > 0;
    if (ended_[receiver] == 0 && (left_[receiver] <= kZero || flows == 0)) {
      ended_[receiver] = 1;
      left_[receiver] = 0;
      --open_;
      ends = true;
    }
  }
  moves_[receiver] = moves ? 1 : 0;
  return ends;
}

}  // namespace weir::scheduler::coflowsim
