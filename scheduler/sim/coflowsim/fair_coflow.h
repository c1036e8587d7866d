#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/fair_port.h"

namespace weir::scheduler::coflowsim {

/// The ports of the fabric under FAIR.
struct FairPorts {
  explicit FairPorts(std::uint32_t ports) : up(ports), down(ports) {}
  std::vector<FairPort> up, down;
};

/// The flows of one running coflow under FAIR, each where it was when it was last looked at. From there on it goes
/// through the shares of its two ports, many steps at a time where the smaller one does not change, and has the bits
/// that CoflowSim's steps leave.
///
/// CoflowSim counts down what a receiver has left with every flow in every step, each difference rounded, and ends the
/// receiver when that count is at kZero, or with the last flow. What the count is matters only when all flows of the
/// receiver that are left are so short that rounding may have brought it there before them; only then it is computed,
/// step by step from the start. Not thread safe; coflow and ports must outlive it. Allocates then only.
class FairCoflow {
 public:
  /// Starts at `now`. Bounds on rounding are taken `doubt` times: with more than 1, counts are computed more often, and
  /// all is the same.
  FairCoflow(const Coflow& coflow, Step now, double doubt, const FairPorts& ports);

  const Coflow& coflow() const { return *coflow_; }
  std::size_t flows() const { return flows_.size(); }
  std::uint32_t sender(std::size_t flow) const { return coflow_->senders[flow % coflow_->senders.size()]; }
  std::uint32_t receiver(std::size_t flow) const { return coflow_->receivers[flow / coflow_->senders.size()]; }

  /// Flows and receivers that have not ended. Flows may outlive their receiver.
  std::size_t flows_left() const { return flows_left_; }
  std::size_t open_receivers() const { return open_; }

  /// A flow is to be looked at when it could have moved so many bytes since it was last; less than zero: in each step.
  double Unseen(std::size_t flow) const;
  /// Brings the flow, which has not ended before, up to `now`; whether it ended in the last step.
  bool Look(std::size_t flow, Step now, const FairPorts& ports);
  /// To be called when all flows have been looked at that are to be; whether a receiver has ended in the last step.
  bool CloseReceivers(Step now, const FairPorts& ports);

 private:
  struct Flow {
    double left = 0;
    Step at = 0;                     ///< Steps done.
    std::uint32_t up = 0, down = 0;  ///< Index of the share of its ports there.
  };
  struct Receiver {
    std::size_t flows = 0;        ///< That have not ended.
    double roundings = 0;         ///< Steps of those that have.
    std::size_t short_flows = 0;  ///< Those that have not ended and were short at `looked_at`.
    double short_bytes = 0;       ///< What they have left.
    Step looked_at = 0;
    bool ended = false;
  };

  double RoundingAt(std::size_t r, Step now) const;
  double RoundingMax(std::size_t r) const;
  double Rounding(double bytes, double roundings) const;
  void NoteShort(std::size_t r, Step now, double left);
  double CountOf(std::size_t r, Step now, const FairPorts& ports) const;

  const Coflow* coflow_;
  Step start_;
  double doubt_;
  std::vector<Flow> flows_;  ///< By receiver, then by sender.
  std::vector<Receiver> receivers_;
  std::vector<std::size_t> looked_at_;  ///< Receivers of which a flow has ended or was short in this step.
  std::size_t flows_left_;
  std::size_t open_;
};

}  // namespace weir::scheduler::coflowsim
