#include "scheduler/live/allocation.h"

namespace weir::scheduler {

namespace {

/// Puts a number into a set, or takes it out: `at` has its position + 1, or 0.
void SetMember(std::uint32_t number, bool member, std::vector<std::uint32_t>* set, std::vector<std::uint32_t>* at) {
  std::uint32_t& mine = (*at)[number];
  if (member == (mine != 0)) {
    return;
  }
  if (member) {
    set->push_back(number);
    mine = static_cast<std::uint32_t>(set->size());
    return;
  }
  (*set)[mine - 1] = set->back();
  (*at)[set->back()] = mine;
  set->pop_back();
  mine = 0;
}

}  // namespace

Allocation::Allocation(LiveFabric* fabric) : fabric_(*fabric), served_at_(fabric->limits.coflows, 0) {
  changed_.reserve(2 * std::size_t{fabric->limits.flows});  // A sweep that gives up, then everything anew.
  served_.reserve(fabric->limits.coflows);
}

void Allocation::Set(CoflowSlot slot, std::span<const WholeRate> rates) {
  const auto flows = fabric_.Flows(slot);
  bool served = false;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    served |= rates[i] > 0;
    if (fabric_.rate[flows[i]] != rates[i]) {
      fabric_.Settle(slot);
      ChangeRate(flows[i], rates[i]);
    }
  }
  SetServed(slot, served);
}

void Allocation::SetNothing(CoflowSlot slot) {
  if (served_at_[slot] == 0) {
    return;
  }
  fabric_.Settle(slot);
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    if (fabric_.rate[flow] != 0) {
      ChangeRate(flow, 0);
    }
  }
  SetServed(slot, false);
}

void Allocation::SetServed(CoflowSlot slot, bool served) {
  fabric_.SetMoving(slot, served);
  SetMember(slot, served, &served_, &served_at_);
}

void Allocation::ChangeRate(FlowIndex flow, WholeRate rate) {
  fabric_.rate[flow] = rate;
  changed_.push_back(flow);
}

void Allocation::Forget(CoflowSlot slot) {
  SetServed(slot, false);
}

}  // namespace weir::scheduler
