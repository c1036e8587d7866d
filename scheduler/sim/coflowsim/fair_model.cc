#include <algorithm>

#include "scheduler/sim/coflowsim/fair_coflow.h"
#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Every flow gets the smaller of equal shares at both its ports, set anew in each step. What one port leaves is lost.
///
/// A flow is looked at only when it may end; it waits at the port that gave it less. So a step costs nothing in which
/// no flow may end, and a change of a share costs each flow that it concerns a few instructions, when it is looked at.
class FairModel final : public Model {
 public:
  FairModel(std::uint32_t ports, double doubt)
      : doubt_(doubt),
        ports_(ports),
        touched_(2 * std::size_t{ports}),
        next_(touched_.size(), kNoStep),
        next_of_block_((touched_.size() + kBlock - 1) / kBlock, kNoStep) {}

  void Start(const Coflow& coflow, std::int64_t now) override;
  void AfterAdmission(std::int64_t now) override;
  void AfterDeparture(std::int64_t /*step_begin*/) override {}
  std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) override;

 private:
  static constexpr std::size_t kBlock = 16;

  FairPort& PortAt(std::size_t index) {
    return index < ports_.up.size() ? ports_.up[index] : ports_.down[index - ports_.up.size()];
  }
  std::size_t UpIndex(std::uint32_t port) const { return port; }
  std::size_t DownIndex(std::uint32_t port) const { return ports_.up.size() + port; }
  void Touch(std::size_t index);
  void UpdateTouched();
  void LetWait(FairPort::Waiting waiting);
  void LookAtDue(std::vector<std::size_t>* ended);
  void CloseCoflows(bool flows_end, std::vector<std::size_t>* ended);
  void CountAllocation();

  double doubt_;
  Step now_ = 0;
  FairPorts ports_;
  std::vector<std::uint8_t> touched_;  ///< By index of a port, as the next one.
  std::vector<Step> next_;             ///< FairPort::next.
  std::vector<Step> next_of_block_;    ///< The least of them, by block of ports.
  std::vector<std::size_t> touched_ports_;
  std::vector<std::unique_ptr<FairCoflow>> running_;  ///< By slot; null: free.
  std::vector<std::uint32_t> free_slots_, fresh_;     ///< Slots; those that wait for their first share.
  std::vector<FairPort::Waiting> due_, goes_on_;      ///< Scratch.
  std::size_t flows_ = 0;                             ///< That have not ended.
};

void FairModel::Start(const Coflow& coflow, std::int64_t /*now*/) {
  if (flows_ == 0) {
    for (std::size_t index = 0; index < next_.size(); ++index) {
      PortAt(index).Forget(now_);
    }
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(running_.size()));
    running_.emplace_back();
  }
  const std::uint32_t slot = free_slots_.back();
  free_slots_.pop_back();
  running_[slot] = std::make_unique<FairCoflow>(coflow, now_, doubt_, ports_);
  fresh_.push_back(slot);
  flows_ += running_[slot]->flows();
  for (const std::uint32_t sender : coflow.senders) {
    ports_.up[sender].AddFlows(static_cast<std::uint32_t>(coflow.receivers.size()));
    Touch(UpIndex(sender));
  }
  for (const std::uint32_t receiver : coflow.receivers) {
    ports_.down[receiver].AddFlows(static_cast<std::uint32_t>(coflow.senders.size()));
    Touch(DownIndex(receiver));
  }
}

/// Flows that have started choose where to wait by the shares that they have now.
void FairModel::AfterAdmission(std::int64_t /*now*/) {
  UpdateTouched();
  for (const std::uint32_t slot : fresh_) {
    for (std::uint32_t flow = 0; flow < running_[slot]->flows(); ++flow) {
      LetWait({slot, flow});
    }
  }
  fresh_.clear();
  UpdateTouched();
  CountAllocation();
}

void FairModel::CountAllocation() {
  ++allocations_;
  flows_set_ += flows_;
}

