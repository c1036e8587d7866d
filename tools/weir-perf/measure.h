#pragma once

#include <cstdint>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"
#include "tools/weir-perf/rendezvous.h"
#include "transport/transport.h"

namespace weir::tools {

/// What one size gave.
struct SizeResult {
  Bytes size = 0;
  double bits_per_second = 0;      ///< From the first send until the other end had the last message.
  double messages_per_second = 0;  ///< In the same run.
  double cpu_seconds_per_gb = 0;   ///< Of both ends; 1 GB is 10^9 bytes.
  double latency_p50_us = 0;       ///< Half of a round trip.
  double latency_p99_us = 0;
  std::uint32_t pings = 0;  ///< Round trips that were made, a tenth of them as warm-up.
};

/// Whatever the time, unless fewer are asked for: of fewer, a median says nothing.
inline constexpr std::uint32_t kPingsMin = 5;

struct MeasureOptions {
  double seconds = 1;            ///< Of each bandwidth run; after so long no ping begins but the first kPingsMin.
  std::uint32_t in_flight = 8;   ///< Sends under way.
  std::uint32_t pings = 10'000;  ///< At most; 1 at least.
  bool bandwidth = true;
  bool latency = true;
};

/// Errors: why a channel failed, or what the other end said.
Result<SizeResult> MeasureSize(Bytes size, const MeasureOptions& options, Rendezvous* rendezvous,
                               transport::Transport* transport);

}  // namespace weir::tools
