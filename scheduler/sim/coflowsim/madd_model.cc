#include <algorithm>
#include <optional>
#include <span>

#include "scheduler/sim/coflowsim/grid_model.h"

namespace weir::scheduler::coflowsim {
namespace {

/// The policies of Varys: coflows one after the other, each with the rates that let its flows end together; what is
/// left goes first to those that got nothing, then to whom the deadline that was drawn is nearest.
class MaddModel final : public GridModel {
 public:
  MaddModel(const Options& options, std::uint32_t ports)
      : GridModel(options.policy == Policy::kLcf),
        policy_(options.policy),
        free_zero_(options.free_zero),
        keeps_deadlines_(options.deadline_factor.has_value()),
        free_(ports),
        used_(ports),
        share_(ports),
        flows_up_(ports),
        flows_down_(ports) {}

  bool Admits(const Coflow& coflow) override;
  void AfterAdmission(std::int64_t now) override;
  void AfterDeparture(std::int64_t step_begin) override { Allocate(step_begin); }

 private:
  void OnStart(Active* active) override;
  void OnEnd(Active* active) override;

  bool Precedes(const Active& a, const Active& b) const;
  std::optional<double> Gamma(const Coflow& coflow, std::span<const double> receive) const;
  std::optional<double> GammaOf(const Active& active);
  void Allocate(std::int64_t now);
  void AllocateInOrder();
  void AllocateOne(double seconds, FlowGrid* grid);
  void ShareAmongSkipped();
  void CountSkipped(const FlowGrid& grid, std::size_t r);
  void ShareSkipped(FlowGrid* grid, std::size_t r);
  void Backfill(std::int64_t now);
  void BackfillOne(FlowGrid* grid);

