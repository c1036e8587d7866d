#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "scheduler/sim/options.h"
#include "scheduler/sim/outcome.h"

namespace weir::scheduler {

/// What a table row says about one simulation. Times in the unit of `TimeScale`.
struct Summary {
  double mean = 0, p50 = 0, p95 = 0, p99 = 0,
         max = 0;  ///< Completion times; quantiles are the smallest value not below the share.
  double slowdown_mean = 0, slowdown_p95 = 0;  ///< Completion time / time on an empty fabric.
  double makespan = 0;
  double isolation_bound = 0;  ///< Mean time on an empty fabric: no schedule has a smaller mean.
  double utilisation = 0;      ///< Bytes moved / (ports x makespan).
  std::uint64_t deadlines = 0, admitted = 0, met = 0;  ///< Coflows with a deadline, with a promised one, in time.
  std::uint64_t admitted_late = 0;                     ///< Broken promises.
  double jain = 0;                                     ///< Jain's index over 1 / slowdown.
};

Summary Summarise(const SimOutcome& outcome, std::uint32_t ports, const TimeScale& scale);

/// The smallest of `sorted` that at least `share` of the values do not exceed.
double Quantile(std::span<const double> sorted, double share);

}  // namespace weir::scheduler
