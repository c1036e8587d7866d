#include "scheduler/live/sweep.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace weir::scheduler {

Sweep::Sweep(LiveFabric* fabric, const RankedOrder& order, LinkQueues* queues, Allocation* allocation, RateFill* fill)
    : fabric_(*fabric),
      order_(order),
      queues_(*queues),
      allocation_(*allocation),
      fill_(*fill),
      state_(fabric->links()),
      visited_(fabric->limits.coflows, 0),
      room_(fabric->links(), 0) {
  touched_.reserve(fabric->links());
  found_.reserve(fabric->links());
  forced_.reserve(fabric->limits.flows);
  const std::size_t entries = std::size_t{fabric->limits.flows} * fabric->limits.hops;
  before_.reserve(entries);
  seeds_.reserve(entries);
  heap_.reserve(2 * entries);
  unconcerned_.reserve(fabric->links());
}

void Sweep::Touch(LinkIndex link) {
  LinkState& state = state_[link];
  if (state.touched == number_) {
    return;
  }
  state.touched = number_;
  state.before_begin = static_cast<std::uint32_t>(before_.size());
  state.before_capacity = fabric_.capacity[link];
  for (const LinkQueues::User& user : queues_.Users(link)) {
    before_.push_back({order_.label(user.slot), user.rate, user.slot});
  }
  state.before_count = static_cast<std::uint32_t>(before_.size()) - state.before_begin;
  touched_.push_back(link);
}

void Sweep::Seed(LinkIndex link, std::uint64_t label) {
  seeds_.push_back({label, LiveFabric::kNobody, link, kSeeded});
}

bool Sweep::WasUsedBetween(LinkIndex link, std::uint64_t front, std::uint64_t back) const {
  if (touched_.empty() || state_[link].touched != number_) {
    return false;
  }
  const auto before = std::span(before_).subspan(state_[link].before_begin, state_[link].before_count);
  const auto at = std::ranges::lower_bound(before, front, {}, &Before::label);
  return at != before.end() && at->label <= back;
}

void Sweep::Force(CoflowSlot slot) {
  forced_.push_back(slot);
}

void Sweep::Reset() {
  for (const LinkIndex link : touched_) {
    state_[link].open = false;
  }
  ++number_;
  before_.clear();
  touched_.clear();
  seeds_.clear();
  forced_.clear();
  heap_.clear();
}

bool Sweep::Run(LiveRates how, std::uint64_t most_visits) {
  how_ = how;
  Start();
  while (!heap_.empty() && work_.visits <= most_visits) {
    TakeAllAt(heap_.front().label);
  }
  const bool done = heap_.empty();
  Finish();
  return done;
}

void Sweep::Start() {
  work_ = {};
  for (const Stop& seed : seeds_) {
    Push(seed);
  }
  for (const CoflowSlot slot : forced_) {
    if (fabric_.IsLive(slot)) {
      Push({order_.label(slot), slot, kForced, 0});
    }
  }
}

/// Links that are open to the end of the order.
void Sweep::Finish() {
  for (const LinkIndex link : touched_) {
    if (state_[link].open) {
      queues_.FindFullFrom(link);
    }
  }
  Reset();
}

void Sweep::Push(const Stop& stop) {
  heap_.push_back(stop);
  std::ranges::push_heap(heap_, std::ranges::greater{}, &Stop::label);
}

Sweep::Stop Sweep::Pop() {
  std::ranges::pop_heap(heap_, std::ranges::greater{}, &Stop::label);
  const Stop stop = heap_.back();
  heap_.pop_back();
  return stop;
}

/// A coflow that no link asks to visit is passed on all that stop at it.
void Sweep::TakeAllAt(std::uint64_t label) {
  unconcerned_.clear();
  while (!heap_.empty() && heap_.front().label == label) {
    const Stop stop = Pop();
    if (IsUnconcerned(stop)) {
      unconcerned_.push_back(stop);
    } else {
      Take(stop);
    }
  }
  for (const Stop& stop : unconcerned_) {
    LinkState& state = state_[stop.link];
    if (stop.version == state.version) {
      state.left -= state.stop_use;
      TakeOffBefore(&state, label);
      GoOn(stop.link, label);
    }
  }
}

