#include "scheduler/sim/coflowsim/fair_coflow.h"

#include <algorithm>

#include "scheduler/sim/coflowsim/options.h"
#include "scheduler/sim/coflowsim/repeated_subtraction.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Of CoflowSim's day.
constexpr Step kStepsMax = kEndMs / kStepMs;
/// More than rounding can do to the place at which a flow waits, bytes.
constexpr double kSpareBytes = 1;

using Share = FairPort::Share;

/// A place among the shares of a port, at a step or before.
class Cursor {
 public:
  Cursor(const FairPort& port, std::uint32_t index) : port_(&port), at_(port.shares() + index) {}

  double share() const { return at_->bytes; }
  Step next() const { return at_[1].from; }
  std::uint32_t index() const { return static_cast<std::uint32_t>(at_ - port_->shares()); }
  /// Of the port, from here on until now.
  double least() const { return port_->LeastSince(at_); }
  void MoveTo(Step step) {
    while (next() <= step) {
      ++at_;
    }
  }
  /// The same where that is the next share at most, or one that holds for no step.
  void MoveOn(Step step) { at_ += next() <= step ? 1 : 0; }

 private:
  const FairPort* port_;
  const Share* at_;
};

Cursor CursorAt(const FairPort& port, Step step) {
  Cursor cursor(port, 0);
  cursor.MoveTo(step);
  return cursor;
}

/// One flow on its way through the shares of its ports.
class Descent {
 public:
  Descent(double left, Step step) : left_(left), step_(step) {}

  double left() const { return left_.value(); }

  /// Takes all steps before `last`. Returns the share in that one.
  double GoOn(Step last, Cursor* up, Cursor* down) {
    Cursor* less = up;
    Cursor* other = down;
    for (;;) {
      less->MoveTo(step_);
      other->MoveTo(step_);
      if (other->share() < less->share()) {
        std::swap(less, other);
      }
      const double most = other->least();
      const bool done = less->share() <= most ? Follow(last, most, less) : FollowBoth(last, less, other);
      if (done) {
        return std::min(less->share(), other->share());
      }
    }
  }

 private:
  /// Goes through the shares of one port as long as they are no more than `most`, which the other's never fall below.
  /// Whether all steps before `last` are done and that one would be, too.
  bool Follow(Step last, double most, Cursor* port) {
    Cursor at = *port;
    FallingValue left = left_;
    Step step = step_;
    while (step < last && at.share() <= most) {
      const Step until = std::min(at.next(), last);
      left.Subtract(at.share(), until - step);
      step = until;
      at.MoveOn(step);
    }
    left_ = left;
    step_ = step;
    *port = at;
    port->MoveTo(step);
    return step == last && port->share() <= most;
  }

  /// Some shares of both. Whether all steps are done.
  bool FollowBoth(Step last, Cursor* one, Cursor* other) {
    constexpr int kShares = 32;
    for (int i = 0; i < kShares && step_ < last; ++i) {
      const double share = std::min(one->share(), other->share());
      const Step until = std::min({one->next(), other->next(), last});
      left_.Subtract(share, until - step_);
      step_ = until;
      one->MoveOn(step_);
      other->MoveOn(step_);
    }
    one->MoveTo(step_);
    other->MoveTo(step_);
    return step_ == last;
  }

  FallingValue left_;
  Step step_;
};

}  // namespace

FairCoflow::FairCoflow(const Coflow& coflow, Step now, double doubt, const FairPorts& ports)
    : coflow_(&coflow), start_(now), doubt_(doubt), open_(coflow.receivers.size()) {
  const std::size_t senders = coflow.senders.size();
  flows_.reserve(coflow.receivers.size() * senders);
  for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
    const std::uint32_t down = ports.down[coflow.receivers[r]].current();
    for (const std::uint32_t sender : coflow.senders) {
      flows_.push_back({coflow.bytes[r] / static_cast<double>(senders), now, ports.up[sender].current(), down});
    }
  }
  Receiver receiver;
  receiver.flows = senders;
  receivers_.assign(coflow.receivers.size(), receiver);
  flows_left_ = flows_.size();
}

