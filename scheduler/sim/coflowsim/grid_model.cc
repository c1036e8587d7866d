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

void GridModel::Start(const Coflow& coflow, std::int64_t now) {
  actives_.push_back(std::make_unique<Active>(coflow, now));
  OnStart(actives_.back().get());
}

void GridModel::OnAllocation() {
  ++allocations_;
  for (const auto& active : actives_) {
    flows_set_ += active->grid.OnMoves();
  }
}

std::int64_t GridModel::NextSteps(std::int64_t steps) const {
  std::int64_t quiet = FlowGrid::kNever;
  for (const auto& active : actives_) {
    if (active->grid.moving()) {
      quiet = std::min(quiet, active->grid.StepsWithoutEnd());
    }
  }
  return std::clamp<std::int64_t>(quiet, 1, steps);
}

std::int64_t GridModel::Advance(std::int64_t steps, std::vector<std::size_t>* ended) {
  std::int64_t done = 0;
  while (done < steps && ended->empty()) {
    const std::int64_t next = NextSteps(steps - done);
    for (const auto& active : actives_) {
      if (active->grid.moving() && active->grid.Advance(next) && active->grid.open_receivers() == 0) {
        ended->push_back(active->grid.coflow().index);
        OnEnd(active.get());
      }
    }
    done += next;
  }
  std::erase_if(actives_, [](const auto& active) { return active->grid.open_receivers() == 0; });
  return done;
}

}  // namespace weir::scheduler::coflowsim
