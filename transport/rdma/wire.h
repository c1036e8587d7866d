#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coflow/directive.h"
#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/codec.h"
#include "transport/handshake.h"
#include "transport/rdma/gid.h"
#include "transport/transport.h"

/// What the RDMA backend says: handles, the greeting on the side connection, and what the ends write into each other's
/// memory. docs/transport.md has the layouts. All integers little-endian; every decoder checks what it reads, as it
/// comes from outside, and allocates only for an error's message.
namespace weir::transport::rdma {

inline constexpr std::uint32_t kHandleMagic = 0x4c484d52;  // "RMHL"
inline constexpr std::uint32_t kGreetMagic = 0x4d445257;   // "WRDM"
inline constexpr std::uint16_t kVersion = 1;
inline constexpr std::size_t kMaxQueuePairs = 16;  ///< Of a channel.
inline constexpr std::uint32_t kMaxRequests = 4096;

using transport::kPrefixBytes;
using transport::Place;

inline constexpr std::size_t kEndBytes = 36 + 4 * kMaxQueuePairs;
inline constexpr std::size_t kHelloBytes = kPrefixBytes + 80;
inline constexpr std::size_t kWelcomeBytes = kPrefixBytes + 56 + kEndBytes;
inline constexpr std::size_t kAttachBytes = kPrefixBytes + kEndBytes;

Handle EncodeHandle(const Place& place);
/// Error kInvalidArgument: not a handle of this backend; kProtocol: of another version, which is named.
Result<Place> DecodeHandle(const Handle& handle);

/// What one end must know of the other's device to send to it.
struct End {
  Gid gid{};
  std::uint16_t lid = 0;
  std::uint32_t first_packet = 0;  ///< Number of the first packet that it sends, on each queue pair.
  std::uint64_t memory_address =
      0;                         ///< Where the other may write: the sender's ring of posted receives, the receiver's
  std::uint32_t memory_key = 0;  ///< records of messages.
  std::array<std::uint32_t, kMaxQueuePairs> queue_pairs{};
};

/// Asks to be let in. The sender decides how many queue pairs there are, and of which traffic class.
struct Hello {
  Nonce listener{};  ///< From the handle.
  Nonce channel{};
  std::uint8_t queue_pairs = 1;  ///< Of each class.
  std::uint8_t classes = 1;
  std::uint8_t service_level = 0;
  std::uint8_t mtu = 0;  ///< As verbs number it.
  bool ethernet = true;
  std::array<std::uint8_t, kQueueLevels> traffic_classes{};
  std::string identity;
};

enum class Verdict : std::uint8_t {
  kWelcome = 0,
  kOtherVersion = 1,
  kOtherListener = 2,  ///< The handle was made by somebody else.
  kTaken = 3,          ///< Another channel has connected.
  kMalformed = 4,
  kOtherLink = 5,  ///< One end is on Ethernet, the other on InfiniBand.
  kNoRoom = 6,     ///< The device there has no room for the queues.
};

struct Welcome {
  Verdict verdict = Verdict::kWelcome;
  std::uint8_t slots = 1;  ///< Of each receive.
  std::uint8_t mtu = 0;
  std::uint32_t requests = 0;  ///< Receives that may be posted at a time.
  Nonce channel{};
  std::string identity;
  End end;
};

std::array<std::byte, kHelloBytes> EncodeHello(const Hello& hello);
std::array<std::byte, kWelcomeBytes> EncodeWelcome(const Welcome& welcome);
/// The sender's own end, after it was welcomed.
std::array<std::byte, kAttachBytes> EncodeAttach(const End& end);

/// The version in the first kPrefixBytes of what came. Error kProtocol: no greeting at all.
Result<std::uint16_t> GreetingVersion(std::span<const std::byte, kPrefixBytes> prefix);
/// Error kProtocol with what is wrong. The version was checked before.
Result<Hello> DecodeHello(std::span<const std::byte, kHelloBytes> bytes);
Result<Welcome> DecodeWelcome(std::span<const std::byte, kWelcomeBytes> bytes);
Result<End> DecodeAttach(std::span<const std::byte, kAttachBytes> bytes);

/// A receive that was posted, as the receiver writes it into the sender's ring.
struct Posted {
  struct Room {
    std::uint64_t address = 0;
    Bytes capacity = 0;
    std::uint32_t key = 0;
    std::int32_t tag = 0;
  };
  std::uint32_t number = 0;  ///< Counted by the receiver from 0, wrapping.
  std::uint32_t count = 0;
  std::array<Room, kMaxSlots> rooms{};
};

inline constexpr std::size_t kRoomBytes = 24;
inline constexpr std::size_t kPostedBytesMax = 8 + kMaxSlots * kRoomBytes;
inline constexpr std::size_t kPostedStride = 256;  ///< From one entry of the ring to the next.
static_assert(kPostedBytesMax <= kPostedStride);

/// Returns the bytes written.
std::size_t EncodePosted(const Posted& posted, std::span<std::byte, kPostedStride> out) noexcept;
/// False when it cannot be.
bool DecodePosted(std::span<const std::byte, kPostedStride> in, Posted* posted) noexcept;

/// How a message of several pieces ends, as the sender writes it into the receiver's memory.
struct Record {
  Bytes total = 0;
  std::uint32_t ends = 0;  ///< Queue pairs that carried a piece; each says that it is through.
};

inline constexpr std::size_t kRecordBytes = 16;
void EncodeRecord(const Record& record, std::span<std::byte, kRecordBytes> out) noexcept;
/// False when it cannot be.
bool DecodeRecord(std::span<const std::byte, kRecordBytes> in, Record* record) noexcept;

/// The immediate value with which a queue pair says what it is through with. That of a posted receive is the entry of
/// the ring that it is in.
struct Mark {
  enum class Kind : std::uint8_t {
    kWhole = 0,   ///< A message in one piece: this one, and its length is the message's.
    kPart = 1,    ///< This queue pair's pieces of a message.
    kRecord = 2,  ///< The same, and the record is there.
  };
  Kind kind = Kind::kWhole;
  std::uint32_t number = 0;  ///< Of the receive, modulo kMarkNumbers: it is the one that is meant, and no older one.
  std::uint32_t entry = 0;   ///< Of the ring.
  std::uint32_t slot = 0;
};

inline constexpr std::uint32_t kMarkNumbers = 1u << 15;

std::uint32_t EncodeMark(const Mark& mark) noexcept;
/// False for an unknown kind.
bool DecodeMark(std::uint32_t value, Mark* mark) noexcept;

}  // namespace weir::transport::rdma
