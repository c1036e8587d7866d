#pragma once

#include <cstdint>
#include <random>

#include "coflow/traces/trace.h"

namespace weir::scheduler {

/// Twelve coflows of up to eight flows on six ports; `scale` multiplies sizes and times.
inline traces::Trace RandomTrace(std::uint64_t seed, std::int64_t scale = 1) {
  std::mt19937_64 random(seed);
  traces::Trace trace;
  trace.ports = 6;
  std::int64_t arrival = 0;
  for (std::uint64_t id = 1; id <= 12; ++id) {
    arrival += static_cast<std::int64_t>(random() % 20);
    traces::TraceCoflow coflow{.id = id, .arrival = arrival * kMillisecond * scale};
    const std::size_t flows = 1 + random() % 8;
    for (std::size_t i = 0; i < flows; ++i) {
      coflow.flows.push_back({static_cast<std::uint32_t>(random() % 6), static_cast<std::uint32_t>(random() % 6),
                              static_cast<Bytes>(1 + random() % 9) * 1000 * static_cast<Bytes>(scale)});
    }
    traces::CountEnds(&coflow);
    trace.coflows.push_back(std::move(coflow));
  }
  return trace;
}

}  // namespace weir::scheduler