/// Whether the link was no bottleneck for the coflow, and is none: it uses the same as before, and then as now so much
/// stays that no rounding of the others' shares makes this link the narrowest one. Rates are whole numbers, so where
/// one link is given out, a flow may get less than the share by what others of its links had given beyond theirs. A
/// byte/s of that starts at each flow, at most doubles with each link that it passes on over, and stays within one
/// coflow.
bool Sweep::IsUnconcerned(const Stop& stop) const {
  if (stop.link == kForced || stop.version == kSeeded || stop.version != state_[stop.link].version) {
    return false;
  }
  const LinkState& state = state_[stop.link];
  if (state.stop_use == 0 || state.before_next == state.before_count) {
    return false;
  }
  const Before& before = before_[state.before_begin + state.before_next];
  const auto flows = static_cast<double>(fabric_.Flows(stop.slot).size());
  const auto stays = static_cast<double>(std::min(state.before_left, state.left) - state.stop_use);
  return before.label == stop.label && before.rate == state.stop_use &&
         stays > flows * (flows + 1) * std::exp2(fabric_.longest_path);
}

void Sweep::Take(const Stop& stop) {
  if (stop.link == kForced) {
    if (visited_[stop.slot] != number_) {
      Visit(stop.slot);
    }
    return;
  }
  LinkState& state = state_[stop.link];
  if (stop.version == kSeeded) {
    if (!state.open) {
      Open(stop.link, stop.label);
    }
  } else if (stop.version == state.version) {
    if (stop.slot != LiveFabric::kNobody) {
      Visit(stop.slot);
    } else {
      TakeOffBefore(&state, stop.label);
      GoOn(stop.link, stop.label);
    }
  }
}

void Sweep::Visit(CoflowSlot slot) {
  ++work_.visits;
  visited_[slot] = number_;
  const std::uint64_t label = order_.label(slot);
  fabric_.PrefetchPathsOf(slot);
  found_.clear();
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    room_[row.link] = 0;
    if (queues_.full_from(row.link) >= label) {
      room_[row.link] = RoomAt(row.link, label);
      found_.push_back({row.link, room_[row.link]});
    }
  }
  fabric_.PrefetchPaths(slot);
  fill_.Fill(fabric_, fabric_.Flows(slot), how_, &room_);
  allocation_.Set(slot, fill_.rates());
  for (const RateFill::Use& before : found_) {
    Pass(before.link, slot, UseOf(before));
  }
}

/// What the coflow that was filled last uses of a link. Max-min shares are whole bytes per second: a flow that took
/// part and was given nothing is a use of 0, because it takes part again when the link changes, and others may then get
/// something else. Of greedy rates it is none: earlier flows took all that it could have, without this link.
std::optional<WholeRate> Sweep::UseOf(const RateFill::Use& before) const {
  const WholeRate use = before.rate - room_[before.link];
  const auto& filled = fill_.uses();
  if (use == 0 &&
      (how_ != LiveRates::kMaxMin || std::ranges::find(filled, before.link, &RateFill::Use::link) == filled.end())) {
    return std::nullopt;
  }
  return use;
}

/// Of a link that is not full in front of the label.
WholeRate Sweep::RoomAt(LinkIndex link, std::uint64_t label) const {
  return state_[link].open ? state_[link].left : fabric_.capacity[link] - queues_.UsedBefore(link, label);
}

/// The sweep goes past the coflow on this link, where it now uses so much.
void Sweep::Pass(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> use) {
  LinkState& state = state_[link];
  const std::uint64_t label = order_.label(slot);
  if (!state.open) {
    if (queues_.UseOf(link, slot) == use) {
      return;
    }
    Touch(link);
    queues_.SetUse(link, slot, use);
    Open(link, label);
    return;
  }
  queues_.SetUse(link, slot, use);
  state.left -= use.value_or(0);
  TakeOffBefore(&state, label);
  GoOn(link, label);
}

