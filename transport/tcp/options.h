#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "coflow/units.h"

namespace weir::transport {

/// What a TCP transport is made with. Both ends may differ, but for what the handshake agrees on.
struct TcpOptions {
  /// Who we are, in every message about a connection: at most 31 printable characters. Empty: host name and process.
  std::string identity;
  /// Which network interfaces become devices, as NCCL_SOCKET_IFNAME says it: prefixes separated by commas; "^" in front
  /// excludes them, "=" takes whole names. Empty: "ib*" if there is one, else all but docker and loopback, else those.
  std::string interfaces;
  /// "AF_INET", "AF_INET6", or empty for both, as NCCL_SOCKET_FAMILY.
  std::string family;
  /// Connections that carry data, 1 .. kMaxStreams; beside them a channel has one for control.
  std::uint32_t streams = 4;
  /// Where several streams are in use, messages above this are spread over them in chunks of this size.
  Bytes stripe_bytes = 256 * 1024;
  /// What a stream may hold in the kernel without having sent it (TCP_NOTSENT_LOWAT): less decides later who goes
  /// first, more costs fewer calls. 0: the system's.
  std::uint32_t unsent_bytes = 256 * 1024;
  /// What a channel leaves in the kernel, unsent or unacknowledged, at most, but for what a long path needs: of a
  /// message smaller than this, its size, a quarter of this at least. What is in the cache when it is read costs half,
  /// see SendWindow.
  Bytes in_kernel_bytes = 1024 * 1024;
  /// And at most what the path takes in this time and two round trips, and two segments: so long until a directive
  /// bites.
  Nanoseconds queue_time = 3 * kMillisecond;
  /// Traffic class byte of the packets (DSCP << 2), for the life of a channel; below 0: the system's.
  int traffic_class = -1;
  /// Sends or receives that may be under way on a channel.
  std::uint32_t requests = 256;
  /// A link over which nothing came back is reported as dead within this time, 200 ms at least: an interruption of
  /// three quarters of it passes. A peer that is slow or frozen is not dead: its kernel answers. Several round trips of
  /// the path.
  Nanoseconds dead_after = 10 * kSecond;
  /// How long Connector::Poll goes on.
  Nanoseconds connect_within = 60 * kSecond;
  /// Bind outgoing connections to the device's address, so that several cards are used side by side.
  bool bind_source = true;
};

inline constexpr std::uint32_t kMaxStreams = 16;
inline constexpr std::uint32_t kMaxRequests = 4096;

/// Defaults, with NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY from the environment.
TcpOptions TcpOptionsFromEnvironment();

}  // namespace weir::transport
