#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "coflow/ip_address.h"
#include "coflow/units.h"
#include "transport/dpdk/options.h"

/// Who has which address on the segment: ARP (RFC 826) for IPv4, neighbour discovery (RFC 4861) for IPv6.
namespace weir::transport::dpdk {

inline constexpr std::size_t kNeighbourFrameBytes = 86;  ///< Of the largest; all frames with a port have room for it.

/// A question ("who has `target`?") or an answer ("`sender` is at `sender_mac`").
struct NeighbourMessage {
  bool asks = false;
  IpAddress sender;  ///< Zeros in the question of somebody who has no address yet.
  MacAddress sender_mac{};
  IpAddress target;  ///< Of an answer: whom it is for.
};

/// Understands a frame; false: it is something else, malformed, or comes from another segment.
bool DecodeNeighbour(std::span<const std::byte> frame, NeighbourMessage* message) noexcept;
/// Writes the frame and returns its bytes. `to` is the Ethernet address that an answer is for; a question goes to all
/// whom it may concern, and so does an answer to somebody without an address.
std::size_t EncodeNeighbour(const NeighbourMessage& message, const MacAddress& to, std::byte* out) noexcept;

/// The neighbours that were asked for. Only those are in it, so strangers cannot fill it. Pure. Threads: as its
/// endpoint.
class NeighbourTable {
 public:
  static constexpr std::size_t kMax = 16'384;

  /// From now on, it is remembered where `address` is. False: there are kMax already.
  bool Want(const IpAddress& address);
  bool wanted(const IpAddress& address) const { return at_.contains(address); }
  /// Null: not known.
  const MacAddress* Find(const IpAddress& address) const noexcept;
  /// True if that is news about somebody who was asked for.
  bool Learn(const IpAddress& address, const MacAddress& mac) noexcept;

 private:
  struct Entry {
    bool known = false;
    MacAddress mac{};
  };
  std::map<IpAddress, Entry> at_;
};

/// Whether the first `bits` bits of both are the same; false for addresses of two families.
bool SamePrefix(const IpAddress& a, const IpAddress& b, std::uint32_t bits) noexcept;

}  // namespace weir::transport::dpdk
