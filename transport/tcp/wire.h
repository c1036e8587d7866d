#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/codec.h"
#include "transport/handshake.h"
#include "transport/tcp/options.h"
#include "transport/transport.h"

/// What the TCP backend says: handles, the greeting of each connection, the header of each chunk of data, and control
/// frames. docs/transport.md has the layouts. All integers little-endian; every decoder checks what it reads, as it
/// comes from outside, and allocates only for an error's message.
namespace weir::transport::tcp {

inline constexpr std::uint32_t kHandleMagic = 0x4c444857;  // "WHDL"
inline constexpr std::uint32_t kGreetMagic = 0x50435457;   // "WTCP"
inline constexpr std::uint16_t kVersion = 1;

using transport::kIdentityBytes;
using transport::kPrefixBytes;
using transport::Nonce;
using transport::Place;

inline constexpr std::size_t kHelloBytes = 76;
inline constexpr std::size_t kWelcomeBytes = 60;
inline constexpr std::size_t kChunkBytes = 32;
inline constexpr std::size_t kControlBytes = 8;  ///< And kPostedBytes for each slot.
inline constexpr std::size_t kPostedBytes = 12;
inline constexpr std::size_t kControlBytesMax = kControlBytes + kMaxSlots * kPostedBytes;

Handle EncodeHandle(const Place& place);
/// Error kInvalidArgument: not a handle of this backend; kProtocol: of another version, which is named.
Result<Place> DecodeHandle(const Handle& handle);

/// The first bytes of a connection, from the side that connects.
struct Hello {
  Nonce listener{};          ///< From the handle.
  Nonce channel{};           ///< Chosen by the sender, the same on all connections of a channel.
  std::uint8_t stream = 0;   ///< 0: control; 1 .. streams: data.
  std::uint8_t streams = 0;  ///< That carry data.
  std::string identity;
};

std::array<std::byte, kHelloBytes> EncodeHello(const Hello& hello);
/// The version in the first kPrefixBytes of a greeting. Error kProtocol: not a greeting at all.
Result<std::uint16_t> GreetingVersion(std::span<const std::byte, kPrefixBytes> prefix);
/// Error kProtocol with what is wrong. The version was checked before.
Result<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes);

enum class Verdict : std::uint8_t {
  kWelcome = 0,
  kOtherVersion = 1,
  kOtherListener = 2,  ///< The handle was made by somebody else.
  kTaken = 3,          ///< Another channel has connected.
  kMalformed = 4,
};

/// The answer to a Hello, on the same connection.
struct Welcome {
  Verdict verdict = Verdict::kWelcome;
  std::uint8_t slots = 1;  ///< Of each receive.
  Nonce channel{};
  std::string identity;
};

std::array<std::byte, kWelcomeBytes> EncodeWelcome(const Welcome& welcome);
/// Error kProtocol with what is wrong.
Result<Welcome> DecodeWelcome(std::span<const std::byte, kWelcomeBytes> bytes);

/// What stands before each chunk of a message.
struct Chunk {
  std::int32_t tag = 0;
  std::uint32_t message = 0;  ///< Counted by the sender from 0, wrapping.
  std::uint32_t length = 0;   ///< Bytes that follow.
  Bytes offset = 0;           ///< Of them in the message.
  Bytes total = 0;            ///< Of the message.
};

void EncodeChunk(const Chunk& chunk, std::span<std::byte, kChunkBytes> out) noexcept;
/// False when it cannot be: unknown kind, beyond the message, or empty within a message that is not.
bool DecodeChunk(std::span<const std::byte, kChunkBytes> in, Chunk* chunk) noexcept;

/// A heartbeat (no slots) or a receive that was posted.
struct Control {
  struct Posted {
    std::int32_t tag = 0;
    Bytes capacity = 0;
  };
  std::uint32_t count = 0;
  std::array<Posted, kMaxSlots> slots{};
};

/// Returns the bytes written.
std::size_t EncodeControl(const Control& control, std::span<std::byte, kControlBytesMax> out) noexcept;
/// The bytes of the frame at the front of `in`: 0 when more are needed, kControlBad when it cannot be one.
inline constexpr std::size_t kControlBad = ~std::size_t{0};
std::size_t DecodeControl(std::span<const std::byte> in, Control* control) noexcept;

}  // namespace weir::transport::tcp
