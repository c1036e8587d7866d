#pragma once

#include <cstdint>
#include <optional>

#include "coflow/status.h"
#include "coflow/traces/trace.h"

namespace weir::traces {

/// Ways to make another instance out of a trace, applied in the order of the fields. What is random is a function of
/// the seed alone, on every machine whose `log` and `cos` agree.
struct TransformOptions {
  double scale_bytes = 1;     ///< Every flow's bytes times this, at least 1. Allowed: 1e-6 to 1e6.
  double scale_arrivals = 1;  ///< Every arrival time times this. Allowed: 0 to 1e6.
  /// Spread of a lognormal split: each flow of a coflow to one destination gets a share of what that destination
  /// receives in proportion to exp(skew_sigma x N(0, 1)). 0: as in the trace. Allowed: 0 to 10.
  double skew_sigma = 0;
  std::uint64_t skew_seed = 1;
  std::uint64_t shuffle_seed = 0;  ///< Deals the arrival times out to the coflows anew; 0: as in the trace.
  /// Arrivals move down to the epoch before them, as if coflows were admitted that early in batches: a coflow that
  /// arrives in (T, T + batch] arrives at T, the very first one at 0. 0: not.
  Nanoseconds batch_arrivals = 0;
  /// Deadline of every coflow: its time on an empty fabric x (1 + U(0, 1) x factor). None: as in the trace. Allowed: 0
  /// to 1000.
  std::optional<double> deadline_factor = std::nullopt;
  std::uint64_t deadline_seed = 1;
  BytesPerSecond port_rate = 134'217'728;  ///< Of every port of that fabric, in bytes per second of the trace's time.
};

/// InvalidArgument names the option that is out of range, Unsupported a coflow that would break a limit of trace.h or,
/// for a shuffle, that waits for others. The trace is left as it was only if the options were refused.
Status Transform(const TransformOptions& options, Trace* trace);

/// Bytes on the busiest port of a coflow: its time on an empty fabric is this over the rate of a port.
Bytes BottleneckBytes(const TraceCoflow& coflow, std::uint32_t ports);

}  // namespace weir::traces
