#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agents/client/segment.h"
#include "agents/host/lane.h"
#include "agents/host/local_fifo.h"
#include "agents/host/profile_learner.h"
#include "coflow/status.h"

namespace weir::wire {
class AgentMessage;
class Directive;
class LaneDemand;
class Schedule;
class Welcome;
}  // namespace weir::wire

namespace weir::agents {

enum class LocalPolicy { kNone, kFifo };

struct EngineOptions {
  std::string host;
  std::uint64_t instance = 0;          ///< Random, new with every start.
  std::vector<std::string> addresses;  ///< Of this host, textual.
  LocalPolicy local_policy = LocalPolicy::kNone;
  Nanoseconds lowat_window = 2 * kMillisecond;  ///< What a socket may hold unsent, as time at its rate.
  bool marks = false;                           ///< Set DSCP and priority from levels.
};

/// Counted for `status` and for people; never read by the engine itself.
struct EngineCounters {
  std::uint64_t starts = 0;         ///< Lanes that went from idle to active.
  std::uint64_t drains = 0;         ///< Lanes that went back.
  std::uint64_t lingers_saved = 0;  ///< Pauses bridged: a start while the lane had not been reported idle.
  std::uint64_t directives = 0;     ///< Accepted.
  std::uint64_t directives_refused = 0;
  std::uint64_t stale = 0;          ///< Schedules and welcomes of an old epoch or sequence.
  std::uint64_t garbage = 0;        ///< Coordinator messages that could not be understood.
  std::uint64_t refusals = 0;       ///< Things we said that the coordinator refused.
  std::uint64_t fallbacks = 0;      ///< Times the coordinator fell silent for longer than the TTL.
  std::uint64_t messages_lost = 0;  ///< Message entries overwritten before they were read.
};

/// What the shell must do, in this order: write the controls and wake their processes, ask the kernel about queues,
/// send the messages, arm the rings (and sample those lanes again: a write may have come before the arming).
struct Actions {
  struct Write {
    LaneRef lane;
    LaneControl control;
    bool wake = true;  ///< False when only `hold_until` was renewed.
  };
  struct Arm {
    LaneRef lane;
    bool start = false;
    bool drain = false;
  };
  std::vector<Write> writes;
  std::vector<LaneRef> measures;
  std::vector<std::string> messages;  ///< Serialized wire::AgentMessage, to be framed.
  std::vector<Arm> arms;
  std::string refusal;            ///< The first one of this connection, for people; empty if there was none.
  bool disconnect = false;        ///< Close, come back later.
  std::string disconnect_reason;  ///< For people.

  bool empty() const {
    return writes.empty() && measures.empty() && messages.empty() && arms.empty() && refusal.empty() && !disconnect;
  }
};

/// Decides what the agent of one host does: follows each lane from its first write to its drain, tells the coordinator,
/// turns directives into gates and caps, and opens everything when the coordinator falls silent.
///
///     idle --start--> sending --no rest--> draining --queue gone--> lingering --(pause too long)--> idle
///                        ^---------------------------------------------|  next message came soon
///
/// A lane is reported active from start to idle. `lingering` bridges the short pauses inside a coflow, so that a turn
/// is not given away between two steps of one all-reduce.
///
/// Not for: IO of any kind, clocks, memory shared with processes. Owned by Shell. Thread: the agent's loop.
/// Limits: kMaxProcesses processes, client::kMaxLanes lanes each. Cost: O(lanes that changed) an event, O(lanes) a tick
/// of kHeartbeat.
class AgentEngine {
 public:
  static constexpr Nanoseconds kHeartbeat = 100 * kMillisecond;
  static constexpr Nanoseconds kProgressEvery = 10 * kMillisecond;
  static constexpr Nanoseconds kMeasureMin = kMillisecond / 2;  ///< A draining lane is never asked about more often.
  static constexpr Nanoseconds kMeasureMax = 20 * kMillisecond;
  /// From one job's report that it is done to another's first packet: through the coordinator and the waking of a
  /// writer.
  static constexpr Nanoseconds kHandOver = 700 * kMicrosecond;
  /// Longer pauses are worth giving the turn away; for shorter ones the change-over and back costs more than it gives.
  static constexpr Nanoseconds kLingerGapMax = 10 * kMillisecond;
  /// How much longer than twice the usual pause a lane waits for the next message; and one of the first level.
  static constexpr Nanoseconds kLinger = kMillisecond;
  static constexpr Nanoseconds kLingerFirstLevel = 5 * kMillisecond;
  static constexpr Nanoseconds kDefaultTtl = 2 * kSecond;
  static constexpr Nanoseconds kHoldsOutliveConnection = 300 * kMillisecond;
  /// A pacing rate below this leaves a process unable to make progress should we vanish: 64 KiB in 0.1 s.
  static constexpr BytesPerSecond kRateFloor = 655'360;