void Sweep::Open(LinkIndex link, std::uint64_t label) {
  LinkState& state = state_[link];
  state.stop_at = kNotRead;
  state.before_next = 0;
  state.before_left = state.before_capacity;
  TakeOffBefore(&state, label);
  state.left = fabric_.capacity[link] - queues_.UsedBefore(link, label + 1);
  GoOn(link, label);
}

void Sweep::TakeOffBefore(LinkState* state, std::uint64_t label) const {
  for (; state->before_next < state->before_count; ++state->before_next) {
    const Before& user = before_[state->before_begin + state->before_next];
    if (user.label > label) {
      return;
    }
    state->before_left -= user.rate;
  }
}

/// Behind a stop: the link closes if it is as before from here on, else the next stop is looked for.
void Sweep::GoOn(LinkIndex link, std::uint64_t label) {
  LinkState& state = state_[link];
  ++state.version;
  state.open = state.left != state.before_left;
  if (state.open) {
    queues_.SetFullFrom(link, LinkQueues::kNowhere);
    FindStop(link, label);
  } else {
    queues_.FindFullFrom(link);
  }
}

void Sweep::FindStop(LinkIndex link, std::uint64_t label) {
  LinkState& state = state_[link];
  const LinkQueues::User* const user = queues_.NextUser(link, label);
  Stop next{LinkQueues::kNowhere, LiveFabric::kNobody, link, state.version};
  state.stop_use = 0;
  if (user != nullptr) {
    next.label = order_.label(user->slot);
    next.slot = user->slot;
    state.stop_use = user->rate;
  }
  if (state.before_next < state.before_count) {
    const Before& before = before_[state.before_begin + state.before_next];
    if (before.label < next.label) {
      next.label = before.label;
      next.slot = OwnerOf(link, before);
      state.stop_use = 0;
    }
  }
  if (state.before_left == 0 && FindFlow(link, label, next.label)) {
    return;
  }
  if (next.label != LinkQueues::kNowhere) {
    Push(next);
  }
}

/// Stops at the first flow behind `label` and in front of `end` that can run where nobody could before. Nothing is read
/// twice while the link is open: who could not run when it was read had another link that was full, and is found there
/// when that one opens.
bool Sweep::FindFlow(LinkIndex link, std::uint64_t label, std::uint64_t end) {
  LinkState& state = state_[link];
  if (state.stop_at == kNotRead) {
    state.stop_at = static_cast<std::uint32_t>(queues_.Behind(link, label));
  }
  do {
    for (const auto head = queues_.Head(link); state.stop_at < head.size(); ++state.stop_at) {
      ++work_.entries;
      const LinkQueues::Entry& entry = head[state.stop_at];
      const std::uint64_t entry_label = order_.label(entry.slot);
      if (entry_label >= end) {
        return false;
      }
      if (entry_label > label && queues_.full_from(entry.other) >= entry_label && CanRun(entry.flow, entry_label)) {
        state.stop_use = 0;
        Push({entry_label, entry.slot, link, state.version});
        return true;
      }
    }
  } while (queues_.Extend(link));
  return false;
}

/// Who used the link with this label, if it still stands there, or kNobody. Who came to that place since was announced.
CoflowSlot Sweep::OwnerOf(LinkIndex link, const Before& before) const {
  if (!fabric_.IsLive(before.slot) || order_.label(before.slot) != before.label) {
    return LiveFabric::kNobody;
  }
  const bool here = std::ranges::any_of(fabric_.Rows(before.slot),
                                        [&](const LiveFabric::Row& row) { return row.link == link && row.flows > 0; });
  return here ? before.slot : LiveFabric::kNobody;
}

/// Whether something is or was left for the coflow at the label on all links of the flow. Open links count: on them
/// there was or is something, or they would be as before.
bool Sweep::CanRun(FlowIndex flow, std::uint64_t label) const {
  return std::ranges::all_of(fabric_.Path(flow),
                             [&](const LiveFabric::Hop& hop) { return queues_.full_from(hop.link) >= label; });
}

}  // namespace weir::scheduler
