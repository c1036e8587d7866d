#include <algorithm>

#include "scheduler/sim/coflowsim/fair_grid.h"
#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {
namespace {

/// Every flow gets the smaller of equal shares at both its ports, set anew in each step. What one port leaves is lost.
class FairModel final : public Model {
 public:
  explicit FairModel(std::uint32_t ports) : counts_(ports), up_(ports), down_(ports) {}

  void Start(const Coflow& coflow, std::int64_t now) override;
  void AfterAdmission(std::int64_t /*now*/) override { Allocate(); }
  void AfterDeparture(std::int64_t /*step_begin*/) override {}
  std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) override;

 private:
  struct Running {
    std::unique_ptr<FairGrid> grid;
    bool ended = false;  ///< Residues of flows go on taking their shares.
  };

  void Allocate();
  void TakeEnds(std::vector<std::size_t>* ended);

  FlowCounts counts_;
  std::vector<double> up_, down_;  ///< Bytes of a flow in a step, by port.
  std::vector<Running> running_;
};

void FairModel::Start(const Coflow& coflow, std::int64_t /*now*/) {
  running_.push_back({std::make_unique<FairGrid>(coflow, &counts_)});
}

void FairModel::Allocate() {
  ++allocations_;
  for (std::size_t port = 0; port < up_.size(); ++port) {
    up_[port] = kStepBytes / std::max(1U, counts_.up[port]);
    down_[port] = kStepBytes / std::max(1U, counts_.down[port]);
  }
  for (const Running& running : running_) {
    flows_set_ += running.grid->flows();
  }
}

std::int64_t FairModel::Advance(std::int64_t steps, std::vector<std::size_t>* ended) {
  std::int64_t done = 0;
  while (done < steps && ended->empty()) {
    bool ends = false;
    for (Running& running : running_) {
      ends |= running.grid->Step(up_, down_);
    }
    ++done;
    if (ends) {
      TakeEnds(ended);
      Allocate();
    }
  }
  return done;
}

void FairModel::TakeEnds(std::vector<std::size_t>* ended) {
  for (Running& running : running_) {
    running.grid->TakeEnds();
    if (!running.ended && running.grid->open_receivers() == 0) {
      running.ended = true;
      ended->push_back(running.grid->coflow().index);
    }
  }
  std::erase_if(running_, [](const Running& running) { return running.ended && !running.grid->has_flows(); });
}

}  // namespace

std::unique_ptr<Model> MakeFairModel(std::uint32_t ports) {
  return std::make_unique<FairModel>(ports);
}

}  // namespace weir::scheduler::coflowsim
