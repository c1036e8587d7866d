#include "scheduler/sim/coflowsim/flow_grid.h"

#include <algorithm>
#include <limits>

#include "scheduler/sim/coflowsim/options.h"
#include "scheduler/sim/coflowsim/repeated_subtraction.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Taken off all estimates, in steps, beside what rounding can do.
constexpr double kSpareSteps = 0.25;
/// Longer than CoflowSim's day.
constexpr double kStepsMax = 1e8;
/// Fewer steps are not worth the beginning and end of a longer run.
constexpr std::int64_t kRegularStepsMin = 3;

/// Whole steps that are sure to be over before `steps` are; kNever for infinity. In each step a count is rounded once
/// for each sender, by 2^-53 of itself at most, so that in the worst case its end is off by `steps` x senders x 2^-53
/// times `steps`. Twice that is left, for `steps` is rounded too.
std::int64_t StepsBefore(double steps, std::size_t senders) {
  if (steps == std::numeric_limits<double>::infinity()) {
    return FlowGrid::kNever;
  }
  const double some = std::min(steps, kStepsMax);
  const double rounding = some * some * static_cast<double>(senders) * std::numeric_limits<double>::epsilon();
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(some - rounding - kSpareSteps));
}

/// Until no more than kZero of `bytes` is left.
double StepsOf(double bytes, double bytes_per_step) {
  return bytes_per_step > 0 ? (bytes - kZero) / bytes_per_step : std::numeric_limits<double>::infinity();
}

}  // namespace

FlowGrid::FlowGrid(const Coflow& coflow, bool counts_stated)
    : coflow_(&coflow), left_(coflow.bytes), stated_left_(coflow.stated_bytes), open_(coflow.receivers.size()) {
  if (!counts_stated) {
    std::fill(stated_left_.begin(), stated_left_.end(), 0.0);
  }
  remaining_.reserve(receivers() * senders());
  for (const double bytes : coflow.bytes) {
    flows_left_.push_back(bytes > 0 ? senders() : 0);
    remaining_.insert(remaining_.end(), senders(), bytes / static_cast<double>(senders()));
  }
  move_.assign(remaining_.size(), 0.0);
  ended_.assign(receivers(), 0);
  dropped_.assign(receivers(), 0);
  moves_.assign(receivers(), 0);
  outlook_.resize(receivers());
  moving_moves_.resize(senders());
  for (std::size_t r = 0; r < receivers(); ++r) {
    live_.push_back(r);
  }
  DropDone();
}

void FlowGrid::DropDone() {
  std::erase_if(live_, [this](std::size_t r) { return flows_left_[r] == 0; });
}

void FlowGrid::ClearMoves() {
  for (const std::size_t r : live_) {
    std::fill_n(move_.begin() + static_cast<std::ptrdiff_t>(At(0, r)), senders(), 0.0);
  }
}

void FlowGrid::DropEndedReceivers() {
  dropped_ = ended_;
}

/// Flows that have ended are given nothing to move, so that whoever adds moves up need not ask.
std::size_t FlowGrid::OnMoves() {
  moving_ = false;
  std::size_t flows = 0;
  for (const std::size_t r : live_) {
    bool moves = false;
    for (std::size_t s = 0; s < senders(); ++s) {
      double& amount = move(s, r);
      amount = remaining(s, r) > 0 && dropped_[r] == 0 ? amount : 0.0;
      moves |= amount > 0;
    }
    flows += flows_left_[r];
    moves_[r] = moves ? 1 : 0;
    moving_ |= moves;
    outlook_[r].known = false;
  }
  return flows;
}

/// While no flow ends, time alone changes the outlook.
const FlowGrid::Outlook& FlowGrid::Look(std::size_t receiver) {
  if (outlook_[receiver].known) {
    return outlook_[receiver];
  }
  const std::span<const double> remaining = RemainingOf(receiver);
  const std::span<const double> moves = MovesOf(receiver);
  Outlook outlook = {std::numeric_limits<double>::infinity(), 0, 0, true};
  for (std::size_t s = 0; s < remaining.size(); ++s) {
    if (remaining[s] != 0) {
      const double steps = StepsOf(remaining[s], moves[s]);
      outlook.first_flow = std::min(outlook.first_flow, steps);
      outlook.last_flow = std::max(outlook.last_flow, steps);
      outlook.per_step += moves[s];
    }
  }
  outlook_[receiver] = outlook;
  return outlook_[receiver];
}

