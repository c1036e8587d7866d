#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coflow/traces/trace.h"
#include "scheduler/sim/options.h"

namespace weir::scheduler {

/// What a lower bound is computed from: when each coflow may start, and the time it needs on each directed port. Every
/// bound of this folder holds for the relaxation in which each port is a preemptive machine of its own and a coflow
/// ends with its last port; so it holds for every schedule, fluid or not. Times in ticks. A plain value.
struct BoundProblem {
  struct Cell {
    std::uint32_t port = 0;
    double time = 0;  ///< Above 0.
  };

  std::size_t ports = 0;        ///< Directed: 2 P on a big switch of P.
  bool has_precedence = false;  ///< Some coflow waits for others: only isolation and makespan hold.
  std::vector<double> release;  ///< By coflow: earliest start.
  std::vector<Cell> cells;      ///< Grouped by coflow.
  std::vector<std::size_t> first_cell{0};

  std::size_t coflows() const { return release.size(); }
  std::span<const Cell> Cells(std::size_t coflow) const {
    return {cells.data() + first_cell[coflow], first_cell[coflow + 1] - first_cell[coflow]};
  }
  /// Time on an empty fabric.
  double Bottleneck(std::size_t coflow) const;
  /// Nobody may start later than others: the offline problem.
  bool SameRelease() const;
  /// Appends a coflow; `times` by port, zeros where it has no load.
  void Add(double released, std::span<const double> times);
};

/// The problem that a simulation of `trace` with these options solves: arrivals rounded as there.
BoundProblem ProblemOf(const traces::Trace& trace, const SimOptions& options);

/// Sum over the coflows of their time on an empty fabric.
double IsolationBound(const BoundProblem& problem);

/// From the first release to the last end: on every port, what is released from r on cannot start before r.
/// O(n log n + cells).
double MakespanBound(const BoundProblem& problem);

}  // namespace weir::scheduler
