#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coflow/topology.h"
#include "scheduler/coordinator/tables.h"
#include "scheduler/turns/policy.h"

namespace weir::wire {
class AgentMessage;
class CoordinatorMessage;
class DemandUpdate;
class Hello;
class Job;
class LaneOpened;
class ProcessAttached;
class ProfileUpdate;
class Applied;
}  // namespace weir::wire

namespace weir::scheduler {

/// Limits of one coordinator. Reaching one is a counted refusal with a reason; nothing else changes.
inline constexpr std::size_t kMaxAgents = 4096;
inline constexpr std::size_t kMaxProcessesPerAgent = 1024;
inline constexpr std::size_t kMaxLanesPerAgent = 65'536;
inline constexpr std::size_t kMaxJobs = 4096;
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxGrantEvents = 20'000;

struct EngineOptions {
  Nanoseconds heartbeat = 100 * kMillisecond;  ///< Agents are asked to be heard this often,
  int heartbeats_missed = 3;                   ///< and are gone after so many without a word.
  Nanoseconds ttl = 2 * kSecond;               ///< Life of a directive without word from us.
  Nanoseconds refresh = 500 * kMillisecond;  ///< A full schedule at least this often: holds never run out by accident.
  double rate_change = 0.02;                 ///< Caps that move by less are not sent.
};

/// What the shell is to do, in this order.
struct Action {
  enum class Kind { kSend, kDrop, kLog };
  Kind kind = Kind::kSend;
  ConnectionId connection;
  /// kSend. Shared only so that this header needs no protobuf; nobody else keeps it.
  std::shared_ptr<const wire::CoordinatorMessage> message;
  std::string text;    ///< kDrop: why; kLog: name of the event.
  std::string detail;  ///< kLog: what it is about.
};

/// The coordinator without its IO: takes what agents say, asks the policy, and says what to send to whom.
///
/// Feed it events, then call Step once for all that has arrived. Not for sockets, clocks or logs: `now` and the epoch
/// are given, and everything to be done comes back as actions. Owns all state about agents; the topology must outlive
/// it. Thread: one. Limits: above.
///
/// Connections are named by the shell. After a kDrop the shell need not report the disconnect, but may.
class CoordinatorEngine {
 public:
  CoordinatorEngine(const Topology& topology, std::unique_ptr<Policy> policy, std::uint64_t epoch,
                    EngineOptions options = {});
  CoordinatorEngine(const CoordinatorEngine&) = delete;
  CoordinatorEngine& operator=(const CoordinatorEngine&) = delete;
  ~CoordinatorEngine();

  void OnConnect(Nanoseconds now, ConnectionId connection, std::string peer);
  void OnMessage(Nanoseconds now, ConnectionId connection, const wire::AgentMessage& message);
  void OnDisconnect(Nanoseconds now, ConnectionId connection);

  /// Ends what has expired, decides if anything changed or time has come, and returns all that is to be done. Schedules
  /// that take something away come before those that give.
  std::vector<Action> Step(Nanoseconds now);
  /// When Step must be called even if nothing happens.
  Nanoseconds next_step() const { return next_step_; }

  // For status; valid until the next event.
  std::uint64_t epoch() const { return epoch_; }
  std::string_view policy_name() const { return policy_->name(); }
  const Topology& topology() const { return topology_; }
  const FabricState& state() const { return state_; }
  const std::vector<JobRecord>& jobs() const { return jobs_; }
  const std::map<ConnectionId, std::unique_ptr<AgentRecord>>& agents() const { return agents_; }
  const std::deque<GrantEvent>& grants() const { return grants_; }
  const EngineCounters& counters() const { return counters_; }
  /// Names outlive their jobs here, so that the timeline of a job that ended can still be read.
  std::string_view NameOfJob(JobId id) const;

 private:
  // engine.cc: connections and leases.
  void OnHello(Nanoseconds now, AgentRecord& agent, const wire::Hello& hello);
  Nanoseconds Lease() const { return options_.heartbeat * options_.heartbeats_missed; }
  void RefuseTwin(const AgentRecord& agent, AgentRecord& first, const wire::Hello& hello);
  void Drop(ConnectionId connection, std::uint32_t code, std::string reason, bool log = true);
  void Forget(ConnectionId connection);
  void ExpireAgents(Nanoseconds now);
  void Send(AgentRecord& agent, std::shared_ptr<const wire::CoordinatorMessage> message);
  void Refuse(AgentRecord& agent, std::uint32_t code, std::string reason);
  void Log(std::string event, std::string detail);
  void Pong(AgentRecord& agent, std::int64_t agent_now);

  // engine_tables.cc: what agents report.
  void OnProcessAttached(Nanoseconds now, AgentRecord& agent, const wire::ProcessAttached& attached);
  void OnLaneOpened(AgentRecord& agent, const wire::LaneOpened& opened);
  void OnDemand(Nanoseconds now, AgentRecord& agent, const wire::DemandUpdate& update);
  void OnProfile(Nanoseconds now, AgentRecord& agent, const wire::ProfileUpdate& update);
  void OnApplied(Nanoseconds now, AgentRecord& agent, const wire::Applied& applied);
  void CloseLane(AgentRecord& agent, LaneId lane);
  void Detach(AgentRecord& agent, ProcessId process);
  std::uint32_t JobSlot(const wire::Job& job);
  void RemoveJob(std::uint32_t slot);
  void RemoveLaneSlot(std::uint32_t slot);
  void JoinProfile(std::uint32_t job);

  // engine_schedule.cc: decisions and what to send.
  void Decide(Nanoseconds now);
  void Account(Nanoseconds now, const Decision& decision);
  void NoteGrants(Nanoseconds now, const Decision& decision);
  void SendSchedules(Nanoseconds now);
  bool WantsFull(const AgentRecord& agent, Nanoseconds now) const;
  void ScheduleFor(AgentRecord& agent, Nanoseconds now);
  void PlanNextStep(Nanoseconds now);

  const Topology& topology_;
  const std::unique_ptr<Policy> policy_;
  const std::uint64_t epoch_;
  const EngineOptions options_;

  std::map<ConnectionId, std::unique_ptr<AgentRecord>> agents_;  ///< Pointers into it are kept in lane_owners_.
  FabricState state_;
  std::vector<LaneOwner> lane_owners_;                                      ///< Parallel to state_.lanes.
  std::vector<JobRecord> jobs_;                                             ///< Parallel to state_.jobs.
  std::map<std::pair<std::string, std::string>, std::uint32_t> job_slots_;  ///< By tenant and name.
  std::uint64_t next_job_id_ = 1;
  std::uint64_t next_lane_id_ = 1;
  std::uint64_t next_sender_ = 1;

  Decision decision_;
  bool dirty_ = true;  ///< Something changed since the last decision.
  Nanoseconds next_decision_ = 0;
  Nanoseconds last_decision_ = 0;
  Nanoseconds next_step_ = 0;
  std::vector<Action> actions_;
  std::vector<bool> job_on_link_;  ///< Scratch: jobs x links.
  std::deque<GrantEvent> grants_;
  std::deque<std::pair<JobId, std::string>> job_names_;  ///< Newest last, at most kMaxJobs.
  EngineCounters counters_;
};

}  // namespace weir::scheduler
