#include "transport/tcp/kernel_queue.h"

// The kernel's own header: the C library's stops before the fields that are read here. Both together do not compile.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace weir::transport::tcp {
namespace {

/// What comes with nothing new acknowledged is not counted as an acknowledgement, and is a sign of life all the same.
Nanoseconds Age(const tcp_info& info) {
  return std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv) * kMillisecond;
}

}  // namespace

Bytes Unacknowledged(const Socket& socket) noexcept {
  int bytes = 0;
  return ioctl(socket.get(), SIOCOUTQ, &bytes) == 0 && bytes > 0 ? static_cast<Bytes>(bytes) : 0;
}

Nanoseconds AgeOf(const Socket& socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return Age(info);
}

Nanoseconds SilenceOf(const Socket& socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return 0;
  return info.tcpi_unacked == 0 && info.tcpi_probes == 0 ? 0 : Age(info);
}

Path AskPath(const Socket& socket) noexcept {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  Path path;
  path.segment = info.tcpi_snd_mss;
  path.repeated = info.tcpi_total_retrans;
  constexpr std::uint32_t kUnknown = std::numeric_limits<std::uint32_t>::max();
  const bool has_least = size >= offsetof(tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt);
  const std::uint32_t least_us = has_least && info.tcpi_min_rtt != kUnknown ? info.tcpi_min_rtt : info.tcpi_rtt;
  path.round_trip = least_us * kMicrosecond;
  return path;
}

}  // namespace weir::transport::tcp
