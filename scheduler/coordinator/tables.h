#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coflow/ids.h"
#include "coflow/units.h"
#include "scheduler/turns/state.h"

/// What the coordinator knows of its agents, their processes and lanes. Plain data of CoordinatorEngine; all of it is
/// soft and comes back from the agents after a restart.
namespace weir::scheduler {

using ConnectionId = Id<struct ConnectionTag>;  ///< One TCP connection of an agent; never reused by the shell.

inline constexpr std::uint32_t kNoSlot = std::numeric_limits<std::uint32_t>::max();

struct LaneRecord {
  LaneId id;
  ProcessId process;
  std::uint32_t slot = kNoSlot;  ///< Index into FabricState::lanes; kNoSlot: unmanaged, its peer is on no known path.
  double profile_bytes = 0;      ///< Per iteration, learned.
  LaneDecision decided;          ///< Latest decision,
  LaneDecision sent;             ///< and what the agent was told last,
  bool told = false;             ///< if anything.
};

struct ProcessRecord {
  ProcessId id;
  std::uint64_t sender = 0;     ///< Unique over all agents; LaneState::sender.
  std::uint32_t job = kNoSlot;  ///< Index into FabricState::jobs.
  bool adopted = false;
  double confidence = 0;
  Nanoseconds alone = 0;
  Nanoseconds period = 0;
  Nanoseconds iteration_started = 0;  ///< Coordinator's clock.
  std::uint64_t iteration = 0;
};

struct AgentRecord {
  ConnectionId connection;
  std::string peer;  ///< Address it connected from, for people.
  bool greeted = false;
  std::string host_name;
  HostId host;  ///< None if the topology does not know it: all its lanes are unmanaged.
  std::uint64_t instance = 0;
  std::uint64_t twin = 0;  ///< Instance of the last other agent that came under the same name; 0: none did.
  std::string version;
  Nanoseconds connected = 0;
  Nanoseconds last_heard = 0;
  std::uint64_t sequence = 0;  ///< Of the last schedule sent.
  Nanoseconds last_sent = 0;
  Nanoseconds last_full = 0;
  bool wants_full = true;  ///< Nothing sent since its hello.
  Nanoseconds lag = 0;     ///< From the last answered schedule to its answer.
  std::uint64_t refused_directives = 0;
  std::map<LaneId, LaneRecord> lanes;
  std::map<ProcessId, ProcessRecord> processes;
};

/// What is known of a job beside its JobState, at the same index.
struct JobRecord {
  std::string tenant;
  std::string name;
  std::vector<ProcessRecord*> processes;  ///< Not owned: they live in their agents' tables.
  std::uint32_t gpus = 0;
  std::uint64_t turns = 0;    ///< Times it was granted a link that others wanted.
  Nanoseconds held = 0;       ///< Time with a lane that wanted to send and might not.
  bool waiting = false;       ///< Since the last decision.
  std::vector<bool> granted;  ///< Per link, at the last decision.
};

/// Who lives at an index of FabricState::lanes.
struct LaneOwner {
  AgentRecord* agent = nullptr;
  LaneRecord* lane = nullptr;
};

/// A job was given a link, or stopped using it.
struct GrantEvent {
  Nanoseconds time = 0;
  JobId job;
  LinkIndex link = 0;
  bool granted = false;
  int level = -1;  ///< Size level at the time.
};

struct EngineCounters {
  std::uint64_t decisions = 0;
  std::uint64_t messages = 0;
  std::uint64_t schedules = 0;
  std::uint64_t directives = 0;
  std::uint64_t refusals = 0;
  std::uint64_t unknown_lanes = 0;
  std::uint64_t agents_expired = 0;
  std::uint64_t directives_refused = 0;
};

}  // namespace weir::scheduler