  static constexpr std::uint32_t kLevels = 8;  ///< Queue levels that a directive may name; 0 goes first.

  explicit AgentEngine(EngineOptions options);
  ~AgentEngine();

  // ---- Events. Each may leave actions behind; Take() hands them over. ----

  /// Refused when kMaxProcesses are attached.
  Result<ProcessId> OnProcessAttached(Nanoseconds now, ProcessInfo info);
  void OnProcessDetached(Nanoseconds now, ProcessId process);
  void OnLaneAppeared(Nanoseconds now, LaneRef ref, const std::string& peer_address);
  /// A lane went away while its process lives (adopted ones only).
  void OnLaneGone(Nanoseconds now, LaneRef ref);
  void OnSample(Nanoseconds now, LaneRef ref, const LaneSample& sample);
  /// `known_by` is counted, and decides nothing.
  void OnMessageBegun(Nanoseconds now, LaneRef ref, Nanoseconds time, Bytes bytes,
                      client::KnownBy known_by = client::KnownBy::kWrites);
  void OnMessagesLost(std::uint64_t count) { counters_.messages_lost += count; }
  void OnQueueMeasured(Nanoseconds now, LaneRef ref, const QueueSample& queue);
  void OnTime(Nanoseconds now);
  void OnConnected(Nanoseconds now);
  void OnDisconnected(Nanoseconds now);
  /// `bytes` is one serialized wire::CoordinatorMessage, from anybody who reached the port.
  void OnCoordinatorMessage(Nanoseconds now, std::string_view bytes);

  Actions Take(Nanoseconds now);
  /// When OnTime must be called at the latest.
  Nanoseconds NextDeadline() const;

  // ---- For the shell and for status ----

  enum class Phase { kIdle, kSending, kDraining, kLingering };
  struct Held {
    Nanoseconds since = 0;  ///< 0 = not held now.
    Nanoseconds total = 0;
  };
  struct Lane {
    LaneId id;
    LaneRef ref;
    std::string peer;
    Phase phase = Phase::kIdle;
    LaneSample sample;
    std::uint32_t sockets_peak = 1;  ///< Most sockets sending at once since the lane last started; at least 1.
    Nanoseconds check_at = 0;        ///< Draining: when to ask the kernel again. Lingering: when to give up.
    Bytes queued = 0;                ///< Draining: as last measured.
    Nanoseconds queued_at = 0;       ///< When that was; 0: not yet.
    Bytes queued_accepted = 0;       ///< What the kernel had taken by then.
    Held held;
    std::array<std::uint64_t, client::kKnownByKinds> coflows = {};  ///< Begun, by client::KnownBy.
    // From the coordinator.
    bool directed = false;
    bool hold = false;
    BytesPerSecond rate = 0;  ///< Over all sockets, 0 = no cap.
    std::uint32_t level = 0;
    bool progress = false;
    bool unmanaged = false;
    bool marked = false;  ///< `level` has been turned into marks once; they never change after.
    std::uint32_t marks = 0;
    // As reported and as written.
    bool reported_active = false;
    Nanoseconds reported_at = 0;
    Nanoseconds reported_next = 0;  ///< When its next message was expected; 0: nothing said.
    LaneControl written;
    bool active() const { return phase != Phase::kIdle; }
  };
  struct Process {
    ProcessId id;
    ProcessInfo info;
    ProfileLearner learner;
    std::vector<LaneId> lanes;
    std::size_t lanes_busy = 0;  ///< Sending or draining.
    std::size_t lanes_held = 0;
    Nanoseconds held_since = 0;
    Nanoseconds last_message = 0;
    std::uint64_t reported_iteration = 0;
  };
  const std::map<ProcessId, Process>& processes() const { return processes_; }
  const Lane* FindLane(LaneRef ref) const;
  const Lane* FindLane(LaneId id) const;
  const EngineCounters& counters() const { return counters_; }
  bool connected() const { return welcomed_; }
  /// The coordinator's topology does not know this host, so it manages nothing here.
  bool host_unknown() const { return welcomed_ && host_unknown_; }
  std::uint64_t epoch() const { return epoch_; }
  bool in_fallback() const { return in_fallback_; }
  bool any_active() const { return lanes_active_ > 0; }

