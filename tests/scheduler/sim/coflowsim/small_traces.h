#pragma once

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

#include "coflow/traces/reader.h"
#include "scheduler/sim/coflowsim/simulator.h"

namespace weir::scheduler::coflowsim {

/// Lines of the Facebook format, without the first: id, arrival, mappers, reducers.
inline traces::Trace FacebookTrace(const std::string& lines, std::uint32_t ports = 8) {
  const auto coflows = std::count(lines.begin(), lines.end(), '\n');
  auto in = std::make_unique<std::istringstream>(std::to_string(ports) + " " + std::to_string(coflows) + "\n" + lines);
  return traces::LoadStream(std::move(in), "test").value();
}

/// Completion times in CoflowSim's milliseconds, in the order of the trace.
inline std::vector<std::int64_t> CompletionTimes(const Outcome& outcome) {
  std::vector<std::int64_t> times;
  for (const CoflowOutcome& coflow : outcome.sim.coflows) {
    times.push_back(coflow.cct() / kTicksPerMs);
  }
  return times;
}

inline std::vector<std::int64_t> CompletionTimes(const std::string& lines, Policy policy,
                                                 std::int64_t epoch_ms = kEpochMs) {
  return CompletionTimes(RunCoflowSim(FacebookTrace(lines), {.policy = policy, .epoch_ms = epoch_ms}).value());
}

}  // namespace weir::scheduler::coflowsim
