#pragma once

#include <cstdint>

#include "coflow/ids.h"
#include "coflow/status.h"
#include "coflow/units.h"

namespace weir {

enum class Gate : std::uint8_t { kGo = 0, kHold = 1 };

inline constexpr std::uint8_t kQueueLevels = 8;  ///< 0 goes first.
inline constexpr BytesPerSecond kDirectiveRateMax = 1e12;

/// What a host must do with one lane. docs/protocol.md has the rules of epoch, sequence and time to live. A plain
/// value.
struct Directive {
  LaneId lane;
  Gate gate = Gate::kGo;
  BytesPerSecond rate = 0;     ///< Cap over all sockets of the lane; 0: none.
  std::uint8_t level = 0;      ///< 0 .. kQueueLevels - 1.
  std::uint64_t epoch = 0;     ///< Of the coordinator that said so; a lower one than seen before is refused.
  std::uint64_t sequence = 0;  ///< Of its schedule, counted within one connection.
  Nanoseconds ttl = 0;         ///< Void when nothing was heard of the coordinator for this long.

  friend bool operator==(const Directive&, const Directive&) = default;
};

/// Error kInvalidArgument with field, value found and values allowed: a lane must be named, the rate be finite and
/// within 0 .. kDirectiveRateMax, the level exist, and the time to live be positive.
Status CheckDirective(const Directive& directive);

}  // namespace weir
