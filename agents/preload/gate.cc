#include "agents/preload/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include "agents/preload/process.h"
#include "agents/preload/readiness.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kSpinWindow_ns = 1'000'000;  // refusals closer together than this are a loop that spins
constexpr std::uint32_t kSpinRefusals = 2;
constexpr std::int64_t kSpinPause_ns = 2'000'000;
constexpr std::int64_t kHoldLook_ns = 100'000'000;  // a blocked writer looks at the agent's pulse this often

int IntOption(int fd, int option) noexcept {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

bool IsLoopback(const sockaddr_storage& peer) noexcept {
  if (peer.ss_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, &peer, sizeof v4);
    return (ntohl(v4.sin_addr.s_addr) >> 24) == 127;
  }
  sockaddr_in6 v6;
  memcpy(&v6, &peer, sizeof v6);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
         (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127);
}

/// What a descriptor never looked at is.
FdKind Look(int fd, FdEntry* entry) noexcept {
  const int domain = IntOption(fd, SO_DOMAIN);
  if ((domain != AF_INET && domain != AF_INET6) || IntOption(fd, SO_TYPE) != SOCK_STREAM ||
      IntOption(fd, SO_PROTOCOL) != IPPROTO_TCP) {
    return FdKind::kOther;
  }
  sockaddr_storage peer = {};
  socklen_t length = sizeof peer;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) return FdKind::kUnknown;  // not connected yet
  if (IsLoopback(peer) && !ManagesLoopback()) return FdKind::kOther;
  entry->cookie = CookieOf(fd);
  entry->burst_bytes = 0;
  entry->rest = 0;
  return entry->cookie == 0 ? FdKind::kOther : FdKind::kControl;
}

/// Brings the entry up to date for a write of `bytes` at `now`; true if it is a data socket.
bool Classify(int fd, FdEntry* entry, std::size_t bytes, std::int64_t now) noexcept {
  const std::uint32_t life = ProcessLife();
  FdKind kind = entry->kind.load(std::memory_order_relaxed);
  if (entry->life != life) {
    kind = FdKind::kUnknown;
    entry->life = life;
    entry->held.store(false);
  } else if (kind != FdKind::kUnknown && now - entry->last_write > kRecheck_ns && CookieOf(fd) != entry->cookie) {
    if (kind == FdKind::kData) RemoveSocket(entry);
    kind = FdKind::kUnknown;
  }
  if (kind == FdKind::kUnknown) {
    kind = life == 0 ? FdKind::kOther : Look(fd, entry);
    entry->kind.store(kind, std::memory_order_relaxed);
  }
  if (kind != FdKind::kControl && kind != FdKind::kData) return false;
  if (now - entry->last_write > kBurstPause_ns) entry->burst_bytes = 0;
  entry->burst_bytes += bytes;
  entry->last_write = now;
  if (kind == FdKind::kData) return true;
  if (bytes < kDataWriteBytes && entry->burst_bytes < kDataBurstBytes) return false;
  EnsureAttached();
  return AddSocket(fd, entry);
}

void RingIfWanted(std::atomic<std::uint32_t>& wanted) noexcept {
  if (wanted.load(std::memory_order_relaxed) == 0 || wanted.exchange(0) == 0) return;
  if (client::Doorbell* doorbell = process.doorbell.load(std::memory_order_acquire)) client::Ring(doorbell);
}

void BeginMessage(FdEntry* entry, client::Segment* segment, std::size_t bytes, bool held, std::int64_t now) noexcept {
  entry->message = segment->header.messages_begun.fetch_add(1);
  client::MessageEntry& message = segment->messages[entry->message % client::kMessageRingSize];
  message.ticket.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  message.time.store(now, std::memory_order_relaxed);
  message.accepted.store(0, std::memory_order_relaxed);
  message.bytes.store(bytes, std::memory_order_relaxed);
  message.socket.store(entry->slot, std::memory_order_relaxed);
  message.held.store(held ? 1 : 0, std::memory_order_relaxed);
  message.ticket.store(entry->message + 1, std::memory_order_release);
}

/// Keeps the books for a write of `bytes` of which the kernel has taken `taken`.
void Account(FdEntry* entry, client::Segment* segment, std::size_t bytes, std::size_t taken, bool held,
             std::int64_t now) noexcept {
  client::LaneSlot& lane = segment->lanes[process.sockets[entry->slot].lane];
  client::SocketSlot& slot = segment->sockets[entry->slot];
  const bool continues = entry->rest > 0 && bytes == entry->rest;
  if (!continues && bytes >= kGatedBytes) {
    BeginMessage(entry, segment, bytes, held, now);
    lane.messages.fetch_add(1, std::memory_order_relaxed);
  }
  if (!continues && bytes < kGatedBytes && entry->rest == 0) {
    if (taken > 0) lane.bytes_accepted.fetch_add(taken, std::memory_order_relaxed);
    return;  // A word of control between two messages.
  }
  entry->rest = bytes - taken;
  const std::uint64_t before = slot.rest.exchange(entry->rest);
  if (before == 0 && entry->rest > 0) lane.sockets_with_rest.fetch_add(1);
  if (before > 0 && entry->rest == 0) lane.sockets_with_rest.fetch_sub(1);
  if (taken > 0) lane.bytes_accepted.fetch_add(taken, std::memory_order_release);
  RingIfWanted(lane.want_start);
  if (entry->rest > 0) return;
  client::MessageEntry& message = segment->messages[entry->message % client::kMessageRingSize];
  if (message.ticket.load(std::memory_order_relaxed) == entry->message + 1) message.accepted.store(now);
  if (lane.sockets_with_rest.load() == 0) RingIfWanted(lane.want_drain);
}

