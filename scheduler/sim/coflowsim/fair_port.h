#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "scheduler/sim/coflowsim/options.h"

namespace weir::scheduler::coflowsim {

/// Steps that a model has done so far; CoflowSim's day has eleven million.
using Step = std::int32_t;
inline constexpr Step kNoStep = std::numeric_limits<Step>::max();

/// One direction of a port under FAIR: the equal share of its flows, what it was at every time, and when the next flow
/// is to be looked at. A flow moves no more than this port's share in any step, so it cannot have moved its bytes
/// before the shares since then add up to them: flows wait in order of that sum, and a change of the share touches none
/// of them. Not thread safe. Allocates when the share changes or a flow waits.
class FairPort {
 public:
  /// A share that holds from a step on until the next one does, which may be at once.
  struct Share {
    double bytes = 0;  ///< Of a flow in a step.
    Step from = 0;
  };
  /// Which flow waits, as its owner names it.
  struct Waiting {
    std::uint32_t coflow = 0;
    std::uint32_t flow = 0;
  };

  FairPort() { Forget(0); }

  void AddFlows(std::uint32_t flows) { flows_ += flows; }
  void RemoveFlow() { --flows_; }
  /// To be called after these, and after Wait, before the steps that follow `now`.
  void Update(Step now);

  double share() const { return share_; }
  /// All shares since Forget, and an end that holds from kNoStep on; valid until the next Update.
  const Share* shares() const { return shares_.data(); }
  /// Index of the share in force.
  std::uint32_t current() const { return static_cast<std::uint32_t>(shares_.size() - 2); }
  /// The least of the shares from one on; the end: of all but that.
  double LeastSince(const Share* share) const;

  /// The flow is to be looked at no later than in the step in which it could have moved `bytes` through this port, and
  /// not before the next step; any number, at `now` at the latest Update or later.
  void Wait(double bytes, Step now, Waiting flow);
  /// Until when nobody need be looked at; kNoStep: nobody waits.
  Step next() const { return next_; }
  /// Moves to `due` who is to be looked at `now`.
  void TakeDue(Step now, std::vector<Waiting>* due);
  /// Drops all shares that have been; only while no flow waits.
  void Forget(Step now);

 private:
  struct Entry {
    double at = 0;  ///< Of the sum of shares.
    Waiting flow;
    bool operator>(const Entry& other) const { return at > other.at; }
  };

  double SumAt(Step now) const { return sum_ + share_ * static_cast<double>(now - since_); }
  /// More than rounding can have added to or taken from the sum.
  double Slack(double sum) const;

  std::uint32_t flows_ = 0;
  double share_ = kStepBytes;
  double sum_ = 0;  ///< Of the shares up to since_.
  Step since_ = 0;
  Step next_ = kNoStep;
  std::vector<Share> shares_;
  std::vector<std::uint32_t> least_;  ///< Index of each share that is less than all later ones, ascending.
  std::vector<Entry> waiting_;        ///< A heap, the least sum first.
};

}  // namespace weir::scheduler::coflowsim
