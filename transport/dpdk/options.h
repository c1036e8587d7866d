#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "coflow/ip_address.h"
#include "coflow/units.h"

namespace weir::transport::dpdk {

using MacAddress = std::array<std::byte, 6>;

inline constexpr std::size_t kFrameBytesMin = 576;   ///< Of a frame that a port must be able to carry.
inline constexpr std::size_t kFrameBytesMax = 9216;  ///< Without the frame check sequence.
inline constexpr std::uint32_t kRequestsMax = 4096;
inline constexpr std::uint32_t kPathsMax = 64;

/// How an endpoint answers for its packets. The defaults suit a data center; see docs/dpdk-wire.md for what is agreed.
struct EndpointOptions {
  /// Who we are, in every message about a channel: 1 to 31 printable characters.
  std::string identity;
  IpAddress address;            ///< Ours.
  std::uint16_t port = 47'800;  ///< UDP, the same on all hosts of a fabric.
  /// How many leading bits of an address say that it is on our segment; 0: all are. At most those of the address.
  std::uint32_t prefix_bits = 0;
  /// The next hop to peers that are not on our segment: its address, which is then asked for (ARP, neighbour
  /// discovery), or its MAC address. With neither, every peer is on our segment. With prefix_bits 0, every peer is
  /// behind it.
  IpAddress gateway_address;
  MacAddress gateway{};
  /// Ask for the MAC address of peers on our segment, too, instead of believing their handle.
  bool ask_neighbours = false;
  /// A next hop that does not answer for so long is not there. It is asked after 0, 20, 60, 140 ms, and so on up to
  /// each 0.5 s.
  Nanoseconds neighbour_within = 3 * kSecond;
  /// Differentiated services code point for each queue level, 0 .. 63. The default: expedited first, then the assured
  /// classes, then best effort; class selector 1 ("scavenger") last.
  std::array<std::uint8_t, 8> dscp{46, 34, 26, 18, 10, 0, 0, 8};
  /// Source ports that large messages are spread over, so that routers send them different ways. 1 .. kPathsMax.
  std::uint32_t paths = 1;
  /// Whether packets say that routers may mark them instead of dropping them (ECN).
  bool ecn = true;
  /// "delay" (default) or "fixed"; see congestion.h.
  std::string congestion = "delay";
  /// How much longer than an empty path's a round trip may be before "delay" sends less. Threads that share their cores
  /// look like queues: below their jitter, the window collapses.
  Nanoseconds queue_target = 500 * kMicrosecond;
  /// What "fixed" keeps in flight, and what "delay" never exceeds.
  Bytes window_max = 64u << 20;
  std::uint32_t requests = 256;  ///< Sends or receives under way on a channel, 1 .. kRequestsMax.
  Nanoseconds dead_after = 10 * kSecond;
  Nanoseconds connect_within = 60 * kSecond;
};

}  // namespace weir::transport::dpdk
