#include <algorithm>
#include <array>

#include "scheduler/sim/coflowsim/grid_model.h"

namespace weir::scheduler::coflowsim {
namespace {

constexpr std::size_t kQueues = 10;
constexpr double kFirstLimit = 10 * 1'048'576.0;  ///< Bytes.
constexpr double kFactor = 10;

/// The queue for a coflow by what it has moved. CoflowSim adds up what flows move; here it is what is left that counts,
/// which may differ in the last bits.
int QueueOf(const FlowGrid& grid) {
  double moved = 0;
  for (std::size_t r = 0; r < grid.receivers(); ++r) {
    moved += grid.coflow().bytes[r] - std::max(0.0, grid.left(r));
  }
  int queue = 0;
  for (double limit = kFirstLimit; limit < moved; limit *= kFactor) {
    ++queue;
  }
  return queue;
}

/// Aalo as CoflowSim has it: queues in strict order, first in first out inside; a coflow moves down only when somebody
/// starts or ends. Every coflow shares what is free equally among its flows at each port; what one port leaves is lost.
class DarkModel final : public GridModel {
 public:
  explicit DarkModel(std::uint32_t ports)
      : GridModel(false), free_(ports), used_(ports), share_(ports), flows_up_(ports), flows_down_(ports) {}

  void AfterAdmission(std::int64_t /*now*/) override { Allocate(); }
  void AfterDeparture(std::int64_t /*step_begin*/) override { Allocate(); }

 private:
  void OnStart(Active* active) override { queues_[0].push_back(active); }
  void OnEnd(Active* active) override;

  void Demote();
  void Allocate();
  void AllocateOne(FlowGrid* grid);
  void CountFlows(const FlowGrid& grid);

  std::array<std::vector<Active*>, kQueues> queues_;
  Capacity free_, used_, share_;
  std::vector<std::uint32_t> flows_up_, flows_down_;
};

void DarkModel::OnEnd(Active* active) {
  for (auto& queue : queues_) {
    std::erase(queue, active);
  }
}

void DarkModel::Demote() {
  for (std::size_t q = 0; q + 1 < kQueues; ++q) {
    const auto moves = [](Active* active) { return active->queue < QueueOf(active->grid); };
    for (Active* active : queues_[q]) {
      if (moves(active)) {
        queues_[q + 1].push_back(active);
      }
    }
    std::erase_if(queues_[q], moves);
    for (Active* active : queues_[q + 1]) {
      active->queue = static_cast<int>(q + 1);
    }
  }
}

void DarkModel::Allocate() {
  Demote();
  free_.Fill(kPortBits);
  for (const auto& queue : queues_) {
    for (Active* active : queue) {
      active->grid.DropEndedReceivers();
      active->grid.ClearMoves();
      AllocateOne(&active->grid);
    }
  }
  OnAllocation();
}

void DarkModel::CountFlows(const FlowGrid& grid) {
  std::fill(flows_up_.begin(), flows_up_.end(), 0);
  std::fill(flows_down_.begin(), flows_down_.end(), 0);
  for (const std::size_t r : grid.live_receivers()) {
    const std::uint32_t to = grid.coflow().receivers[r];
    for (std::size_t s = 0; s < grid.senders() && free_.down[to] > kZero; ++s) {
      const std::uint32_t from = grid.coflow().senders[s];
      if (grid.remaining(s, r) > 0 && free_.up[from] > kZero) {
        ++flows_up_[from];
        ++flows_down_[to];
      }
    }
  }
}

void DarkModel::AllocateOne(FlowGrid* grid) {
  CountFlows(*grid);
  share_.SetShares(free_, flows_up_, flows_down_);
  used_.Fill(0);
  for (const std::size_t r : grid->live_receivers()) {
    const std::uint32_t to = grid->coflow().receivers[r];
    for (std::size_t s = 0; s < grid->senders() && flows_down_[to] > 0; ++s) {
      const std::uint32_t from = grid->coflow().senders[s];
      if (grid->remaining(s, r) == 0 || free_.up[from] <= kZero) {
        continue;
      }
      double rate = std::min(share_.up[from], share_.down[to]);
      rate = rate <= kZero ? 0.0 : rate;
      used_.up[from] += rate;
      used_.down[to] += rate;
      grid->move(s, r) = rate / kBitsPerStepByte;
    }
  }
  free_.Subtract(used_);
}

}  // namespace

std::unique_ptr<Model> MakeDarkModel(std::uint32_t ports) {
  return std::make_unique<DarkModel>(ports);
}

}  // namespace weir::scheduler::coflowsim
