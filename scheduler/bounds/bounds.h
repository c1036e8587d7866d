#pragma once

#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "scheduler/bounds/problem.h"

namespace weir::scheduler {

/// How much time lower bounds may take. On the public trace of 526 coflows: nothing, under a second, some seconds.
enum class BoundEffort {
  kNone,  ///< Isolation and makespan only.
  kQuick,
  kFull,
};
Result<BoundEffort> BoundEffortFromName(const std::string& name);

struct NamedBound {
  std::string_view name;  ///< isolation, port_partition, subsets, primal_dual, prices, lp
  double sum = 0;         ///< Of completion times counted from the release, ticks.
};

/// Every bound that holds for one problem.
struct Bounds {
  std::vector<NamedBound> completion;  ///< Isolation first.
  NamedBound best;                     ///< The largest of them; of equals the first.
  double makespan = 0;                 ///< Ticks.
};

/// Pure; allocates. With coflows that wait for others only isolation and makespan are given, without arrivals the
/// offline bounds as well.
Bounds ComputeBounds(const BoundProblem& problem, BoundEffort effort);

}  // namespace weir::scheduler
