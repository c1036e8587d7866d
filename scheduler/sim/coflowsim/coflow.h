#pragma once

#include <cstdint>
#include <vector>

#include "coflow/traces/trace.h"

namespace weir::scheduler::coflowsim {

/// One coflow as CoflowSim sees it: every sender sends the same to a receiver, flows are whole megabytes. All sizes in
/// bytes, times in its milliseconds.
struct Coflow {
  std::size_t index = 0;  ///< In the trace.
  double arrival_ms = 0;
  std::vector<std::uint32_t> senders;    ///< Ports, ascending.
  std::vector<std::uint32_t> receivers;  ///< Ports, ascending.
  std::vector<double> bytes;             ///< Per receiver: rounded up to a megabyte for each sender.
  /// Per receiver, each reducer of the trace rounded up to a megabyte: what the policy LCF counts down.
  std::vector<double> stated_bytes;
  double largest = 0;      ///< Of `bytes`.
  double bottleneck = 0;   ///< Bytes of the busiest port.
  double deadline_ms = 0;  ///< After the start. Drawn for every coflow, whether or not it is kept.
};

/// The coflows of `trace` in order of arrival, deadlines drawn with `deadline_factor`. Unsupported for what CoflowSim
/// cannot express: an uneven split over the senders, dependencies, weights, deadlines of the trace, unknown sizes, or
/// a coflow that no schedule could end within its day.
Result<std::vector<Coflow>> ReadCoflows(const traces::Trace& trace, double deadline_factor);

}  // namespace weir::scheduler::coflowsim
