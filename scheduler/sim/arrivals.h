#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "coflow/traces/trace.h"
#include "scheduler/rate/matcher.h"
#include "scheduler/sim/options.h"

namespace weir::scheduler {

/// A time of a trace in ticks, rounded to the nearest.
std::int64_t TicksOf(Nanoseconds time, const TimeScale& scale);

/// When the coflows of a trace may start: at their arrival, rounded up to the step, and not before what they are after
/// has ended. Not thread safe; the trace must outlive it.
class Arrivals {
 public:
  Arrivals(const traces::Trace& trace, const SimOptions& options);

  /// Time of the next start; INT64_MAX when none is known (all started, or waiting for others to end).
  std::int64_t Next() const;
  /// The coflow that starts then; trace order among equals.
  std::size_t Pop();
  void OnEnd(std::size_t coflow, std::int64_t now);

 private:
  using Start = std::pair<std::int64_t, std::size_t>;
  std::vector<std::int64_t> arrival_;
  std::vector<std::size_t> waits_for_;
  std::vector<std::vector<std::size_t>> followers_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
};

/// Brings a coflow's flows into the form the allocators take: sorted by (source, destination), equal pairs added up.
/// Two counting passes, so O(flows + ports); no allocation once the largest coflow has been seen.
class FlowMerger {
 public:
  explicit FlowMerger(std::uint32_t ports) : count_(ports + 1) {}
  void Merge(std::span<const traces::TraceFlow> flows, std::vector<MatchFlow>* merged);

 private:
  std::vector<std::size_t> count_;
  std::vector<MatchFlow> by_destination_;
};

}  // namespace weir::scheduler
