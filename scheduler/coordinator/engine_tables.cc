// What agents report: processes, lanes, demand and profiles.
#include <algorithm>

#include "coflow/check.h"
#include "coflow/wire/weir.pb.h"
#include "scheduler/coordinator/engine.h"

namespace weir::scheduler {
namespace {

std::uint32_t Code(StatusCode code) {
  return static_cast<std::uint32_t>(code);
}

}  // namespace

void CoordinatorEngine::OnProcessAttached(Nanoseconds /*now*/, AgentRecord& agent,
                                          const wire::ProcessAttached& attached) {
  const ProcessId id(attached.process());
  const wire::Job& job = attached.job();
  if (!id || agent.processes.contains(id)) {
    return Refuse(agent, Code(StatusCode::kAlreadyExists),
                  "process " + std::to_string(id.value) + " is attached already, or has no number");
  }
  if (agent.processes.size() >= kMaxProcessesPerAgent) {
    return Refuse(agent, Code(StatusCode::kResourceExhausted), "too many processes on one host; the limit is 1024");
  }
  if (job.name().empty() || job.name().size() > kMaxNameBytes || job.tenant().size() > kMaxNameBytes) {
    return Refuse(agent, Code(StatusCode::kInvalidArgument), "a job has a name of 1 to 256 bytes");
  }
  const std::uint32_t slot = JobSlot(job);
  if (slot == kNoSlot) return Refuse(agent, Code(StatusCode::kResourceExhausted), "too many jobs; the limit is 4096");
  ProcessRecord& process = agent.processes[id];
  process.id = id;
  process.sender = next_sender_++;
  process.job = slot;
  process.adopted = attached.adopted();
  jobs_[slot].processes.push_back(&process);
}

/// The job's index, made if need be; kNoSlot at the limit. Class and weight are those of the first process.
std::uint32_t CoordinatorEngine::JobSlot(const wire::Job& job) {
  const std::pair key(job.tenant(), job.name());
  const auto found = job_slots_.find(key);
  if (found != job_slots_.end()) return found->second;
  if (jobs_.size() >= kMaxJobs) return kNoSlot;
  const auto slot = static_cast<std::uint32_t>(jobs_.size());
  JobState state;
  state.id = JobId(next_job_id_++);
  // Agents have checked it; whoever else says what is no class gets the default.
  state.job_class = ParseJobClass(job.job_class()).value_or(JobClass::kBestEffort);
  state.weight = job.weight() > 0 && job.weight() < 1e6 ? job.weight() : 1;
  state_.jobs.push_back(state);
  JobRecord record;
  record.tenant = job.tenant();
  record.name = job.name();
  record.gpus = job.gpus();
  record.granted.assign(state_.links.size(), false);
  jobs_.push_back(std::move(record));
  job_slots_[key] = slot;
  job_names_.emplace_back(state.id, job.name());
  if (job_names_.size() > kMaxJobs) job_names_.pop_front();
  Log("job_began", "job=" + job.name());
  return slot;
}

void CoordinatorEngine::OnLaneOpened(AgentRecord& agent, const wire::LaneOpened& opened) {
  const LaneId id(opened.lane());
  const auto process = agent.processes.find(ProcessId(opened.process()));
  if (process == agent.processes.end()) {
    return Refuse(agent, Code(StatusCode::kNotFound),
                  "lane " + std::to_string(id.value) + " belongs to a process that is not attached");
  }
  if (!id || agent.lanes.contains(id)) {
    return Refuse(agent, Code(StatusCode::kAlreadyExists),
                  "lane " + std::to_string(id.value) + " is open already, or has no number");
  }
  if (agent.lanes.size() >= kMaxLanesPerAgent) {
    return Refuse(agent, Code(StatusCode::kResourceExhausted), "too many lanes on one host; the limit is 65536");
  }
  LaneRecord& lane = agent.lanes[id];
  lane.id = id;
  lane.process = process->first;
  dirty_ = true;
  const auto address = IpAddress::Parse(opened.peer_address());
  const Host* peer = address ? topology_.FindHost(*address) : nullptr;
  const Path path = peer != nullptr && agent.host ? topology_.PathBetween(agent.host, peer->id) : Path{};
  if (path.links.empty()) return;
  lane.slot = static_cast<std::uint32_t>(state_.lanes.size());
  LaneState state;
  state.id = next_lane_id_++;
  state.job = process->second.job;
  state.sender = process->second.sender;
  for (const LinkId link : path.links) state.links.push_back(static_cast<LinkIndex>(link.value - 1));
  state.adopted = process->second.adopted;
  state_.lanes.push_back(std::move(state));
  lane_owners_.push_back({.agent = &agent, .lane = &lane});
}

void CoordinatorEngine::OnDemand(Nanoseconds now, AgentRecord& agent, const wire::DemandUpdate& update) {
  for (const wire::LaneDemand& demand : update.lanes()) {
    const auto found = agent.lanes.find(LaneId(demand.lane()));
    if (found == agent.lanes.end()) {
      ++counters_.unknown_lanes;  // Normal once in a while: it was closed, or refused.
      continue;
    }
    if (found->second.slot == kNoSlot) continue;
    LaneState& lane = state_.lanes[found->second.slot];
    const double left = static_cast<double>(demand.bytes_waiting()) + static_cast<double>(demand.bytes_ahead());
    // Progress alone changes no decision now: keys and leases are looked at by the policy's own tick.
    dirty_ |= lane.active != demand.active() || (lane.active && lane.bytes_left == 0 && left > 0);
    if (demand.active() && !lane.active) lane.since = now;
    lane.active = demand.active();
    lane.bytes_sent = demand.bytes_sent();
    lane.bytes_left = left;
    lane.bytes_waiting = static_cast<double>(demand.bytes_waiting());
    lane.due_known = demand.due_known();
    lane.due = now + std::clamp<std::int64_t>(demand.due_in_ns(), -3600 * kSecond, 3600 * kSecond);
    lane.overlapped = demand.due_known() && demand.overlapped();
    dirty_ |= demand.next_known();
    lane.next_known = demand.next_known();
    lane.next = now + std::clamp<std::int64_t>(demand.next_in_ns(), -3600 * kSecond, 3600 * kSecond);
    lane.next_deviation = static_cast<Nanoseconds>(std::min<std::uint64_t>(demand.next_deviation_ns(), 3600 * kSecond));
  }
}

void CoordinatorEngine::OnProfile(Nanoseconds now, AgentRecord& agent, const wire::ProfileUpdate& update) {
  const auto found = agent.processes.find(ProcessId(update.process()));
  if (found == agent.processes.end()) {
    ++counters_.unknown_lanes;
    return;
  }
  ProcessRecord& process = found->second;
  process.confidence = std::clamp(update.confidence(), 0.0, 1.0);
  process.alone = std::clamp<Nanoseconds>(update.alone_ns(), 0, 3600 * kSecond);
  process.period = update.period_ns();
  process.iteration = update.iteration();
  // Clocks of different hosts are never compared: only how long ago it was, and never in the future.
  const std::int64_t age = update.now_ns() >= update.iteration_started_ns() && update.iteration_started_ns() > 0
                               ? update.now_ns() - update.iteration_started_ns()
                               : 0;
  process.iteration_started = now - std::min<std::int64_t>(age, 3600 * kSecond);
  for (const wire::LaneBytes& bytes : update.lanes()) {
    const auto lane = agent.lanes.find(LaneId(bytes.lane()));
    if (lane == agent.lanes.end() || lane->second.process != process.id) continue;
    lane->second.profile_bytes = static_cast<double>(bytes.bytes());
  }
  JoinProfile(process.job);
  dirty_ = true;
}

/// The job's profile from those of its processes that are known: bytes are summed per link, the time alone is the
/// median (one rank that guesses wrong must not decide), the border is the latest, confidence the best.
void CoordinatorEngine::JoinProfile(std::uint32_t job) {
  JobProfile& joined = state_.jobs[job].profile;
  joined = JobProfile();
  std::vector<Nanoseconds> alone;
  for (const ProcessRecord* process : jobs_[job].processes) {
    if (process->alone <= 0 || process->confidence <= 0) continue;
    joined.confidence = std::max(joined.confidence, process->confidence);
  }
  for (const ProcessRecord* process : jobs_[job].processes) {
    // Those who know clearly less than the best say nothing.
    if (process->alone <= 0 || process->confidence < joined.confidence / 2) continue;
    alone.push_back(process->alone);
    joined.period = std::max(joined.period, process->period);
    joined.iteration = std::max(joined.iteration, process->iteration);
    joined.iteration_started = std::max(joined.iteration_started, process->iteration_started);
  }
  if (alone.empty()) return;
  std::ranges::nth_element(alone, alone.begin() + static_cast<std::ptrdiff_t>(alone.size() / 2));
  joined.alone = alone[alone.size() / 2];
  std::map<LinkIndex, double> bytes;
  for (std::size_t i = 0; i < state_.lanes.size(); ++i) {
    if (state_.lanes[i].job != job) continue;
    for (const LinkIndex link : state_.lanes[i].links) bytes[link] += lane_owners_[i].lane->profile_bytes;
  }
  for (const auto& [link, sum] : bytes) {
    if (sum > 0) joined.links.push_back({.link = link, .bytes = sum});
  }
}

void CoordinatorEngine::OnApplied(Nanoseconds now, AgentRecord& agent, const wire::Applied& applied) {
  if (applied.epoch() != epoch_) return;
  if (applied.sequence() == agent.sequence) agent.lag = now - agent.last_sent;
  // What was refused comes again with the next full schedule. Not at once: it would be refused again, without end.
  const auto refused = static_cast<std::uint64_t>(applied.refused_size());
  agent.refused_directives += refused;
  counters_.directives_refused += refused;
}

void CoordinatorEngine::CloseLane(AgentRecord& agent, LaneId id) {
  const auto found = agent.lanes.find(id);
  if (found == agent.lanes.end()) {
    ++counters_.unknown_lanes;
    return;
  }
  if (found->second.slot != kNoSlot) RemoveLaneSlot(found->second.slot);
  agent.lanes.erase(found);
  dirty_ = true;
}

void CoordinatorEngine::Detach(AgentRecord& agent, ProcessId id) {
  const auto found = agent.processes.find(id);
  if (found == agent.processes.end()) return;
  for (auto it = agent.lanes.begin(); it != agent.lanes.end();) {
    const LaneRecord& lane = (it++)->second;
    if (lane.process == id) CloseLane(agent, LaneId(lane.id));
  }
  const std::uint32_t job = found->second.job;
  std::erase(jobs_[job].processes, &found->second);
  agent.processes.erase(found);
  if (jobs_[job].processes.empty()) {
    RemoveJob(job);
  } else {
    JoinProfile(job);
  }
  dirty_ = true;
}

/// The last job takes the free index.
void CoordinatorEngine::RemoveJob(std::uint32_t slot) {
  const auto last = static_cast<std::uint32_t>(jobs_.size() - 1);
  Log("job_ended", "job=" + jobs_[slot].name);
  for (LinkState& link : state_.links) {
    if (link.holder == state_.jobs[slot].id) link.holder = JobId();
  }
  for (LinkIndex link = 0; link < state_.links.size(); ++link) {
    if (jobs_[slot].granted[link]) grants_.push_back({last_decision_, state_.jobs[slot].id, link, false, -1});
  }
  job_slots_.erase({jobs_[slot].tenant, jobs_[slot].name});
  if (slot != last) {
    for (LaneState& lane : state_.lanes) {
      WEIR_CHECK(lane.job != slot);
      if (lane.job == last) lane.job = slot;
    }
    for (ProcessRecord* process : jobs_[last].processes) process->job = slot;
    job_slots_[{jobs_[last].tenant, jobs_[last].name}] = slot;
    state_.jobs[slot] = std::move(state_.jobs[last]);
    jobs_[slot] = std::move(jobs_[last]);
  }
  state_.jobs.pop_back();
  jobs_.pop_back();
}

/// The last lane takes the free index.
void CoordinatorEngine::RemoveLaneSlot(std::uint32_t slot) {
  const auto last = static_cast<std::uint32_t>(state_.lanes.size() - 1);
  if (slot != last) {
    state_.lanes[slot] = std::move(state_.lanes[last]);
    lane_owners_[slot] = lane_owners_[last];
    lane_owners_[slot].lane->slot = slot;
  }
  state_.lanes.pop_back();
  lane_owners_.pop_back();
}

}  // namespace weir::scheduler