  Policy policy_;
  double free_zero_;  ///< Options::free_zero, for rates as well.
  bool keeps_deadlines_;
  std::vector<Active*> sorted_;   ///< Fixed when they start.
  std::vector<Active*> skipped_;  ///< Got nothing in the last allocation.
  Capacity free_, used_, share_;
  std::vector<std::uint32_t> flows_up_, flows_down_;
  std::vector<double> send_, receive_;  ///< Scratch: bytes per sender and receiver of one coflow.
};

/// A trial, as CoflowSim makes it: the rates of all that run are set to zero and stay so if nobody is admitted.
bool MaddModel::Admits(const Coflow& coflow) {
  if (!keeps_deadlines_) {
    return true;
  }
  AllocateInOrder();
  for (Active* active : sorted_) {
    active->grid.ClearMoves();
  }
  OnAllocation();
  send_.assign(coflow.senders.size(), 0.0);
  for (double& bytes : send_) {
    for (const double received : coflow.bytes) {
      bytes += received / static_cast<double>(coflow.senders.size());
    }
  }
  const auto gamma = Gamma(coflow, coflow.bytes);
  return gamma.has_value() && *gamma <= coflow.deadline_ms / 1000.0;
}

void MaddModel::AfterAdmission(std::int64_t now) {
  for (Active* active : sorted_) {
    active->grid.DropEndedReceivers();
  }
  Allocate(now);
}

void MaddModel::OnStart(Active* active) {
  const auto behind = std::find_if(sorted_.begin(), sorted_.end(),
                                   [this, active](const Active* other) { return Precedes(*active, *other); });
  sorted_.insert(behind, active);
}

void MaddModel::OnEnd(Active* active) {
  std::erase(sorted_, active);
}

bool MaddModel::Precedes(const Active& a, const Active& b) const {
  const Coflow& first = a.grid.coflow();
  const Coflow& second = b.grid.coflow();
  const auto sum = [](std::span<const double> values) {
    double total = 0;
    for (const double value : values) {
      total += value;
    }
    return total;
  };
  switch (policy_) {
    case Policy::kScf:
      return first.largest / static_cast<double>(first.senders.size()) <
             second.largest / static_cast<double>(second.senders.size());
    case Policy::kNcf:
      return std::min(first.senders.size(), first.receivers.size()) <
             std::min(second.senders.size(), second.receivers.size());
    case Policy::kLcf:
      return sum(a.grid.stated_left()) < sum(b.grid.stated_left());
    case Policy::kSebf:
      return first.bottleneck < second.bottleneck;
    default:
      return false;
  }
}

/// Seconds until the last flow could end on the free capacity, with `send_` to send; none where a port has nothing
/// free. A receiver that has ended may have less than nothing to receive and its port less than nothing free: CoflowSim
/// divides one by the other, and so does this.
std::optional<double> MaddModel::Gamma(const Coflow& coflow, std::span<const double> receive) const {
  double gamma = 0;
  const auto visit = [&gamma, this](double bytes, double free) {
    const double seconds = bytes * 8 / free;
    gamma = seconds > gamma ? seconds : gamma;
    return bytes <= 0 || free > free_zero_;
  };
  for (std::size_t s = 0; s < coflow.senders.size(); ++s) {
    if (!visit(send_[s], free_.up[coflow.senders[s]])) {
      return std::nullopt;
    }
  }
  for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
    if (!visit(receive[r], free_.down[coflow.receivers[r]])) {
      return std::nullopt;
    }
  }
  return gamma;
}

std::optional<double> MaddModel::GammaOf(const Active& active) {
  const FlowGrid& grid = active.grid;
  for (const std::size_t r : grid.live_receivers()) {
    if (grid.left(r) > 0 && free_.down[grid.coflow().receivers[r]] <= free_zero_) {
      return std::nullopt;  // Gamma would say so too, but this needs no look at the flows.
    }
  }
  send_.assign(grid.senders(), 0.0);
  receive_.assign(grid.receivers(), 0.0);
  for (std::size_t r = 0; r < grid.receivers(); ++r) {
    receive_[r] = grid.left(r);
  }
  for (const std::size_t r : grid.live_receivers()) {
    for (std::size_t s = 0; s < grid.senders(); ++s) {
      send_[s] += grid.remaining(s, r);
    }
  }
  return Gamma(grid.coflow(), receive_);
}

void MaddModel::Allocate(std::int64_t now) {
  AllocateInOrder();
  ShareAmongSkipped();
  Backfill(now);
  OnAllocation();
}

void MaddModel::AllocateInOrder() {
  free_.Fill(kPortBits);
  skipped_.clear();
  for (Active* active : sorted_) {
    active->grid.ClearMoves();
    const auto gamma = GammaOf(*active);
    if (!gamma) {
      skipped_.push_back(active);
      continue;
    }
    used_.Fill(0);
    AllocateOne(keeps_deadlines_ ? active->grid.coflow().deadline_ms / 1000 : *gamma, &active->grid);
    free_.Subtract(used_);
  }
}

/// Rates with which every flow needs `seconds`.
void MaddModel::AllocateOne(double seconds, FlowGrid* grid) {
  const Coflow& coflow = grid->coflow();
  for (const std::size_t r : grid->live_receivers()) {
    const std::uint32_t to = coflow.receivers[r];
    if (free_.down[to] <= free_zero_) {
      continue;
    }
    for (std::size_t s = 0; s < grid->senders(); ++s) {
      const double remaining = grid->remaining(s, r);
      if (remaining == 0) {
        continue;
      }
      const std::uint32_t from = coflow.senders[s];
      double rate = remaining * 8 / seconds;
      if (rate > free_.up[from] || rate > free_.down[to]) {
        rate = std::min(free_.up[from], free_.down[to]);
      }
      used_.up[from] += rate;
      used_.down[to] += rate;
      grid->move(s, r) = rate / kBitsPerStepByte;
    }
  }
}

/// All flows of skipped coflows alike: the smaller of equal shares at both ports. What one port leaves is lost.
void MaddModel::ShareAmongSkipped() {
  std::fill(flows_up_.begin(), flows_up_.end(), 0);
  std::fill(flows_down_.begin(), flows_down_.end(), 0);
  const auto for_each_receiver = [this](auto visit) {
    for (Active* active : skipped_) {
      for (const std::size_t r : active->grid.live_receivers()) {
        if (free_.down[active->grid.coflow().receivers[r]] > free_zero_) {
          visit(&active->grid, r);
        }
      }
    }
  };
  for_each_receiver([this](FlowGrid* grid, std::size_t r) { CountSkipped(*grid, r); });
  share_.SetShares(free_, flows_up_, flows_down_);
  used_.Fill(0);
  for_each_receiver([this](FlowGrid* grid, std::size_t r) { ShareSkipped(grid, r); });
  free_.Subtract(used_);
}

void MaddModel::CountSkipped(const FlowGrid& grid, std::size_t r) {
  std::uint32_t flows = 0;
  for (std::size_t s = 0; s < grid.senders(); ++s) {
    const std::uint32_t from = grid.coflow().senders[s];
    const bool counts = grid.remaining(s, r) > 0 && free_.up[from] > free_zero_;
    flows_up_[from] += counts ? 1U : 0U;
    flows += counts ? 1U : 0U;
  }
  flows_down_[grid.coflow().receivers[r]] += flows;
}

void MaddModel::ShareSkipped(FlowGrid* grid, std::size_t r) {
  const std::uint32_t to = grid->coflow().receivers[r];
  const double share = share_.down[to];
  double used = used_.down[to];
  for (std::size_t s = 0; s < grid->senders(); ++s) {
    const std::uint32_t from = grid->coflow().senders[s];
    if (grid->remaining(s, r) > 0 && free_.up[from] > free_zero_) {
      double rate = std::min(share_.up[from], share);
      rate = rate <= free_zero_ ? 0.0 : rate;
      used_.up[from] += rate;
      used += rate;
      grid->move(s, r) = rate / kBitsPerStepByte;
    }
  }
  used_.down[to] = used;
}

/// Flow by flow all that is free, coflows in order of the deadlines that were drawn, cut to whole milliseconds from
/// now.
void MaddModel::Backfill(std::int64_t now) {
  std::vector<Active*> by_deadline = sorted_;
  const auto left = [now](const Active* active) {
    const double deadline = static_cast<double>(active->start_ms) + active->grid.coflow().deadline_ms;
    return static_cast<std::int64_t>(deadline - static_cast<double>(now));
  };
  std::stable_sort(by_deadline.begin(), by_deadline.end(),
                   [&left](const Active* a, const Active* b) { return left(a) < left(b); });
  for (Active* active : by_deadline) {
    BackfillOne(&active->grid);
  }
}

void MaddModel::BackfillOne(FlowGrid* grid) {
  const Coflow& coflow = grid->coflow();
  for (const std::size_t r : grid->live_receivers()) {
    double& down = free_.down[coflow.receivers[r]];
    for (std::size_t s = 0; s < grid->senders() && down > free_zero_; ++s) {
      double& up = free_.up[coflow.senders[s]];
      const double rate = std::min(up, down);
      if (grid->remaining(s, r) > 0 && rate > free_zero_) {
        grid->move(s, r) += rate / kBitsPerStepByte;
        up -= rate;
        down -= rate;
      }
    }
  }
}

}  // namespace

std::unique_ptr<Model> MakeMaddModel(const Options& options, std::uint32_t ports) {
  return std::make_unique<MaddModel>(options, ports);
}

}  // namespace weir::scheduler::coflowsim
