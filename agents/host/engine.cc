#include "agents/host/engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "coflow/check.h"
#include "coflow/wire/weir.pb.h"

namespace weir::agents {

AgentEngine::AgentEngine(EngineOptions options) : options_(std::move(options)) {}
AgentEngine::~AgentEngine() = default;

Result<ProcessId> AgentEngine::OnProcessAttached(Nanoseconds, ProcessInfo info) {
  if (processes_.size() >= kMaxProcesses) {
    return Error(StatusCode::kResourceExhausted,
                 "the agent follows " + std::to_string(kMaxProcesses) + " processes already; this one runs unmanaged");
  }
  const ProcessId id(next_process_++);
  Process& process = processes_[id];
  process.id = id;
  process.info = std::move(info);
  if (welcomed_) AnnounceProcess(process);
  return id;
}

void AgentEngine::OnProcessDetached(Nanoseconds now, ProcessId id) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const std::vector<LaneId> lanes = found->second.lanes;
  for (const LaneId lane : lanes) RemoveLane(now, lanes_.at(lane));
  if (welcomed_) {
    wire::AgentMessage message;
    message.mutable_process_detached()->set_process(id.value);
    Send(message);
  }
  processes_.erase(found);
}

void AgentEngine::OnLaneAppeared(Nanoseconds now, LaneRef ref, const std::string& peer_address) {
  const auto process = processes_.find(ref.process);
  if (process == processes_.end() || lane_ids_.contains(ref)) return;
  const LaneId id(next_lane_++);
  Lane& lane = lanes_[id];
  lane.id = id;
  lane.ref = ref;
  lane.peer = peer_address;
  lane_ids_[ref] = id;
  process->second.lanes.push_back(id);
  if (welcomed_) AnnounceLane(lane);
  ApplyLane(now, lane);
  actions_.arms.push_back({ref, true, false});
}

void AgentEngine::OnLaneGone(Nanoseconds now, LaneRef ref) {
  Lane* lane = MutableLane(ref);
  if (lane == nullptr) return;
  if (welcomed_) {
    FlushDemand(now);
    wire::AgentMessage message;
    message.mutable_lane_closed()->set_lane(lane->id.value);
    Send(message);
  }
  RemoveLane(now, *lane);
}

void AgentEngine::RemoveLane(Nanoseconds now, Lane& lane) {
  if (lane.phase == Phase::kSending || lane.phase == Phase::kDraining) SetBusy(now, lane, false);
  if (lane.active()) SetActive(now, lane, false);
  lane.phase = Phase::kIdle;
  UpdateHeld(now, lane);
  std::erase(processes_.at(lane.ref.process).lanes, lane.id);
  std::erase(dirty_, lane.id);
  lane_ids_.erase(lane.ref);
  lanes_.erase(lane.id);
}

void AgentEngine::OnMessageBegun(Nanoseconds now, LaneRef ref, Nanoseconds time, Bytes bytes,
                                 client::KnownBy known_by) {
  Lane* lane = MutableLane(ref);
  if (lane == nullptr || bytes == 0) return;
  ++lane->coflows[static_cast<std::size_t>(known_by)];
  Process& process = processes_.at(ref.process);
  // The process wrote the time: it may be anything, but the learner's never goes back nor runs ahead.
  process.last_message = std::clamp(time, process.last_message, std::max(now, process.last_message));
  process.learner.OnMessage(process.last_message, lane->id, bytes);
  ReportProfile(now, process);
}

void AgentEngine::OnTime(Nanoseconds now) {
  UpdateFallback(now);
  if (in_fallback_ && options_.local_policy == LocalPolicy::kFifo && local_fifo_.OnTime(now)) ApplyAll(now);
  const bool renew = now >= renew_at_;
  if (renew) renew_at_ = now + kHeartbeat;
  for (auto& [id, lane] : lanes_) {
    OnTimeLane(now, lane);
    if (renew) RenewHold(now, lane);
  }
  if (welcomed_ && now >= heartbeat_at_) {
    heartbeat_at_ = now + heartbeat_every_;
    wire::AgentMessage message;
    message.mutable_heartbeat()->set_now_ns(now);
    Send(message);
  }
}

Nanoseconds AgentEngine::NextDeadline() const {
  Nanoseconds next = renew_at_;
  if (welcomed_) next = std::min(next, heartbeat_at_);
  if (!in_fallback_) next = std::min(next, ValidUntil());
  if (lost_at_ != 0) next = std::min(next, HoldsUntil());
  if (in_fallback_ && options_.local_policy == LocalPolicy::kFifo && local_fifo_.deadline() != 0) {
    next = std::min(next, local_fifo_.deadline());
  }
  if (lanes_active_ == 0) return next;
  for (const auto& [id, lane] : lanes_) {
    if (lane.phase == Phase::kDraining || lane.phase == Phase::kLingering) next = std::min(next, lane.check_at);
    if (lane.active() && lane.progress && welcomed_) next = std::min(next, lane.reported_at + kProgressEvery);
  }
  return next;
}

Actions AgentEngine::Take(Nanoseconds now) {
  // Demand is told after the kernel was asked: a message that has left by then was never worth a word.
  if (actions_.measures.empty()) FlushDemand(now);
  return std::exchange(actions_, Actions());
}

const AgentEngine::Lane* AgentEngine::FindLane(LaneRef ref) const {
  const auto found = lane_ids_.find(ref);
  return found == lane_ids_.end() ? nullptr : &lanes_.at(found->second);
}

const AgentEngine::Lane* AgentEngine::FindLane(LaneId id) const {
  const auto found = lanes_.find(id);
  return found == lanes_.end() ? nullptr : &found->second;
}

AgentEngine::Lane* AgentEngine::MutableLane(LaneRef ref) {
  const auto found = lane_ids_.find(ref);
  return found == lane_ids_.end() ? nullptr : &lanes_.at(found->second);
}

const char* PhaseName(AgentEngine::Phase phase) {
  switch (phase) {
    case AgentEngine::Phase::kIdle:
      return "idle";
    case AgentEngine::Phase::kSending:
      return "sending";
    case AgentEngine::Phase::kDraining:
      return "draining";
    case AgentEngine::Phase::kLingering:
      return "lingering";
  }
  return "unknown";
}

}  // namespace weir::agents
