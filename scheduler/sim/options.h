#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weir::scheduler {

class SimObserver;

/// A tick is the time a port of the reference rate needs for one byte, so the simulators count in whole bytes and need
/// no other unit.
struct TimeScale {
  double ticks_per_ms = 134'217.728;  ///< Of the unit that is read and reported: ms, or sim-ms.
  bool coflowsim = false;             ///< Milliseconds of a trace are taken as CoflowSim's unit, 1/1024 s.

  static TimeScale Milliseconds(double port_rate) { return {port_rate / 1000.0, false}; }
  static TimeScale CoflowSim(double port_rate) { return {port_rate / 1024.0, true}; }
  const char* unit() const { return coflowsim ? "sim-ms" : "ms"; }
};

/// From `time` on, a link has this share of its capacity: 0 after a failure, less than 1 while it is degraded.
struct CapacityChange {
  std::int64_t time = 0;  ///< Ticks.
  std::uint32_t link = 0;
  double share = 1;  ///< >= 0, of the capacity it had at the start.
};

struct SimOptions {
  TimeScale scale;
  std::int64_t arrival_step = 0;  ///< Arrivals are rounded up to multiples of this many ticks; 0: not at all.
  std::int64_t delay = 0;  ///< Coordination: the state of one tick of this period is acted on at the next; 0: at once.
  int levels = 0;          ///< Priority levels of the fabric; 0: as many as coflows. Pilots have one level more.
  /// Fluid rates only: flow ends are heard of, and rates set anew, at multiples of this many ticks; 0: at once.
  std::int64_t reporting_interval = 0;
  std::vector<CapacityChange> capacity_changes;  ///< Fluid rates only; in order of time.
  std::uint64_t seed = 1;                        ///< Of pilot choice.
  std::int64_t (*clock_ns)() = nullptr;          ///< To time decisions; null: not timed.
  std::span<const std::string> link_names;       ///< By link, for messages; not owned. Empty: "link 3".
  SimObserver* observer = nullptr;               ///< Sees what happens; not owned. Null: nobody watches.
};

}  // namespace weir::scheduler
