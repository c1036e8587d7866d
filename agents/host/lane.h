#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "coflow/ids.h"
#include "coflow/units.h"

/// The plain values that pass between the agent's engine and its shell. No behaviour, no IO.
namespace weir::agents {

inline constexpr std::size_t kMaxProcesses = 256;  ///< Attached and adopted ones of one host.

/// Where a lane lives: its process, and its slot in that process's segment.
struct LaneRef {
  ProcessId process;
  std::uint32_t index = 0;
  friend auto operator<=>(const LaneRef&, const LaneRef&) = default;
};

struct JobInfo {
  std::string name;
  std::string tenant;
  std::string job_class;
  double weight = 0;  ///< 0 means 1.
  std::uint32_t gpus = 0;
};

struct ProcessInfo {
  JobInfo job;
  std::int64_t pid = 0;
  bool adopted = false;  ///< Paced from outside: it can be slowed, not held.
};

/// Where the time of a lane's coflows went, as far as the process says so; see client::LaneStalls.
struct LaneStalls {
  Nanoseconds gpu = 0;
  Nanoseconds credit = 0;
  Nanoseconds network = 0;
  Nanoseconds held = 0;
  friend bool operator==(const LaneStalls&, const LaneStalls&) = default;
};

/// Transfers of a lane by how their coflows were known, as far as the process says so; see client::LaneStalls.
struct LaneSends {
  std::uint64_t by_profiler = 0;
  std::uint64_t by_attributes = 0;
  std::uint64_t by_idle_gap = 0;
  friend bool operator==(const LaneSends&, const LaneSends&) = default;
};

/// What the shell last read from a lane. Untrusted: any value may appear.
struct LaneSample {
  Bytes accepted = 0;          ///< Taken by the kernel since the lane opened.
  std::uint64_t messages = 0;  ///< Data messages begun.
  Bytes rest = 0;              ///< Of the messages begun, not taken by the kernel yet.
  std::uint32_t sockets = 0;   ///< Sockets with a rest.
  bool start_taken = false;    ///< `want_start` was armed and is not any more.
  bool drain_taken = false;    ///< The same for `want_drain`.
  LaneStalls stalls = {};
  LaneSends sends = {};
};

/// What the kernel says of the sockets of a lane, added up.
struct QueueSample {
  Bytes queued = 0;         ///< Unacknowledged or unsent, beyond three segments a socket.
  Bytes unsent = 0;         ///< Of these, not sent yet.
  Nanoseconds min_rtt = 0;  ///< Smallest of the sockets; 0 if unknown.
  bool reachable = true;    ///< False if the kernel could not be asked: nothing above means anything.
};

/// What a lane is told. The pacing rate is per socket.
struct LaneControl {
  bool hold = false;
  Nanoseconds hold_until = 0;     ///< CLOCK_MONOTONIC; a hold is void after it.
  std::uint64_t pacing_rate = 0;  ///< Bytes per second, 0 = none.
  std::uint32_t notsent_lowat = 0;
  std::uint32_t marks = 0;  ///< As in client::LaneDirective.
  /// Equal but for `hold_until`, whose renewal need not wake anybody.
  bool SameAs(const LaneControl& other) const {
    return hold == other.hold && pacing_rate == other.pacing_rate && notsent_lowat == other.notsent_lowat &&
           marks == other.marks;
  }
};

}  // namespace weir::agents
