#include "scheduler/turns/turns.h"

#include <string>

#include "scheduler/turns/rates.h"

namespace weir::scheduler {

TurnsPolicy::TurnsPolicy(TurnOptions options) : options_(options) {}

void TurnsPolicy::Decide(FabricState& state, Nanoseconds now, Decision& decision) {
  decision.lanes.assign(state.lanes.size(), LaneDecision{});
  GroupLanes(state);
  Remember(state, now);
  Order(state, now);
  Grant(state, now, decision);
  Settle(state, now, decision);
}

std::span<const std::uint32_t> TurnsPolicy::LanesOf(std::uint32_t job) const {
  return std::span(lanes_).subspan(lane_first_[job], lane_first_[job + 1] - lane_first_[job]);
}

Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name) {
  if (name == "turns") return std::make_unique<TurnsPolicy>();
  if (name == "fifo") return std::make_unique<TurnsPolicy>(TurnOptions{.levels = false});
  if (name == "max-min") return std::make_unique<MaxMinPolicy>();
  if (name == "none") return std::make_unique<NonePolicy>();
  return Error(StatusCode::kInvalidArgument,
               "policy \"" + std::string(name) + "\" is not known; use turns, fifo, max-min or none");
}

}  // namespace weir::scheduler
