#include "scheduler/live/allocation.h"

namespace weir::scheduler {

Allocation::Allocation(LiveFabric* fabric) : fabric_(*fabric), served_at_(fabric->limits.coflows, 0) {
  changed_.reserve(2 * std::size_t{fabric->limits.flows});  // A sweep that gives up, then everything anew.
  served_.reserve(fabric->limits.coflows);
}

void Allocation::Set(CoflowSlot slot, std::span<const WholeRate> rates) {
  const auto flows = fabric_.Flows(slot);
  bool served = false;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    WholeRate& rate = fabric_.rate[flows[i]];
    served |= rates[i] > 0;
    if (rate != rates[i]) {
      rate = rates[i];
      changed_.push_back(flows[i]);
    }
  }
  SetServed(slot, served);
}

void Allocation::SetNothing(CoflowSlot slot) {
  if (served_at_[slot] == 0) {
    return;
  }
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    if (fabric_.rate[flow] != 0) {
      fabric_.rate[flow] = 0;
      changed_.push_back(flow);
    }
  }
  SetServed(slot, false);
}

void Allocation::Forget(CoflowSlot slot) {
  SetServed(slot, false);
}

void Allocation::SetServed(CoflowSlot slot, bool served) {
  std::uint32_t& at = served_at_[slot];
  if (served == (at != 0)) {
    return;
  }
  if (served) {
    served_.push_back(slot);
    at = static_cast<std::uint32_t>(served_.size());
    return;
  }
  served_[at - 1] = served_.back();
  served_at_[served_.back()] = at;
  served_.pop_back();
  at = 0;
}

}  // namespace weir::scheduler
