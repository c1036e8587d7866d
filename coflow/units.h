#pragma once

#include <cstdint>

namespace weir {

/// Quantities, by the convention of the whole project: sizes are bytes, rates are bytes per second, time is nanoseconds
/// on a monotonic clock. A name that holds anything else says so in its last word (`queue_ms`, `wan_mbit`).
using Bytes = std::uint64_t;
using BytesPerSecond = double;
using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds kMicrosecond = 1'000;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

constexpr BytesPerSecond BitsPerSecond(double bits) {
  return bits / 8.0;
}
constexpr double ToSeconds(Nanoseconds t) {
  return static_cast<double>(t) * 1e-9;
}
/// Time to move `bytes` at `rate`, in nanoseconds; rate must be positive.
constexpr double TransferNanoseconds(double bytes, BytesPerSecond rate) {
  return bytes / rate * 1e9;
}

}  // namespace weir