/// By how much the count of a receiver and what its flows have left may differ by rounding. The count is rounded with
/// each flow in each step, and so is the flow, both by half of what lies between two doubles of their size at most; the
/// flow once more at the start.
double FairCoflow::RoundingAt(std::size_t r, Step now) const {
  const auto senders = static_cast<double>(coflow_->senders.size());
  const double roundings =
      receivers_[r].roundings + static_cast<double>(receivers_[r].flows) * static_cast<double>(now - start_);
  return Rounding(coflow_->bytes[r], roundings) + Rounding(coflow_->bytes[r] / senders, roundings + senders);
}

/// That of a whole day.
double FairCoflow::RoundingMax(std::size_t r) const {
  const auto senders = static_cast<double>(coflow_->senders.size());
  return 2 * Rounding(coflow_->bytes[r], senders * (kStepsMax + 1.0));
}

/// Of so many that no value above `bytes` has.
double FairCoflow::Rounding(double bytes, double roundings) const {
  return doubt_ * PowerBelow(bytes) * (std::numeric_limits<double>::epsilon() / 2) * roundings;
}

double FairCoflow::Unseen(std::size_t flow) const {
  const std::size_t receiver = flow / coflow_->senders.size();
  return flows_[flow].left - kZero - RoundingMax(receiver) - kSpareBytes;
}

bool FairCoflow::Look(std::size_t flow, Step now, const FairPorts& ports) {
  Flow& at = flows_[flow];
  Cursor up(ports.up[sender(flow)], at.up);
  Cursor down(ports.down[receiver(flow)], at.down);
  Descent descent(at.left, at.at);
  const double share = descent.GoOn(now - 1, &up, &down);
  const double left = descent.left() - std::min(share, descent.left());
  at = {left, now, up.index(), down.index()};
  const std::size_t r = flow / coflow_->senders.size();
  const bool ended = left <= kZero;
  if (ended) {
    --flows_left_;
    --receivers_[r].flows;
    receivers_[r].roundings += static_cast<double>(now - start_);
  }
  if (!receivers_[r].ended && left <= kZero + RoundingAt(r, now)) {
    NoteShort(r, now, ended ? 0.0 : left);
  }
  return ended;
}

/// A flow of the receiver has no more left than rounding may be.
void FairCoflow::NoteShort(std::size_t r, Step now, double left) {
  Receiver& receiver = receivers_[r];
  if (receiver.looked_at != now) {
    receiver.looked_at = now;
    receiver.short_flows = 0;
    receiver.short_bytes = 0;
    looked_at_.push_back(r);
  }
  receiver.short_flows += left > 0 ? 1 : 0;
  receiver.short_bytes += left;
}

bool FairCoflow::CloseReceivers(Step now, const FairPorts& ports) {
  bool ends = false;
  for (const std::size_t r : looked_at_) {
    Receiver& receiver = receivers_[r];
    const bool may_end = receiver.flows == receiver.short_flows && receiver.short_bytes <= kZero + RoundingAt(r, now);
    if (!receiver.ended && may_end && (receiver.flows == 0 || CountOf(r, now, ports) <= kZero)) {
      receiver.ended = true;
      --open_;
      ends = true;
    }
  }
  looked_at_.clear();
  return ends;
}

/// CoflowSim's count, as its steps leave it.
double FairCoflow::CountOf(std::size_t r, Step now, const FairPorts& ports) const {
  const std::size_t senders = coflow_->senders.size();
  std::vector<Cursor> up;
  for (const std::uint32_t sender : coflow_->senders) {
    up.push_back(CursorAt(ports.up[sender], start_));
  }
  Cursor down = CursorAt(ports.down[coflow_->receivers[r]], start_);
  std::vector<double> left(senders, coflow_->bytes[r] / static_cast<double>(senders));
  double count = coflow_->bytes[r];
  for (Step step = start_; step < now; ++step) {
    down.MoveTo(step);
    for (std::size_t s = 0; s < senders; ++s) {
      up[s].MoveTo(step);
      const double moved = std::min({up[s].share(), down.share(), left[s]});
      count -= moved;
      left[s] = left[s] - moved <= kZero ? 0 : left[s] - moved;
    }
  }
  return count;
}

}  // namespace weir::scheduler::coflowsim
