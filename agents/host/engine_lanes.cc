// The life of a lane: from its first write to the end of its queue.
#include <algorithm>

#include "agents/host/engine.h"

namespace weir::agents {

void AgentEngine::OnSample(Nanoseconds now, LaneRef ref, const LaneSample& sample) {
  Lane* lane = MutableLane(ref);
  if (lane == nullptr) return;
  const bool wrote = sample.messages != lane->sample.messages || sample.accepted != lane->sample.accepted;
  const bool begun = sample.start_taken || sample.rest > 0 || wrote;
  lane->sample = sample;
  switch (lane->phase) {
    case Phase::kIdle:
      if (begun) Start(now, *lane);
      break;
    case Phase::kLingering:
      if (begun) Continue(now, *lane);
      break;
    case Phase::kSending:
      if (sample.rest == 0) {
        Settle(now, *lane);
      } else if (sample.drain_taken) {
        actions_.arms.push_back({ref, false, true});  // One message ended and the next began before we looked.
      }
      break;
    case Phase::kDraining:
      if (sample.rest > 0) {
        lane->phase = Phase::kSending;
        actions_.arms.push_back({ref, false, true});
      }
      break;
  }
  if (sample.sockets > lane->sockets_peak) {
    lane->sockets_peak = sample.sockets;
    ApplyLane(now, *lane);  // More sockets share the lane's rate from now on.
  }
  UpdateHeld(now, *lane);
}

void AgentEngine::Start(Nanoseconds now, Lane& lane) {
  ++counters_.starts;
  lane.sockets_peak = std::max(1u, lane.sample.sockets);
  SetActive(now, lane, true);
  Continue(now, lane);
  ApplyLane(now, lane);
}

/// A lane that is not busy has bytes again.
void AgentEngine::Continue(Nanoseconds now, Lane& lane) {
  if (lane.phase == Phase::kLingering) ++counters_.lingers_saved;
  SetBusy(now, lane, true);
  if (lane.sample.rest == 0) {
    Settle(now, lane);
    return;
  }
  lane.phase = Phase::kSending;
  actions_.arms.push_back({lane.ref, false, true});
}

/// The kernel has taken everything: from here on it is the queue that counts.
void AgentEngine::Settle(Nanoseconds now, Lane& lane) {
  lane.phase = Phase::kDraining;
  lane.queued = 0;
  lane.queued_at = 0;
  lane.check_at = now + kMeasureMax;  // Stands in case the shell cannot measure.
  actions_.measures.push_back(lane.ref);
}

void AgentEngine::OnQueueMeasured(Nanoseconds now, LaneRef ref, const QueueSample& queue) {
  Lane* lane = MutableLane(ref);
  if (lane == nullptr || lane->phase != Phase::kDraining) return;
  // What is in flight on a path without a queue is no longer ours to wait for: it has left, only its acknowledgement
  // has not come back. Only a cap keeps the path without a queue, so only then is the product taken off.
  const double in_flight = lane->rate * ToSeconds(queue.min_rtt);
  // The next one needs a moment to begin: it is called that much before the queue is empty. But nothing may get in the
  // way of the first level.
  const double last_moment = GoesFirst(*lane) ? 0 : lane->rate * ToSeconds(kHandOver);
  const auto queued = static_cast<double>(queue.queued);
  const bool left = queued <= last_moment || (queue.unsent == 0 && queued <= in_flight);
  if (!queue.reachable || !left) {
    lane->check_at = queue.reachable ? NextMeasure(now, *lane, queue) : now + kMeasureMax;
    lane->queued = queue.queued;
    lane->queued_at = now;
    lane->queued_accepted = lane->sample.accepted;
    return;
  }
  Drained(now, *lane);
}

/// When the queue may have come down to its last moment, at the rate seen since the last look. A capped lane is not
/// taken to be much slower than its cap for long: it shared the path while another made way. One that stands still is
/// asked less and less often.
Nanoseconds AgentEngine::NextMeasure(Nanoseconds now, const Lane& lane, const QueueSample& queue) const {
  double rate = lane.rate;
  if (lane.queued_at != 0 && now > lane.queued_at) {
    const double before =
        static_cast<double>(lane.queued) + static_cast<double>(lane.sample.accepted - lane.queued_accepted);
    const double left = before - static_cast<double>(queue.queued);
    if (left <= 0) return now + std::clamp(2 * (now - lane.queued_at), kMeasureMin, kMeasureMax);
    rate = std::max(left / static_cast<double>(now - lane.queued_at) * 1e9, lane.rate / 2);
  }
  if (rate <= 0) return now + kMillisecond;
  const double ahead =
      std::max(0.0, static_cast<double>(queue.queued) - lane.rate * ToSeconds(std::max(queue.min_rtt, kHandOver)));
  const double wait = std::min(TransferNanoseconds(ahead, rate), static_cast<double>(kMeasureMax));
  return now + std::max(kMeasureMin, static_cast<Nanoseconds>(wait));
}

void AgentEngine::Drained(Nanoseconds now, Lane& lane) {
  SetBusy(now, lane, false);
  Process& process = processes_.at(lane.ref.process);
  if (process.lanes_busy == 0) {
    process.learner.OnDrained(now);
    ReportProfile(now, process);
    const auto next = process.learner.ExpectedNext();
    if (const Lane* follower = next ? FindLane(next->lane) : nullptr) MarkDirty(*follower);
  }
  Nanoseconds until = 0;
  if (LingersUntil(now, lane, &until)) {
    lane.phase = Phase::kLingering;
    lane.check_at = until;
    actions_.arms.push_back({lane.ref, true, false});
  } else {
    GoIdle(now, lane);
  }
}

/// Whether the coordinator wants nothing to get in the lane's way, whatever that costs others.
bool AgentEngine::GoesFirst(const Lane& lane) {
  return lane.directed && lane.level == 0;
}

bool AgentEngine::LingersUntil(Nanoseconds now, const Lane& lane, Nanoseconds* until) const {
  const Process& process = processes_.at(lane.ref.process);
  const auto gap = process.learner.ExpectedGap();
  if (process.lanes_busy > 0 || !gap || *gap > kLingerGapMax) return false;
  *until = now + 2 * *gap + (GoesFirst(lane) ? kLingerFirstLevel : kLinger);
  return true;
}

void AgentEngine::GoIdle(Nanoseconds now, Lane& lane) {
  lane.phase = Phase::kIdle;
  ++counters_.drains;
  SetActive(now, lane, false);
  actions_.arms.push_back({lane.ref, true, false});
}

void AgentEngine::SetBusy(Nanoseconds, Lane& lane, bool busy) {
  Process& process = processes_.at(lane.ref.process);
  process.lanes_busy = busy ? process.lanes_busy + 1 : process.lanes_busy - 1;
}

void AgentEngine::SetActive(Nanoseconds now, Lane& lane, bool active) {
  lanes_active_ = active ? lanes_active_ + 1 : lanes_active_ - 1;
  MarkDirty(lane);
  const JobInfo& job = processes_.at(lane.ref.process).info.job;
  const std::string key = job.tenant + '/' + job.name;
  std::size_t& count = job_active_[key];
  count = active ? count + 1 : count - 1;
  const bool edge = count == (active ? 1u : 0u);
  if (count == 0) job_active_.erase(key);
  const bool moved = edge && local_fifo_.OnDemand(now, key, active);
  if (moved && in_fallback_ && options_.local_policy == LocalPolicy::kFifo) ApplyAll(now);
}

/// Keeps the account of time with bytes to send and no turn, for the lane and for its process.
void AgentEngine::UpdateHeld(Nanoseconds now, Lane& lane) {
  const bool held = lane.phase == Phase::kSending && lane.written.hold;
  if (held == (lane.held.since != 0)) return;
  Process& process = processes_.at(lane.ref.process);
  if (held) {
    lane.held.since = now;
    if (process.lanes_held++ == 0) process.held_since = now;
    return;
  }
  lane.held.total += now - lane.held.since;
  lane.held.since = 0;
  if (--process.lanes_held == 0 && now > process.held_since) process.learner.OnHeld(process.held_since, now);
}

void AgentEngine::OnTimeLane(Nanoseconds now, Lane& lane) {
  if (lane.active() && lane.progress && now >= lane.reported_at + kProgressEvery) MarkDirty(lane);
  if (now < lane.check_at) return;
  if (lane.phase == Phase::kDraining) {
    lane.check_at = now + kMeasureMax;
    actions_.measures.push_back(lane.ref);
  } else if (lane.phase == Phase::kLingering) {
    GoIdle(now, lane);
  }
}

}  // namespace weir::agents
