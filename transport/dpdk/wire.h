#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/codec.h"
#include "transport/dpdk/options.h"
#include "transport/handshake.h"
#include "transport/transport.h"

/// What endpoints say to each other inside of UDP: docs/dpdk-wire.md has the layouts. Integers little-endian; every
/// decoder checks all that it reads, as it comes from outside. Decoders of data and acknowledgements do not allocate.
namespace weir::transport::dpdk {

inline constexpr std::uint32_t kHandleMagic = 0x4c444857;  // "WHDL", with a version of its own range.
inline constexpr std::uint16_t kHandleVersion = 0x0201;
inline constexpr std::uint16_t kMagic = 0x5057;  // "WP"
inline constexpr std::uint8_t kVersion = 1;

inline constexpr std::size_t kHeaderBytes = 16;
inline constexpr std::size_t kGreetingBytes = 96;  ///< Of a hello and of its answer, header included.
inline constexpr std::size_t kDataBytes = 56;      ///< In front of the data.
inline constexpr std::size_t kAckBytes = 52;       ///< And 8 for each word, then the grants.
inline constexpr std::size_t kWordsMax = 16;       ///< Of an acknowledgement.
inline constexpr std::size_t kGrantsMax = 32;      ///< Of an acknowledgement.
inline constexpr std::size_t kPingBytes = 24;

/// Segments of a channel that may be on the way at once: both ends have a place for each.
inline constexpr std::uint32_t kWindow = 4096;

enum class Kind : std::uint8_t { kHello = 1, kWelcome = 2, kData = 3, kAck = 4, kPing = 5, kClose = 6 };

/// In front of every packet; the same in all versions.
struct Header {
  static constexpr std::uint8_t kAnswer = 1;  ///< Flag: whoever gets this says something at once.
  /// Flag of an acknowledgement: what it echoes waited for its receiver to look, for nobody knows how long.
  static constexpr std::uint8_t kLate = 2;
  Kind kind = Kind::kPing;
  std::uint8_t flags = 0;
  std::uint16_t length = 0;  ///< Of the packet, this included.
  /// The channel's number at the other end. Of a hello, which does not know it: the number at this end, so that any
  /// version can refuse it.
  std::uint64_t to = 0;
};

/// With the address of its port.
struct Place : transport::Place {
  MacAddress mac{};
};

Handle EncodeHandle(const Place& place);
/// Error kInvalidArgument: not a handle of this backend; kProtocol: of another version, which is named.
Result<Place> DecodeHandle(const Handle& handle);

enum class Verdict : std::uint8_t {
  kWelcome = 0,
  kOtherVersion = 1,
  kOtherListener = 2,  ///< Nobody here has made that handle, or its listener is gone.
  kTaken = 3,          ///< Another channel has connected.
  kMalformed = 4,
};

/// A hello (kHello), or the answer to it (kWelcome).
struct Greeting {
  Nonce listener{};                     ///< From the handle.
  Nonce channel{};                      ///< Chosen by the sender.
  std::uint64_t from = 0;               ///< The channel's number at this end; 0 only in a refusal.
  std::uint16_t packet_max = 0;         ///< The largest packet that this end can carry; the smaller of both holds.
  Verdict verdict = Verdict::kWelcome;  ///< Of a hello: always kWelcome.
  std::uint8_t slots = 1;               ///< Of each receive. Of a hello: 1.
  std::string identity;
};

/// A segment of a message. `size` bytes of data follow.
struct Data {
  std::uint32_t sequence = 0;     ///< Of the segment; the same when it is repeated.
  std::uint32_t grants_seen = 0;  ///< All grants before this one have come.
  std::uint32_t receive = 0;      ///< The receive that it is for, counted from 0, wrapping,
  std::uint8_t slot = 0;          ///< and which of its slots.
  std::uint16_t size = 0;
  Bytes offset = 0;
  Bytes total = 0;
  std::uint64_t sent_at = 0;  ///< On the sender's clock; comes back in the acknowledgement.
};

/// A receive that was posted: leave to send that many messages.
struct Grant {
  struct Room {
    std::int32_t tag = 0;
    Bytes capacity = 0;
  };
  std::uint8_t count = 0;
  std::array<Room, kMaxSlots> rooms{};
};

/// What the receiver has.
struct Ack {
  std::uint32_t cumulative = 0;  ///< All segments before this one.
  std::uint32_t start = 0;       ///< The segment of the map's lowest bit. A bit that is set: it has come.
  std::uint32_t congested = 0;   ///< Segments that routers marked, counted from 0, wrapping.
  std::uint32_t arrived = 0;     ///< Segments that came in all, counted the same way.
  /// sent_at of the newest segment; 0: none since the last acknowledgement. In a kClose to channel 0, which is from an
  /// endpoint that does not know the channel: the number that it was called by.
  std::uint64_t echo = 0;
  std::uint32_t delay = 0;        ///< For how many nanoseconds that segment has been here.
  std::uint32_t first_grant = 0;  ///< The receive of the first of the grants.
  std::uint8_t words = 0;
  std::uint8_t grants = 0;
  std::array<std::uint64_t, kWordsMax> map{};
  std::array<Grant, kGrantsMax> grant{};
};

/// Heartbeat of a sender.
struct Ping {
  std::uint32_t grants_seen = 0;
};

/// Encoders return the bytes written, header included; `out` has room for the largest of its kind.
std::size_t EncodeGreeting(Kind kind, std::uint64_t to, const Greeting& greeting, std::byte* out) noexcept;
/// Only what stands in front of the data; `data.size` bytes of it follow at the result.
std::size_t EncodeData(std::uint64_t to, std::uint8_t flags, const Data& data, std::byte* out) noexcept;
std::size_t EncodePing(std::uint64_t to, std::uint8_t flags, const Ping& ping, std::byte* out) noexcept;
/// An acknowledgement, or (kClose) the last one. `room` is what the packet may have at most, at least kAckBytes and all
/// words; grants that do not fit are left out, and the rest counted in `*grants_written`.
std::size_t EncodeAck(Kind kind, std::uint64_t to, std::uint8_t flags, const Ack& ack, std::size_t room, std::byte* out,
                      std::size_t* grants_written) noexcept;

enum class HeaderVerdict : std::uint8_t { kOk, kNotOurs, kOtherVersion, kMalformed };
/// Magic, then version, then length. With kOtherVersion, the length was not checked.
HeaderVerdict DecodeHeader(std::span<const std::byte> packet, Header* header) noexcept;

// Each takes a packet whose header was understood. False, or kProtocol: it cannot be.
Result<Greeting> DecodeGreeting(std::span<const std::byte> packet);
bool DecodeData(std::span<const std::byte> packet, Data* data) noexcept;
bool DecodeAck(std::span<const std::byte> packet, Ack* ack) noexcept;
bool DecodePing(std::span<const std::byte> packet, Ping* ping) noexcept;

/// Whether `a` comes before `b`, of two numbers that wrap around and are close.
constexpr bool Before(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

}  // namespace weir::transport::dpdk
