#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {
namespace {

/// CoflowSim's stand-in for pFabric and PDQ. In each step every receiver, in order of ports, takes the first flow of
/// its list whose sender is not taken, and receives a megabyte of it. A new flow goes before the first of the list that
/// has more left than its size. Flows are whole megabytes, so all is in integers, and a choice holds until a flow ends.
class PfpModel final : public Model {
 public:
  explicit PfpModel(std::uint32_t ports) : flows_to_(ports), sender_taken_(ports) {}

  void Start(const Coflow& coflow, std::int64_t now) override;
  void AfterAdmission(std::int64_t /*now*/) override {}
  void AfterDeparture(std::int64_t /*step_begin*/) override {}
  std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) override;

 private:
  struct Flow {
    std::uint32_t sender = 0;
    std::size_t coflow = 0;  ///< Coflow::index
    std::int64_t megabytes = 0;
  };
  struct Choice {
    std::uint32_t receiver = 0;
    std::size_t position = 0;
  };

  void Choose();
  std::int64_t ShortestChosen() const;
  void MoveChosen(std::int64_t steps, std::vector<std::size_t>* ended);

  std::vector<std::vector<Flow>> flows_to_;  ///< Per receiving port.
  std::vector<std::uint8_t> sender_taken_;
  std::vector<Choice> chosen_;
  std::vector<std::size_t> flows_left_;  ///< By Coflow::index.
};

void PfpModel::Start(const Coflow& coflow, std::int64_t /*now*/) {
  flows_left_.resize(std::max(flows_left_.size(), coflow.index + 1));
  flows_left_[coflow.index] = coflow.senders.size() * coflow.receivers.size();
  for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
    const std::int64_t megabytes =
        std::llround(coflow.bytes[r] / static_cast<double>(coflow.senders.size()) / kStepBytes);
    std::vector<Flow> flows;
    for (const std::uint32_t sender : coflow.senders) {
      flows.push_back({sender, coflow.index, megabytes});
    }
    auto& list = flows_to_[coflow.receivers[r]];
    const auto behind =
        std::find_if(list.begin(), list.end(), [megabytes](const Flow& flow) { return flow.megabytes > megabytes; });
    list.insert(behind, flows.begin(), flows.end());
  }
}

void PfpModel::Choose() {
  std::fill(sender_taken_.begin(), sender_taken_.end(), 0);
  chosen_.clear();
  for (std::uint32_t receiver = 0; receiver < flows_to_.size(); ++receiver) {
    const auto& list = flows_to_[receiver];
    const auto first =
        std::find_if(list.begin(), list.end(), [this](const Flow& flow) { return sender_taken_[flow.sender] == 0; });
    if (first != list.end()) {
      sender_taken_[first->sender] = 1;
      chosen_.push_back({receiver, static_cast<std::size_t>(first - list.begin())});
    }
  }
}

std::int64_t PfpModel::ShortestChosen() const {
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (const Choice& choice : chosen_) {
    shortest = std::min(shortest, flows_to_[choice.receiver][choice.position].megabytes);
  }
  return shortest;
}

void PfpModel::MoveChosen(std::int64_t steps, std::vector<std::size_t>* ended) {
  for (const Choice& choice : chosen_) {
    auto& list = flows_to_[choice.receiver];
    Flow& flow = list[choice.position];
    flow.megabytes -= steps;
    if (flow.megabytes > 0) {
      continue;
    }
    if (--flows_left_[flow.coflow] == 0) {
      ended->push_back(flow.coflow);
    }
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(choice.position));
  }
}

std::int64_t PfpModel::Advance(std::int64_t steps, std::vector<std::size_t>* ended) {
  std::int64_t done = 0;
  while (done < steps && ended->empty()) {
    Choose();
    ++allocations_;
    flows_set_ += chosen_.size();
    const std::int64_t next = std::min(steps - done, ShortestChosen());
    MoveChosen(next, ended);
    done += next;
  }
  return done;
}

}  // namespace

std::unique_ptr<Model> MakePfpModel(std::uint32_t ports) {
  return std::make_unique<PfpModel>(ports);
}

}  // namespace weir::scheduler::coflowsim
