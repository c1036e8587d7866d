#include "scheduler/bounds/problem.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "scheduler/sim/arrivals.h"

namespace weir::scheduler {

double BoundProblem::Bottleneck(std::size_t coflow) const {
  double most = 0;
  for (const Cell& cell : Cells(coflow)) {
    most = std::max(most, cell.time);
  }
  return most;
}

bool BoundProblem::SameRelease() const {
  return std::adjacent_find(release.begin(), release.end(), std::not_equal_to<>()) == release.end();
}

void BoundProblem::Add(double released, std::span<const double> times) {
  release.push_back(released);
  for (std::uint32_t port = 0; port < times.size(); ++port) {
    if (times[port] > 0) {
      cells.push_back({port, times[port]});
    }
  }
  first_cell.push_back(cells.size());
}

BoundProblem ProblemOf(const traces::Trace& trace, const SimOptions& options) {
  BoundProblem problem;
  problem.ports = std::size_t{2} * trace.ports;
  std::vector<double> times(problem.ports);
  for (const traces::TraceCoflow& coflow : trace.coflows) {
    std::fill(times.begin(), times.end(), 0.0);
    for (const traces::TraceFlow& flow : coflow.flows) {
      times[flow.source] += static_cast<double>(flow.bytes);
      times[trace.ports + flow.destination] += static_cast<double>(flow.bytes);
    }
    problem.Add(0, times);
    problem.has_precedence |= !coflow.after.empty();
  }
  // A coflow that waits for others starts no earlier than they end on an empty fabric.
  Arrivals arrivals(trace, options);
  while (arrivals.Next() != std::numeric_limits<std::int64_t>::max()) {
    const std::int64_t start = arrivals.Next();
    const std::size_t coflow = arrivals.Pop();
    problem.release[coflow] = static_cast<double>(start);
    arrivals.OnEnd(coflow, start + static_cast<std::int64_t>(problem.Bottleneck(coflow)));
  }
  return problem;
}

double IsolationBound(const BoundProblem& problem) {
  double sum = 0;
  for (std::size_t coflow = 0; coflow < problem.coflows(); ++coflow) {
    sum += problem.Bottleneck(coflow);
  }
  return sum;
}

double MakespanBound(const BoundProblem& problem) {
  if (problem.coflows() == 0) {
    return 0;
  }
  std::vector<std::size_t> latest_first(problem.coflows());
  std::iota(latest_first.begin(), latest_first.end(), std::size_t{0});
  std::stable_sort(latest_first.begin(), latest_first.end(),
                   [&](std::size_t a, std::size_t b) { return problem.release[a] > problem.release[b]; });
  std::vector<double> released_since(problem.ports, 0);
  const double begin = problem.release[latest_first.back()];
  double end = begin;
  for (const std::size_t coflow : latest_first) {
    for (const BoundProblem::Cell& cell : problem.Cells(coflow)) {
      released_since[cell.port] += cell.time;
      end = std::max(end, problem.release[coflow] + released_since[cell.port]);
    }
  }
  return end - begin;
}

}  // namespace weir::scheduler
