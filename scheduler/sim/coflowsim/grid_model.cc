#include "scheduler/sim/coflowsim/grid_model.h"

#include <algorithm>

namespace weir::scheduler::coflowsim {

void Capacity::Fill(double value) {
  std::fill(up.begin(), up.end(), value);
  std::fill(down.begin(), down.end(), value);
}

void Capacity::Subtract(const Capacity& used) {
  for (std::size_t port = 0; port < up.size(); ++port) {
    up[port] -= used.up[port];
    down[port] -= used.down[port];
  }
}

void Capacity::SetShares(const Capacity& free, std::span<const std::uint32_t> flows_up,
                         std::span<const std::uint32_t> flows_down) {
  for (std::size_t port = 0; port < up.size(); ++port) {
    up[port] = free.up[port] / flows_up[port];
    down[port] = free.down[port] / flows_down[port];
  }
}

void GridModel::Start(const Coflow& coflow, std::int64_t now) {
  actives_.push_back(std::make_unique<Active>(coflow, now, counts_stated_));
  OnStart(actives_.back().get());
}

void GridModel::OnAllocation() {
  ++allocations_;
  for (const auto& active : actives_) {
    flows_set_ += active->grid.OnMoves();
  }
}

/// Until the first of them may end, and `steps` at most.
std::int64_t GridModel::NextSteps(std::int64_t steps) const {
  std::int64_t next = steps;
  for (const auto& active : actives_) {
    if (active->grid.moving()) {
      next = std::min(next, active->quiet - active->behind);
    }
  }
  return next;
}

void GridModel::Look(Active* active) {
  active->quiet = std::max<std::int64_t>(1, active->grid.StepsWithoutEnd());
  active->behind = 0;
}

/// Between two allocations coflows do not depend on each other, so each goes on only when it may end.
std::int64_t GridModel::Advance(std::int64_t steps, std::vector<std::size_t>* ended) {
  for (const auto& active : actives_) {
    Look(active.get());
  }
  std::int64_t done = 0;
  while (done < steps && ended->empty()) {
    const std::int64_t next = NextSteps(steps - done);
    for (const auto& active : actives_) {
      active->behind += next;
      if (active->behind == active->quiet && active->grid.moving()) {
        if (active->grid.Advance(active->quiet) && active->grid.open_receivers() == 0) {
          ended->push_back(active->grid.coflow().index);
          OnEnd(active.get());
        }
        Look(active.get());
      }
    }
    done += next;
  }
  for (const auto& active : actives_) {
    if (active->grid.moving() && active->behind > 0) {
      active->grid.Advance(active->behind);
    }
  }
  std::erase_if(actives_, [](const auto& active) { return active->grid.open_receivers() == 0; });
  return done;
}

}  // namespace weir::scheduler::coflowsim
