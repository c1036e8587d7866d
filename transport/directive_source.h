#pragma once

#include <cstdint>

#include "coflow/directive.h"
#include "coflow/units.h"

namespace weir::transport {

/// A lane that takes turns in time: open while (now - offset) modulo period is below window. Period 0: always open.
struct PhaseGate {
  Nanoseconds period = 0;
  Nanoseconds offset = 0;
  Nanoseconds window = 0;

  friend bool operator==(const PhaseGate&, const PhaseGate&) = default;
};

/// The longest that a gate may keep a lane waiting, whatever a directive says.
inline constexpr Nanoseconds kGateClosedMax = 2 * kSecond;

/// What a lane must do now, as the data path reads it. Values out of range never stop a lane: a rate that is not a
/// positive number is none, a level past the last is the last, a gate that would be closed for longer than
/// kGateClosedMax at a time is open, and a hold ends kGateClosedMax after it was first read.
struct LaneDirective {
  std::uint8_t level = 0;      ///< 0 .. kQueueLevels - 1; 0 goes first.
  BytesPerSecond rate = 0;     ///< Cap over everything the lane sends; 0: none. Kept to whole bytes per second.
  PhaseGate phase;             ///< When the lane may send.
  Nanoseconds hold_until = 0;  ///< The lane sends nothing before this time on the transport's clock; 0: no hold.

  friend bool operator==(const LaneDirective&, const LaneDirective&) = default;
};

/// Where a lane reads its directive: a script in tests, shared memory under an agent. Owned by the caller, outlives the
/// lane. Both calls come from the lane's thread, on the send path: no lock, no allocation, no system call.
class DirectiveSource {
 public:
  virtual ~DirectiveSource() = default;
  /// A number that changes whenever the directive does; asked for each piece that is sent.
  virtual std::uint64_t Version() const noexcept = 0;
  /// The directive of the version asked last, or a newer one.
  virtual LaneDirective Read() const noexcept = 0;
};

}  // namespace weir::transport