/// For a program that waits for writability in a way that cannot be masked.
void SlowDown(FdEntry* entry, const client::LaneSlot& lane, std::int64_t now) noexcept {
  if (now - entry->first_refusal > kSpinWindow_ns) {
    entry->first_refusal = now;
    entry->refusals = 0;
  }
  if (++entry->refusals <= kSpinRefusals) return;
  client::FutexWait(&lane.gate, static_cast<std::uint32_t>(client::GateState::kHold), kSpinPause_ns);
}

/// Waits as a full socket would make a blocking writer wait; false if its send timeout ran out first. A signal ends the
/// wait: the write is made, and meets whatever the signal's handler left.
bool WaitForTurn(int fd, const client::Segment* segment, std::uint32_t lane) noexcept {
  timeval limit = {};
  socklen_t length = sizeof limit;
  getsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &length);
  const std::int64_t limit_ns = limit.tv_sec * 1'000'000'000 + limit.tv_usec * 1'000;
  const std::int64_t deadline = limit_ns > 0 ? client::NowNs() + limit_ns : 0;
  while (IsHeld(segment, lane)) {
    std::int64_t wait = kHoldLook_ns;
    if (deadline > 0) wait = std::min(wait, deadline - client::NowNs());
    if (wait <= 0) return false;
    const int error =
        client::FutexWait(&segment->lanes[lane].gate, static_cast<std::uint32_t>(client::GateState::kHold), wait);
    if (error == EINTR) return true;
  }
  return true;
}

enum class Verdict { kGo, kRefuse };

Verdict Hold(const Write& write, FdEntry* entry, client::Segment* segment, std::uint32_t lane,
             std::int64_t now) noexcept {
  client::LaneSlot& slot = segment->lanes[lane];
  Account(entry, segment, write.bytes, 0, true, now);
  slot.writes_held.fetch_add(1, std::memory_order_relaxed);
  std::int64_t none = 0;
  slot.first_refused.compare_exchange_strong(none, now);
  if (write.dont_wait || (fcntl(write.fd, F_GETFL) & O_NONBLOCK) != 0) {
    MaskWritable(write.fd, entry);
    if (!IsHeld(segment, lane)) {  // It opened while we masked: the worker may have looked already.
      UnmaskWritable(write.fd, entry);
      return Verdict::kGo;
    }
    SlowDown(entry, slot, now);
    return Verdict::kRefuse;
  }
  entry->busy.clear(std::memory_order_release);
  const bool turn = WaitForTurn(write.fd, segment, lane);
  while (entry->busy.test_and_set(std::memory_order_acquire)) {
  }
  return turn ? Verdict::kGo : Verdict::kRefuse;
}

/// A data socket's write, with `entry->busy` held.
ssize_t PassData(const Write& write, FdEntry* entry, std::int64_t now) noexcept {
  client::Segment* segment = process.segment.load(std::memory_order_acquire);
  if (segment == nullptr) {
    EnsureAttached();
    segment = process.segment.load(std::memory_order_acquire);
    if (segment == nullptr) return write.make(write.arguments);
  }
  const std::uint32_t lane = process.sockets[entry->slot].lane;
  client::LaneSlot& slot = segment->lanes[lane];
  if (write.bytes >= kGatedBytes && IsHeld(segment, lane) &&
      Hold(write, entry, segment, lane, now) == Verdict::kRefuse) {
    errno = EAGAIN;
    return -1;
  }
  const ssize_t result = write.make(write.arguments);
  const int error = errno;
  if (std::int64_t refused = slot.first_refused.load(std::memory_order_relaxed);
      refused != 0 && slot.first_refused.compare_exchange_strong(refused, 0)) {
    slot.held_ns.fetch_add(now - refused, std::memory_order_relaxed);
  }
  if (result >= 0 || error == EAGAIN) {
    Account(entry, segment, write.bytes, result > 0 ? static_cast<std::size_t>(result) : 0, false, now);
  }
  errno = error;
  return result;
}

}  // namespace

ssize_t Pass(const Write& write) noexcept {
  FdEntry* entry = process.fds.Find(write.fd);
  if (entry == nullptr) {
    if (write.bytes < kGatedBytes || !Enabled()) return write.make(write.arguments);
    const int saved = errno;
    entry = process.fds.Get(write.fd);
    errno = saved;
    if (entry == nullptr) return write.make(write.arguments);
  }
  const FdKind kind = entry->kind.load(std::memory_order_relaxed);
  if (kind == FdKind::kOther || (write.bytes < kGatedBytes && kind != FdKind::kData) || !Enabled() ||
      entry->busy.test_and_set(std::memory_order_acquire)) {
    return write.make(write.arguments);
  }
  const int saved = errno;
  const std::int64_t now = client::NowNs();
  const bool data = Classify(write.fd, entry, write.bytes, now);
  errno = saved;
  const ssize_t result = data ? PassData(write, entry, now) : write.make(write.arguments);
  entry->busy.clear(std::memory_order_release);
  return result;
}

void Forget(int fd) noexcept {
  FdEntry* entry = process.fds.Find(fd);
  if (entry == nullptr) return;
  const int saved = errno;
  if (entry->kind.load() == FdKind::kData && entry->life == ProcessLife()) RemoveSocket(entry);
  entry->kind.store(FdKind::kUnknown);
  ForgetRegistrations(entry);
  errno = saved;
}

}  // namespace weir::preload
