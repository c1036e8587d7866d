#include "agents/preload/socket_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace weir::preload {
namespace {

constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
constexpr std::uint32_t kMarkBit = 1u << 31;
constexpr int kReadTries = 16;

struct Directive {
  std::uint64_t pacing_rate = 0;
  std::uint32_t notsent_lowat = 0;
  std::uint32_t marks = 0;
};

/// False if the agent was writing all the while; its next change will bring us back.
bool ReadDirective(const client::LaneSlot& lane, Directive* out) noexcept {
  for (int i = 0; i < kReadTries; ++i) {
    const std::uint32_t before = lane.sequence.load(std::memory_order_acquire);
    out->pacing_rate = lane.directive.pacing_rate.load(std::memory_order_acquire);
    out->notsent_lowat = lane.directive.notsent_lowat.load(std::memory_order_acquire);
    out->marks = lane.directive.marks.load(std::memory_order_acquire);
    if (before % 2 == 0 && lane.sequence.load(std::memory_order_relaxed) == before) return true;
  }
  return false;
}

void SetPacing(SocketInfo* info, std::uint64_t rate) noexcept {
  const std::uint64_t value = rate == 0 ? info->pacing_before : rate;
  setsockopt(info->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &value, sizeof value);
  info->pacing_rate = rate;
}

void SetLowat(SocketInfo* info, std::uint32_t bytes) noexcept {
  const std::uint32_t value = bytes == 0 ? info->lowat_before : bytes;
  setsockopt(info->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, sizeof value);
  info->lowat = bytes;
}

/// IP_TOS sets the socket's priority too, so SO_PRIORITY comes last. An IPv6 socket may carry IPv4.
void SetMarks(SocketInfo* info, std::uint32_t marks) noexcept {
  const int traffic_class = static_cast<int>(marks & 0xff);
  const int priority = static_cast<int>(marks >> 8 & 0xff);
  setsockopt(info->fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof traffic_class);
  if (info->family == AF_INET6) setsockopt(info->fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof traffic_class);
  setsockopt(info->fd, SOL_SOCKET, SO_PRIORITY, &priority, sizeof priority);
  info->marks = marks;
}

}  // namespace

void ReadOptions(SocketInfo* info) noexcept {
  const int saved = errno;
  info->pacing_rate = 0;
  info->lowat = 0;
  info->marks = 0;
  socklen_t length = sizeof info->pacing_before;
  if (getsockopt(info->fd, SOL_SOCKET, SO_MAX_PACING_RATE, &info->pacing_before, &length) != 0 ||
      length != sizeof info->pacing_before) {
    info->pacing_before = kUnlimited;
  }
  length = sizeof info->lowat_before;
  if (getsockopt(info->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &info->lowat_before, &length) != 0) info->lowat_before = 0;
  errno = saved;
}

void ApplyDirective(const client::Segment* segment, SocketInfo* info) noexcept {
  Directive wanted;
  if (!ReadDirective(segment->lanes[info->lane], &wanted)) return;
  if (wanted.pacing_rate == info->pacing_rate && wanted.notsent_lowat == info->lowat && wanted.marks == info->marks)
    return;
  if (CookieOf(info->fd) != info->cookie) return;
  const int saved = errno;
  // Somebody else's cap that is tighter than ours stays.
  if (wanted.pacing_rate > info->pacing_before) wanted.pacing_rate = 0;
  if (wanted.pacing_rate != info->pacing_rate) SetPacing(info, wanted.pacing_rate);
  if (wanted.notsent_lowat != info->lowat) SetLowat(info, wanted.notsent_lowat);
  if (wanted.marks != info->marks && (wanted.marks & kMarkBit) != 0) SetMarks(info, wanted.marks);
  errno = saved;
}

void RestoreOptions(SocketInfo* info) noexcept {
  if (CookieOf(info->fd) != info->cookie) return;
  const int saved = errno;
  if (info->pacing_rate != 0) SetPacing(info, 0);
  if (info->lowat != 0) SetLowat(info, 0);
  errno = saved;
}

}  // namespace weir::preload
