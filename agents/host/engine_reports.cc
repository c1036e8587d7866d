// What the coordinator is told.
#include <algorithm>
#include <optional>
#include <string>

#include "agents/host/engine.h"
#include "coflow/wire/weir.pb.h"

namespace weir::agents {

/// Everything the coordinator must know, after each welcome: it may have forgotten us, or be another one.
void AgentEngine::Announce(Nanoseconds now) {
  for (auto& [id, process] : processes_) {
    AnnounceProcess(process);
    for (const LaneId lane : process.lanes) AnnounceLane(lanes_.at(lane));
    process.reported_iteration = 0;
    ReportProfile(now, process);
  }
  for (auto& [id, lane] : lanes_) {
    lane.reported_active = false;
    if (lane.active()) MarkDirty(lane);
  }
}

void AgentEngine::AnnounceProcess(const Process& process) {
  wire::AgentMessage message;
  wire::ProcessAttached* attached = message.mutable_process_attached();
  attached->set_process(process.id.value);
  attached->set_pid(process.info.pid);
  attached->set_adopted(process.info.adopted);
  wire::Job* job = attached->mutable_job();
  job->set_name(process.info.job.name);
  job->set_tenant(process.info.job.tenant);
  job->set_job_class(process.info.job.job_class);
  job->set_weight(process.info.job.weight);
  job->set_gpus(process.info.job.gpus);
  Send(message);
}

void AgentEngine::AnnounceLane(const Lane& lane) {
  wire::AgentMessage message;
  wire::LaneOpened* opened = message.mutable_lane_opened();
  opened->set_lane(lane.id.value);
  opened->set_process(lane.ref.process.value);
  opened->set_peer_address(lane.peer);
  Send(message);
}

/// Once per iteration: the border is what moves, the rest follows from the sizes sent.
void AgentEngine::ReportProfile(Nanoseconds now, Process& process) {
  const Profile& profile = process.learner.profile();
  if (!welcomed_ || profile.iteration == 0 || profile.iteration == process.reported_iteration) return;
  process.reported_iteration = profile.iteration;
  Bytes waiting = 0;
  for (const LaneId id : process.lanes) waiting += lanes_.at(id).sample.rest;
  wire::AgentMessage message;
  wire::ProfileUpdate* update = message.mutable_profile_update();
  update->set_process(process.id.value);
  update->set_iteration(profile.iteration);
  update->set_iteration_started_ns(profile.iteration_started);
  update->set_now_ns(now);
  update->set_period_ns(profile.period);
  update->set_alone_ns(profile.alone);
  update->set_confidence(profile.confidence);
  update->set_bytes_total(profile.bytes_total);
  update->set_bytes_left(profile.bytes_left + waiting);
  for (const Profile::Lane& each : profile.lanes) {
    const Lane* lane = FindLane(each.lane);
    if (lane == nullptr) continue;
    wire::LaneBytes* bytes = update->add_lanes();
    bytes->set_lane(each.lane.value);
    bytes->set_bytes(each.bytes);
    bytes->set_bytes_left(each.bytes_left + lane->sample.rest);
  }
  Send(message);
}

/// The message that the idle lane is expected to begin next, if it matters to anybody: the way is cleared ahead for the
/// first level only.
std::optional<NextMessage> AgentEngine::NextOf(const Lane& lane) const {
  if (!GoesFirst(lane) || lane.active()) return std::nullopt;
  auto next = processes_.at(lane.ref.process).learner.ExpectedNext();
  if (next && next->lane != lane.id) next.reset();
  return next;
}

void AgentEngine::FillDemand(Nanoseconds now, const Lane& lane, wire::LaneDemand* demand) const {
  demand->set_lane(lane.id.value);
  demand->set_active(lane.active());
  demand->set_bytes_sent(lane.sample.accepted);
  demand->set_bytes_waiting(lane.sample.rest);
  demand->set_sockets_active(lane.sample.sockets);
  const Nanoseconds running = lane.held.since == 0 ? 0 : now - lane.held.since;
  demand->set_held_ns(static_cast<std::uint64_t>(lane.held.total + running));
  const ProfileLearner& learner = processes_.at(lane.ref.process).learner;
  if (const auto next = NextOf(lane)) {
    demand->set_next_known(true);
    demand->set_next_in_ns(next->at - now);
    demand->set_next_deviation_ns(static_cast<std::uint64_t>(next->deviation));
  }
  const std::optional<Due> due = learner.CurrentDue();
  if (!due) return;
  demand->set_due_known(true);
  demand->set_due_in_ns(due->at - now);
  demand->set_overlapped(due->overlapped);
  for (const Profile::Lane& each : learner.profile().lanes) {
    if (each.lane == lane.id) demand->set_bytes_ahead(each.bytes_left);
  }
}

/// All lanes whose demand changed, or whose progress is due, in one message.
void AgentEngine::FlushDemand(Nanoseconds now) {
  if (dirty_.empty()) return;
  std::sort(dirty_.begin(), dirty_.end());
  dirty_.erase(std::unique(dirty_.begin(), dirty_.end()), dirty_.end());
  wire::AgentMessage message;
  wire::DemandUpdate* update = message.mutable_demand_update();
  update->set_now_ns(now);
  for (const LaneId id : dirty_) {
    const auto found = lanes_.find(id);
    if (found == lanes_.end()) continue;
    Lane& lane = found->second;
    const bool progress_due = lane.active() && lane.progress && now >= lane.reported_at + kProgressEvery;
    const auto next = NextOf(lane);
    const Nanoseconds next_at = next ? next->at : 0;
    if (!welcomed_ || (lane.active() == lane.reported_active && next_at == lane.reported_next && !progress_due))
      continue;
    FillDemand(now, lane, update->add_lanes());
    lane.reported_next = next_at;
    lane.reported_active = lane.active();
    lane.reported_at = now;
  }
  dirty_.clear();
  if (update->lanes_size() > 0) Send(message);
}

void AgentEngine::Send(const wire::AgentMessage& message) {
  actions_.messages.push_back(message.SerializeAsString());
}

}  // namespace weir::agents
