#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/sim/coflowsim/coflow.h"

namespace weir::scheduler::coflowsim {

/// The flows of one running coflow: a grid of receivers and senders. CoflowSim's results depend on how its doubles are
/// rounded, so what is left after n steps is what n subtractions in its order leave, though long runs of steps are done
/// at once (repeated_subtraction.h). A flow that has ended has exactly nothing left; a receiver ends when it has
/// counted down to kZero, or with its last flow. Flows of an ended receiver may have a residue.
///
/// Not thread safe; the coflow must outlive it. No allocation after construction.
class FlowGrid {
 public:
  /// Without `counts_stated`, stated_left() is zero throughout.
  FlowGrid(const Coflow& coflow, bool counts_stated);

  const Coflow& coflow() const { return *coflow_; }
  std::size_t senders() const { return coflow_->senders.size(); }
  std::size_t receivers() const { return coflow_->receivers.size(); }

  /// Bytes that a flow has left; that a receiver has left to count down, below zero after its end; the same from
  /// Coflow::stated_bytes on, which goes on after the receiver's end and not below zero.
  double remaining(std::size_t sender, std::size_t receiver) const { return remaining_[At(sender, receiver)]; }
  double left(std::size_t receiver) const { return left_[receiver]; }
  std::span<const double> stated_left() const { return stated_left_; }
  std::size_t open_receivers() const { return open_; }
  /// Those with a flow that has something left, ascending: flows of all others neither have nor move anything. Valid
  /// until the next Advance.
  std::span<const std::size_t> live_receivers() const { return live_; }

  /// What a flow moves in a step, bytes. After changes and before steps, OnMoves is to be called; it returns the number
  /// of flows with something left.
  double& move(std::size_t sender, std::size_t receiver) { return move_[At(sender, receiver)]; }
  void ClearMoves();
  std::size_t OnMoves();
  /// Whether any flow moves.
  bool moving() const { return moving_; }
  /// Flows of receivers that have ended move no more from the next OnMoves on.
  void DropEndedReceivers();

  /// Steps after which surely not all receivers have ended; kNever where nothing moves.
  std::int64_t StepsWithoutEnd();
  static constexpr std::int64_t kNever = INT64_MAX;

  /// Every flow moves for `steps`. Returns whether a receiver has ended.
  bool Advance(std::int64_t steps);

 private:
  /// What leads to the ends of one receiver.
  struct Outlook {
    double first_flow = 0;  ///< Steps until the first flow ends; infinity: none does.
    double last_flow = 0;   ///< Until the last one does.
    double per_step = 0;    ///< Bytes.
    bool known = false;
  };

  std::size_t At(std::size_t sender, std::size_t receiver) const { return receiver * senders() + sender; }
  std::span<double> RemainingOf(std::size_t receiver) { return {&remaining_[At(0, receiver)], senders()}; }
  std::span<const double> MovesOf(std::size_t receiver) const { return {&move_[At(0, receiver)], senders()}; }
  const Outlook& Look(std::size_t receiver);
  bool AdvanceReceiver(std::size_t receiver, std::int64_t steps);
  std::int64_t RegularSteps(std::size_t receiver);
  void AdvanceRegularly(std::size_t receiver, std::int64_t steps);
  bool StepReceiver(std::size_t receiver);
  void DropDone();

  const Coflow* coflow_;
  std::vector<double> remaining_, move_;               ///< By receiver, then by sender.
  std::vector<double> left_, stated_left_;             ///< By receiver.
  std::vector<std::uint8_t> ended_, dropped_, moves_;  ///< By receiver.
  std::vector<std::size_t> flows_left_;                ///< By receiver: flows with something left.
  std::vector<std::size_t> live_;                      ///< Receivers of which that is not 0.
  std::vector<Outlook> outlook_;                       ///< By receiver, from where it is now.
  std::vector<double> moving_moves_;                   ///< Scratch: the moves of a receiver that are not 0.
  std::size_t open_ = 0;
  bool moving_ = false;
};

}  // namespace weir::scheduler::coflowsim
