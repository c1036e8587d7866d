// What each lane gets, given the order of the jobs.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "scheduler/turns/turns.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
constexpr double kUncapped = std::numeric_limits<double>::infinity();

}  // namespace

/// `room` becomes what is left for the lane alone.
bool TurnsPolicy::HasRoom(const FabricState& state, const LaneState& lane, BytesPerSecond& room) const {
  const BytesPerSecond path_rate = PathRate(state, lane);
  room = path_rate;
  for (const LinkIndex link : lane.links) room = std::min(room, room_[link]);
  return room >= options_.room * path_rate;
}

void TurnsPolicy::Grant(const FabricState& state, Nanoseconds now, Decision& decision) {
  room_.clear();
  for (const LinkState& link : state.links) room_.push_back(link.rate);
  bool reserved = false;
  for (const std::uint32_t job : order_) {
    if (state.jobs[job].job_class != JobClass::kGuaranteed && !std::exchange(reserved, true))
      ReserveExpected(state, now);
    GrantJob(state, job, decision);
  }
  if (!reserved) ReserveExpected(state, now);
  ReservePaused(state);
  for (std::uint32_t i = 0; i < state.lanes.size(); ++i) {
    if (entry_of_job_[state.lanes[i].job] == kNone) GrantIdle(state, i, decision);
  }
  GrantAdopted(state, decision);
}

void TurnsPolicy::GrantJob(const FabricState& state, std::uint32_t job, Decision& decision) {
  flows_.clear();
  granted_.clear();
  for (const std::uint32_t i : LanesOf(job)) {
    const LaneState& lane = state.lanes[i];
    BytesPerSecond room = 0;
    if (!lane.active || state.jobs[job].turn.stalled) {
      GrantIdle(state, i, decision);
    } else if (HasRoom(state, lane, room)) {
      granted_.push_back(i);
    } else {
      Hold(state, i, decision);
    }
  }
  Weigh(state);
  max_min_.Fill(flows_, room_, rates_);
  for (std::size_t f = 0; f < granted_.size(); ++f) decision.lanes[granted_[f]].rate = rates_[f];
}

/// Makes flows of the granted lanes, which become sorted by sender, the oldest first.
void TurnsPolicy::Weigh(const FabricState& state) {
  std::ranges::sort(granted_, {}, [&](std::uint32_t i) {
    return std::tuple(state.lanes[i].sender, state.lanes[i].since, state.lanes[i].id);
  });
  for (std::size_t first = 0; first < granted_.size();) {
    const LaneState& elder = state.lanes[granted_[first]];
    std::size_t end = first + 1;
    while (end < granted_.size() && elder.sender != 0 && state.lanes[granted_[end]].sender == elder.sender) ++end;
    const bool worth = elder.bytes_waiting >= PathRate(state, elder) * ToSeconds(options_.elder_worth);
    const double younger = worth ? options_.younger / std::max(1.0, static_cast<double>(end - first - 1)) : 1.0;
    for (std::size_t f = first; f < end; ++f) {
      flows_.push_back({state.lanes[granted_[f]].links, f == first ? 1.0 : younger, kUncapped});
    }
    first = end;
  }
}

/// A held lane keeps a cap: bytes that are past the gate already, and the first ones after it opens, must not queue in
/// the network, and a cap that comes and goes costs a system call a socket each time.
void TurnsPolicy::Hold(const FabricState& state, std::uint32_t index, Decision& decision) const {
  decision.lanes[index].hold = true;
  decision.lanes[index].rate = PathRate(state, state.lanes[index]);
}

/// A lane that takes nothing now gets what it would get if it began.
void TurnsPolicy::GrantIdle(const FabricState& state, std::uint32_t index, Decision& decision) const {
  const LaneState& lane = state.lanes[index];
  LaneDecision& result = decision.lanes[index];
  BytesPerSecond room = 0;
  if (HasRoom(state, lane, room)) {
    result.rate = room;
  } else if (state.jobs[lane.job].job_class == JobClass::kGuaranteed && !lane.active) {
    result.rate = PathRate(state, lane);  // It will preempt: its first write need not wait for us.
  } else {
    Hold(state, index, decision);
  }
}

/// Holders that pause come back soon: what they will take is not there for lanes that have not even begun. Without this
/// the gates of everybody else would open and close at every pause.
void TurnsPolicy::ReservePaused(const FabricState& state) {
  for (const std::uint32_t job : order_) {
    if (state.jobs[job].turn.active) continue;
    const auto holds = [&](LinkIndex link) { return state.links[link].holder == state.jobs[job].id; };
    flows_.clear();
    for (const std::uint32_t i : LanesOf(job)) {
      if (std::ranges::any_of(state.lanes[i].links, holds)) flows_.push_back({state.lanes[i].links, 1.0, kUncapped});
    }
    max_min_.Fill(flows_, room_, rates_);
  }
}

bool TurnsPolicy::ClearsAhead(const FabricState& state, const LaneState& lane) const {
  return options_.clear_ahead > 0 && !lane.active && lane.next_known &&
         lane.next_deviation <= options_.clear_deviation && state.jobs[lane.job].job_class == JobClass::kGuaranteed;
}

