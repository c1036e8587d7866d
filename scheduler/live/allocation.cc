#include "scheduler/live/allocation.h"

namespace weir::scheduler {

namespace {

CoflowSlot NumberOf(CoflowSlot slot) {
  return slot;
}

FlowIndex NumberOf(const Allocation::Running& running) {
  return running.flow;
}

/// Takes a member out of a set: `at` has, by its number, its position + 1, or 0.
template <typename Member>
void TakeOut(std::uint32_t number, std::vector<Member>* set, std::vector<std::uint32_t>* at) {
  std::uint32_t& mine = (*at)[number];
  if (mine == 0) {
    return;
  }
  (*set)[mine - 1] = set->back();
  (*at)[NumberOf(set->back())] = mine;
  set->pop_back();
  mine = 0;
}

/// Puts it in, or another value in its place.
template <typename Member>
void PutIn(const Member& member, std::vector<Member>* set, std::vector<std::uint32_t>* at) {
  std::uint32_t& mine = (*at)[NumberOf(member)];
  if (mine != 0) {
    (*set)[mine - 1] = member;
    return;
  }
  set->push_back(member);
  mine = static_cast<std::uint32_t>(set->size());
}

}  // namespace

Allocation::Allocation(LiveFabric* fabric)
    : fabric_(*fabric), served_at_(fabric->limits.coflows, 0), running_at_(fabric->limits.flows, 0) {
  changed_.reserve(2 * std::size_t{fabric->limits.flows});  // A sweep that gives up, then everything anew.
  served_.reserve(fabric->limits.coflows);
  running_.reserve(fabric->limits.flows);
}

void Allocation::Set(CoflowSlot slot, std::span<const WholeRate> rates) {
  const auto members = fabric_.Members(slot);
  bool served = false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    served |= rates[i] > 0;
    if (members[i].rate != rates[i]) {
      ChangeRate(slot, i, rates[i]);
    }
  }
  if (served) {
    PutIn(slot, &served_, &served_at_);
  } else {
    TakeOut(slot, &served_, &served_at_);
  }
}

void Allocation::SetNothing(CoflowSlot slot) {
  if (served_at_[slot] == 0) {
    return;
  }
  const auto members = fabric_.Members(slot);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].rate != 0) {
      ChangeRate(slot, i, 0);
    }
  }
  TakeOut(slot, &served_, &served_at_);
}

void Allocation::ChangeRate(CoflowSlot slot, std::size_t position, WholeRate rate) {
  const FlowIndex flow = fabric_.Flows(slot)[position];
  fabric_.SetRate(slot, position, rate);
  changed_.push_back(flow);
  if (rate > 0) {
    PutIn(Running{flow, slot, fabric_.Members(slot)[position]}, &running_, &running_at_);
  } else {
    TakeOut(flow, &running_, &running_at_);
  }
}

void Allocation::Forget(CoflowSlot slot) {
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    ForgetFlow(flow);
  }
  TakeOut(slot, &served_, &served_at_);
}

void Allocation::ForgetFlow(FlowIndex flow) {
  TakeOut(flow, &running_, &running_at_);
}

}  // namespace weir::scheduler