 private:
  Lane* MutableLane(LaneRef ref);
  void RemoveLane(Nanoseconds now, Lane& lane);

  // Life of a lane: engine_lanes.cc.
  void Start(Nanoseconds now, Lane& lane);
  void Continue(Nanoseconds now, Lane& lane);
  void Settle(Nanoseconds now, Lane& lane);
  void Drained(Nanoseconds now, Lane& lane);
  void GoIdle(Nanoseconds now, Lane& lane);
  void SetBusy(Nanoseconds now, Lane& lane, bool busy);
  void SetActive(Nanoseconds now, Lane& lane, bool active);
  static bool GoesFirst(const Lane& lane);
  bool LingersUntil(Nanoseconds now, const Lane& lane, Nanoseconds* until) const;
  void UpdateHeld(Nanoseconds now, Lane& lane);
  Nanoseconds NextMeasure(Nanoseconds now, const Lane& lane, const QueueSample& queue) const;
  void OnTimeLane(Nanoseconds now, Lane& lane);

  // Directives: engine_directives.cc.
  void Disconnect(std::string reason);
  void OnRefuse(std::string reason);
  void OnWelcome(Nanoseconds now, const wire::Welcome& welcome);
  void OnSchedule(Nanoseconds now, const wire::Schedule& schedule);
  std::string ApplyDirective(const wire::Directive& directive);
  void ClearDirective(Nanoseconds now, Lane& lane);
  void Heard(Nanoseconds now);
  void UpdateFallback(Nanoseconds now);
  void ApplyLane(Nanoseconds now, Lane& lane);
  void ApplyAll(Nanoseconds now);
  void RenewHold(Nanoseconds now, Lane& lane);
  LaneControl Wanted(Nanoseconds now, const Lane& lane) const;
  Nanoseconds ValidUntil() const { return heard_at_ + ttl_; }
  Nanoseconds HoldsUntil() const {
    return lost_at_ == 0 ? ValidUntil() : std::min(ValidUntil(), lost_at_ + kHoldsOutliveConnection);
  }

  // Reports: engine_reports.cc.
  void Announce(Nanoseconds now);
  void AnnounceProcess(const Process& process);
  void AnnounceLane(const Lane& lane);
  void ReportProfile(Nanoseconds now, Process& process);
  std::optional<NextMessage> NextOf(const Lane& lane) const;
  void FillDemand(Nanoseconds now, const Lane& lane, wire::LaneDemand* demand) const;
  void FlushDemand(Nanoseconds now);
  void Send(const wire::AgentMessage& message);
  void MarkDirty(const Lane& lane) { dirty_.push_back(lane.id); }

  const EngineOptions options_;
  EngineCounters counters_;
  Actions actions_;

  std::map<ProcessId, Process> processes_;
  std::unordered_map<LaneId, Lane> lanes_;
  std::map<LaneRef, LaneId> lane_ids_;
  std::vector<LaneId> dirty_;  ///< Lanes whose demand may have to be told.
  std::uint64_t next_process_ = 1;
  std::uint64_t next_lane_ = 1;
  std::size_t lanes_active_ = 0;

  bool connected_ = false;
  bool welcomed_ = false;
  bool host_unknown_ = false;
  bool refusal_told_ = false;  ///< On this connection.
  std::uint64_t epoch_ = 0;
  std::uint64_t sequence_ = 0;
  Nanoseconds heard_at_ = 0;  ///< 0 = never.
  Nanoseconds lost_at_ = 0;   ///< When the connection broke; 0 while there is one, or its holds are over already.
  Nanoseconds ttl_ = kDefaultTtl;
  Nanoseconds heartbeat_every_ = kHeartbeat;
  Nanoseconds heartbeat_at_ = 0;  ///< Next one to the coordinator.
  Nanoseconds renew_at_ = 0;      ///< Next renewal of holds.
  bool in_fallback_ = true;
  LocalFifo local_fifo_;
  std::map<std::string, std::size_t> job_active_;  ///< Active lanes of each job of this host.
};

const char* PhaseName(AgentEngine::Phase phase);

}  // namespace weir::agents
