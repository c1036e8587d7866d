#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/sim/time_histogram.h"

namespace weir::scheduler {

/// How one coflow fared. Times in ticks: the time a port of the reference rate needs for one byte.
struct CoflowOutcome {
  std::uint64_t id = 0;
  std::int64_t arrival = 0;  ///< When it could start: its arrival, or the end of what it is after.
  std::int64_t end = 0;
  std::int64_t isolation = 0;  ///< Its time on an empty fabric.
  std::int64_t deadline = 0;   ///< Relative; 0: none.
  bool admitted = false;       ///< The order promised that it ends by its deadline.

  std::int64_t cct() const { return end - arrival; }
};

/// What a simulation returns. Everything but the times measured with the caller's clock is a function of the input.
struct SimOutcome {
  std::vector<CoflowOutcome> coflows;  ///< In the order of the trace.
  std::int64_t makespan = 0;           ///< From the first arrival to the last end, ticks.
  double bytes_moved = 0;
  std::uint64_t events = 0;        ///< Times at which rates may change.
  std::uint64_t rate_changes = 0;  ///< Flows that began, ended or were set to another rate.
  std::uint64_t decisions = 0;     ///< Orders computed.
  std::uint64_t active_max = 0;    ///< Most coflows running at once.
  TimeHistogram decision_ns;       ///< What each order took to compute; empty without a clock.
};

}  // namespace weir::scheduler