std::int64_t FlowGrid::StepsWithoutEnd() {
  double steps = 0;
  for (const std::size_t r : live_) {
    if (ended_[r] == 0) {
      const Outlook& outlook = Look(r);
      steps = std::max(steps, std::min(StepsOf(left_[r], outlook.per_step), outlook.last_flow));
    }
  }
  return StepsBefore(steps, senders());
}

bool FlowGrid::Advance(std::int64_t steps) {
  bool ends = false;
  for (const std::size_t r : live_) {
    ends |= moves_[r] != 0 && AdvanceReceiver(r, steps);
  }
  DropDone();
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
std::int64_t FlowGrid::RegularSteps(std::size_t receiver) {
  if (ended_[receiver] != 0) {
    return 0;  // Its count is below zero.
  }
  const Outlook& outlook = Look(receiver);
  double steps = std::min(outlook.first_flow, StepsOf(left_[receiver], outlook.per_step));
  if (stated_left_[receiver] > 0) {
    steps = std::min(steps, StepsOf(stated_left_[receiver], outlook.per_step));
  }
  return StepsBefore(steps, senders());
}

void FlowGrid::AdvanceRegularly(std::size_t receiver, std::int64_t steps) {
  const std::span<double> remaining = RemainingOf(receiver);
  const std::span<const double> moves = MovesOf(receiver);
  std::size_t flows = 0;
  for (std::size_t s = 0; s < senders(); ++s) {
    if (moves[s] != 0) {
      remaining[s] = SubtractOneRepeatedly(remaining[s], moves[s], steps);
      moving_moves_[flows++] = moves[s];
    }
  }
  const std::span<const double> moving(moving_moves_.data(), flows);
  const double left = left_[receiver];
  left_[receiver] = SubtractRepeatedly(left, moving, steps);
  if (stated_left_[receiver] == left) {
    stated_left_[receiver] = left_[receiver];
  } else if (stated_left_[receiver] > 0) {
    stated_left_[receiver] = SubtractRepeatedly(stated_left_[receiver], moving, steps);
  }
  outlook_[receiver].first_flow -= static_cast<double>(steps);
  outlook_[receiver].last_flow -= static_cast<double>(steps);
}

/// One step as CoflowSim does it: a receiver's count is set to zero when it ends, and the flows behind that one go on
/// taking from it. Returns whether the receiver has ended.
bool FlowGrid::StepReceiver(std::size_t receiver) {
  const std::span<double> remaining = RemainingOf(receiver);
  std::size_t& flows = flows_left_[receiver];
  double left = left_[receiver];
  double stated = stated_left_[receiver];
  bool open = ended_[receiver] == 0;
  bool flow_ends = false;
  bool moves = false;
  for (std::size_t s = 0; s < remaining.size(); ++s) {
    double& amount = move_[At(s, receiver)];
    if (amount == 0) {
      continue;
    }
    const double moved = std::min(amount, remaining[s]);
    remaining[s] -= moved;
    left -= moved;
    stated = std::max(0.0, stated - moved);
    if (remaining[s] <= kZero) {
      remaining[s] = 0;
      amount = 0;
      flow_ends = true;
      --flows;
    } else {
      moves = true;
    }
    if (open && (left <= kZero || flows == 0)) {
      open = false;
      left = 0;
    }
  }
  left_[receiver] = left;
  stated_left_[receiver] = stated;
  moves_[receiver] = moves ? 1 : 0;
  outlook_[receiver].known &= !flow_ends;
  outlook_[receiver].first_flow -= 1;
  outlook_[receiver].last_flow -= 1;
  const bool ends = !open && ended_[receiver] == 0;
  ended_[receiver] = open ? 0 : 1;
  open_ -= ends ? 1 : 0;
  return ends;
}

}  // namespace weir::scheduler::coflowsim
