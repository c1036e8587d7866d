#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/bounds/problem.h"

namespace weir::scheduler {

/// Least sum of flow times (end - release) of one preemptive machine: shortest remaining time first, which is optimal
/// there (Schrage, Operations Research 16(3), 1968). Not thread safe; no allocation once the largest input has been
/// seen.
class ShortestRemainingFirst {
 public:
  struct Job {
    double release = 0;
    double time = 0;
  };
  /// `jobs` by release. O(n log n).
  double Cost(std::span<const Job> jobs);

 private:
  std::vector<double> left_;
};

/// Lower bound on the sum of completion times, counted from the release, of `members` among any other coflows: each is
/// charged on one port on which it has load, and every port runs shortest remaining time first on what is charged to
/// it. Holds for every assignment; searched from the better of two starts by moves of single coflows while the bound
/// rises, until about `work` jobs have been looked at. At least the isolation bound of the members.
double PortPartitionBound(const BoundProblem& problem, std::span<const std::uint32_t> members, std::size_t work);

}  // namespace weir::scheduler