void FairModel::Touch(std::size_t index) {
  if (touched_[index] == 0) {
    touched_[index] = 1;
    touched_ports_.push_back(index);
  }
}

void FairModel::UpdateTouched() {
  for (const std::size_t index : touched_ports_) {
    touched_[index] = 0;
    PortAt(index).Update(now_);
    next_[index] = PortAt(index).next();
  }
  for (const std::size_t index : touched_ports_) {
    const std::size_t block = index / kBlock;
    const auto first = next_.begin() + static_cast<std::ptrdiff_t>(block * kBlock);
    const std::size_t ports = std::min(kBlock, next_.size() - block * kBlock);
    next_of_block_[block] = *std::min_element(first, first + static_cast<std::ptrdiff_t>(ports));
  }
  touched_ports_.clear();
}

void FairModel::LetWait(FairPort::Waiting waiting) {
  const FairCoflow& coflow = *running_[waiting.coflow];
  const std::uint32_t up = coflow.sender(waiting.flow);
  const std::uint32_t down = coflow.receiver(waiting.flow);
  const bool at_sender = ports_.up[up].share() < ports_.down[down].share();
  const std::size_t index = at_sender ? UpIndex(up) : DownIndex(down);
  PortAt(index).Wait(coflow.Unseen(waiting.flow), now_, waiting);
  Touch(index);
}

std::int64_t FairModel::Advance(std::int64_t steps, std::vector<std::size_t>* ended) {
  const Step begin = now_;
  const auto end = static_cast<Step>(begin + steps);
  while (now_ < end && ended->empty()) {
    now_ = std::min(end, *std::min_element(next_of_block_.begin(), next_of_block_.end()));
    LookAtDue(ended);
  }
  return now_ - begin;
}

void FairModel::LookAtDue(std::vector<std::size_t>* ended) {
  due_.clear();
  for (std::size_t block = 0; block < next_of_block_.size(); ++block) {
    const std::size_t end = std::min((block + 1) * kBlock, next_.size());
    for (std::size_t index = block * kBlock; next_of_block_[block] == now_ && index < end; ++index) {
      if (next_[index] == now_) {
        PortAt(index).TakeDue(now_, &due_);
        Touch(index);
      }
    }
  }
  goes_on_.clear();
  bool flows_end = false;
  for (const FairPort::Waiting& waiting : due_) {
    FairCoflow& coflow = *running_[waiting.coflow];
    if (!coflow.Look(waiting.flow, now_, ports_)) {
      goes_on_.push_back(waiting);
      continue;
    }
    flows_end = true;
    --flows_;
    for (const std::size_t index : {UpIndex(coflow.sender(waiting.flow)), DownIndex(coflow.receiver(waiting.flow))}) {
      PortAt(index).RemoveFlow();
      Touch(index);
    }
  }
  for (const FairPort::Waiting& waiting : goes_on_) {
    LetWait(waiting);
  }
  CloseCoflows(flows_end, ended);
  UpdateTouched();
}

/// Looks at all coflows of which a flow was looked at. Residues of flows go on taking their shares after the end.
void FairModel::CloseCoflows(bool flows_end, std::vector<std::size_t>* ended) {
  bool receivers_end = false;
  for (const FairPort::Waiting& waiting : due_) {
    auto& coflow = running_[waiting.coflow];
    if (coflow == nullptr) {
      continue;
    }
    const std::size_t open = coflow->open_receivers();
    if (coflow->CloseReceivers(now_, ports_)) {
      receivers_end = true;
      if (open > 0 && coflow->open_receivers() == 0) {
        ended->push_back(coflow->coflow().index);
      }
    }
    if (coflow->flows_left() == 0) {
      coflow.reset();
      free_slots_.push_back(waiting.coflow);
    }
  }
  if (flows_end || receivers_end) {
    CountAllocation();
  }
}

}  // namespace

std::unique_ptr<Model> MakeFairModel(std::uint32_t ports, double doubt) {
  return std::make_unique<FairModel>(ports, doubt);
}

}  // namespace weir::scheduler::coflowsim
