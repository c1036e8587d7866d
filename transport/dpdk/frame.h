#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coflow/ip_address.h"
#include "transport/dpdk/options.h"

/// Ethernet, IPv4 or IPv6, and UDP around what the endpoint says. Network byte order, field by field; both checksums
/// are written and checked. No options, no fragments, no tags: what has them is not for us.
namespace weir::transport::dpdk {

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kUdpBytes = 8;

/// Bytes in front of the payload.
constexpr std::size_t FrameOverhead(bool v4) {
  return kEthernetBytes + (v4 ? 20u : 40u) + kUdpBytes;
}

enum class Ecn : std::uint8_t { kNot = 0, kCapable1 = 1, kCapable = 2, kCongested = 3 };  // RFC 3168, section 5.

/// From where to where, and how. Both addresses are of one family.
struct FramePath {
  MacAddress source_mac{};
  MacAddress destination_mac{};
  IpAddress source;
  IpAddress destination;
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint8_t dscp = 0;
  Ecn ecn = Ecn::kNot;
};

/// Writes the headers in front of the payload, which is in place already, and its checksum. `frame` is
/// FrameOverhead() bytes and the payload, 65,535 bytes at most.
void EncodeFrame(const FramePath& path, std::span<std::byte> frame) noexcept;

enum class FrameVerdict : std::uint8_t {
  kOk,
  kOther,        ///< Not UDP over an IP that we read: for somebody else.
  kMalformed,    ///< Shorter than it says.
  kBadChecksum,  ///< Damaged on the way.
};

struct Datagram {
  FramePath path;
  std::span<const std::byte> payload;  ///< Within the frame.
};

/// Understands a frame, or says why not; `datagram` is whole only with kOk.
FrameVerdict DecodeFrame(std::span<const std::byte> frame, Datagram* datagram) noexcept;

/// The internet checksum (RFC 1071) over `bytes`, on top of `sum`; not folded, not inverted.
std::uint64_t ChecksumAdd(std::span<const std::byte> bytes, std::uint64_t sum) noexcept;

}  // namespace weir::transport::dpdk
