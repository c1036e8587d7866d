#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "coflow/status.h"

/// How messages are cut out of a byte stream. Before anything else is trusted: magic, version, length, in this order.
///
///     0        4          6          8        12
///     | "WEIR" | version  | reserved | length | length bytes: one serialized message |
///
/// All integers little-endian. `reserved` is sent as 0 and ignored.
namespace weir::wire {

inline constexpr std::uint32_t kFrameMagic = 0x52494557;  // "WEIR"
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 12;
inline constexpr std::size_t kMaxFrameBytes = 4u << 20;  ///< Of a payload; more is a protocol error.

/// One look at the front of a stream.
struct FrameView {
  bool complete = false;     ///< False: more bytes are needed; nothing below means anything.
  std::size_t size = 0;      ///< Bytes of the stream that the frame took, header included.
  std::string_view payload;  ///< Points into the bytes given.
};

/// Appends the frame of `payload` to `out`. The payload must not be larger than kMaxFrameBytes (checked).
void AppendFrame(std::string_view payload, std::string* out);

/// Looks at the front of `bytes`. Error kProtocol as soon as the bytes present cannot be the start of a frame: the
/// stream is then of no more use. Never allocates but for an error's message; never reads past `bytes`.
Result<FrameView> NextFrame(std::string_view bytes);

}  // namespace weir::wire
