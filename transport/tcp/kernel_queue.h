#pragma once

#include <cstdint>

#include "coflow/units.h"
#include "transport/tcp/socket.h"

/// What the kernel knows of a connection. Any thread; never waits.
namespace weir::transport::tcp {

/// Bytes that were written and not acknowledged yet, sent or not. About 0.2 us. 0 when the connection is gone.
Bytes Unacknowledged(const Socket& socket) noexcept;

/// Since something last came from the other end, as the kernel counts it, in its ticks of some milliseconds. 0 when it
/// cannot be asked. About 1 us.
Nanoseconds AgeOf(const Socket& socket) noexcept;
/// The same if something of ours waits for an answer, else 0.
Nanoseconds SilenceOf(const Socket& socket) noexcept;

struct Path {
  Nanoseconds round_trip = 0;  ///< The least in the last minutes; 0: unknown.
  Bytes segment = 0;           ///< Bytes of payload; 0: unknown.
  std::uint32_t repeated = 0;  ///< Segments that were sent again since the beginning; wraps around.
};

/// About 1 us.
Path AskPath(const Socket& socket) noexcept;

}  // namespace weir::transport::tcp