/// A guaranteed lane that is about to begin finds its links empty. This is the one case in which a link may be idle
/// that others could use: for about the deviation of the expectation.
void TurnsPolicy::ReserveExpected(const FabricState& state, Nanoseconds now) {
  for (const LaneState& lane : state.lanes) {
    if (!ClearsAhead(state, lane) || now < ClearFrom(lane) || now >= ClearUntil(lane)) continue;
    for (const LinkIndex link : lane.links) room_[link] = 0;
  }
}

/// Lanes that cannot be held crawl instead. The cap that a held lane keeps is that of its whole path: as the only bound
/// it would be none.
void TurnsPolicy::GrantAdopted(const FabricState& state, Decision& decision) const {
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    LaneDecision& lane = decision.lanes[i];
    if (!state.lanes[i].adopted) continue;
    lane.rate = lane.hold ? kAdoptedFloor : std::max(lane.rate, kAdoptedFloor);
    lane.hold = false;
  }
}

void TurnsPolicy::Settle(FabricState& state, Nanoseconds now, Decision& decision) {
  wanting_.assign(state.links.size(), 0);
  waiting_.assign(state.links.size(), 0);
  stamp_.assign(state.links.size(), kNone);
  for (const std::uint32_t job : order_) {
    for (const std::uint32_t i : LanesOf(job)) {
      const LaneState& lane = state.lanes[i];
      for (const LinkIndex link : lane.links) {
        if (stamp_[link] != job) ++wanting_[link];
        stamp_[link] = job;
        if (lane.active && decision.lanes[i].hold) ++waiting_[link];
      }
    }
  }
  SettleHolders(state, now, decision);
  for (const std::uint32_t job : order_) SettleJob(state, job, now, decision);
  MarkProgress(state, decision);
  decision.next = NextLook(state, now);
}

/// The first job that was granted a lane on a link holds it, unless the holder merely pauses and would get it back.
void TurnsPolicy::SettleHolders(FabricState& state, Nanoseconds now, const Decision& decision) {
  stamp_.assign(state.links.size(), kNone);  // The first job granted there.
  for (const std::uint32_t job : order_) {
    if (state.jobs[job].turn.stalled) continue;
    for (const std::uint32_t i : LanesOf(job)) {
      if (!state.lanes[i].active || decision.lanes[i].hold) continue;
      for (const LinkIndex link : state.lanes[i].links) {
        if (stamp_[link] == kNone) stamp_[link] = job;
      }
    }
  }
  for (LinkIndex link = 0; link < state.links.size(); ++link) {
    if (stamp_[link] == kNone) continue;
    const JobState& first = state.jobs[stamp_[link]];
    const std::uint32_t holder = holder_of_link_[link];
    if (holder == kNone || Beats(first, state.jobs[entries_[holder].job], now)) state.links[link].holder = first.id;
  }
}

void TurnsPolicy::SettleJob(FabricState& state, std::uint32_t index, Nanoseconds now, const Decision& decision) {
  JobTurn& turn = state.jobs[index].turn;
  bool granted = false;
  bool waiting = false;
  bool blocking = false;
  for (const std::uint32_t i : LanesOf(index)) {
    if (!state.lanes[i].active) continue;
    (decision.lanes[i].hold ? waiting : granted) = true;
    if (decision.lanes[i].hold || turn.stalled) continue;
    blocking |= std::ranges::any_of(state.lanes[i].links, [&](LinkIndex link) { return waiting_[link] > 0; });
  }
  if (waiting && !turn.waiting) turn.waiting_since = now;
  if (blocking && !turn.blocking) turn.lease_since = now;
  turn.granted = granted;
  turn.waiting = waiting;
  turn.blocking = blocking;
  turn.started |= granted && !turn.stalled;
}

void TurnsPolicy::MarkProgress(const FabricState& state, Decision& decision) {
  for (std::size_t i = 0; i < state.lanes.size(); ++i) {
    const LaneState& lane = state.lanes[i];
    decision.lanes[i].level = QueueLevel(state.jobs[lane.job].job_class);
    decision.lanes[i].progress = entry_of_job_[lane.job] != kNone &&
                                 std::ranges::any_of(lane.links, [&](LinkIndex link) { return wanting_[link] >= 2; });
  }
}

Nanoseconds TurnsPolicy::NextLook(const FabricState& state, Nanoseconds now) const {
  Nanoseconds next = kNever;
  bool contended = false;
  for (const Entry& entry : entries_) {
    const JobTurn& turn = state.jobs[entry.job].turn;
    if (!turn.active) next = std::min(next, turn.silent_since + options_.coflow_gap);
    contended |= turn.waiting;
  }
  for (const LaneState& lane : state.lanes) {
    if (!ClearsAhead(state, lane)) continue;
    if (now < ClearFrom(lane)) {
      next = std::min(next, ClearFrom(lane));
    } else if (now < ClearUntil(lane)) {
      next = std::min(next, ClearUntil(lane));
    }
  }
  // Keys grow with time, leases and patience run out: one tick looks at them all.
  return contended ? std::min(next, now + options_.tick) : next;
}

}  // namespace weir::scheduler
