#include "agents/preload/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>

#include "agents/preload/books.h"
#include "agents/preload/environment.h"
#include "agents/preload/process.h"
#include "agents/preload/readiness.h"
#include "agents/preload/real.h"
#include "agents/preload/sockets.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kSpinWindow_ns = 1'000'000;  // refusals closer together than this are a loop that spins:
constexpr std::uint32_t kSpinRefusals = 2;          // this many where the program was told "writable",
constexpr std::uint32_t kSpinRefusalsMasked = 64;   // this many where it was not and may only be queueing
constexpr std::int64_t kSpinPause_ns = 2'000'000;
constexpr std::size_t kPieceMin = 16 * 1024;
constexpr std::int64_t kHoldLook_ns = 100'000'000;  // a blocked writer looks at the agent's pulse this often
constexpr std::uint32_t kHold = static_cast<std::uint32_t>(client::GateState::kHold);

int IntOption(int fd, int option) noexcept {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

/// What a descriptor never looked at is.
FdKind Look(int fd, FdEntry* entry) noexcept {
  const int domain = IntOption(fd, SO_DOMAIN);
  if ((domain != AF_INET && domain != AF_INET6) || IntOption(fd, SO_TYPE) != SOCK_STREAM ||
      IntOption(fd, SO_PROTOCOL) != IPPROTO_TCP) {
    return FdKind::kOther;
  }
  Ends ends;
  if (!ReadEnds(fd, &ends)) return FdKind::kUnknown;  // Not connected yet.
  if (StaysOnHost(ends) && !ManagesLoopback()) return FdKind::kOther;
  entry->cookie = CookieOf(fd);
  entry->burst_bytes = 0;
  entry->last_write = 0;
  return entry->cookie == 0 ? FdKind::kOther : FdKind::kControl;
}

/// Brings the entry up to date for a write of `bytes` at `now`; true if it is a data socket.
bool Classify(int fd, FdEntry* entry, std::size_t bytes, std::uint32_t life, std::int64_t now) noexcept {
  FdKind kind = entry->kind.load(std::memory_order_relaxed);
  if (entry->life != life) {
    kind = FdKind::kUnknown;
    entry->life = life;
  } else if (kind != FdKind::kUnknown && now - entry->last_write > kRecheck_ns && CookieOf(fd) != entry->cookie) {
    if (kind == FdKind::kData) RemoveSocket(entry);
    ForgetRegistrations(entry);
    kind = FdKind::kUnknown;
  }
  if (kind == FdKind::kUnknown) {
    kind = Look(fd, entry);
    entry->kind.store(kind, std::memory_order_relaxed);
  }
  if (kind != FdKind::kControl && kind != FdKind::kData) return false;
  if (now - entry->last_write > kBurstPause_ns) entry->burst_bytes = 0;
  entry->burst_bytes += bytes;
  entry->last_write = now;
  if (kind == FdKind::kData) return true;
  if (bytes < kDataWriteBytes && entry->burst_bytes < kDataBurstBytes) return false;
  return Start() && AddSocket(fd, entry);
}

/// For a program that waits for writability in a way that cannot be masked, or not at all.
void SlowDown(FdEntry* entry, const client::LaneSlot& lane, std::int64_t now) noexcept {
  if (now - entry->first_refusal > kSpinWindow_ns) {
    entry->first_refusal = now;
    entry->refusals = 0;
  }
  const bool masked = entry->masked.load(std::memory_order_relaxed);
  if (++entry->refusals <= (masked ? kSpinRefusalsMasked : kSpinRefusals)) return;
  client::FutexWait(&lane.gate, kHold, kSpinPause_ns);
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
    std::int64_t wait =
        std::clamp<std::int64_t>(segment->lanes[lane].hold_until.load() - client::NowNs(), 0, kHoldLook_ns);
    if (deadline > 0) {
      wait = std::min(wait, deadline - client::NowNs());
      if (wait <= 0) return false;
    }
    if (client::FutexWait(&segment->lanes[lane].gate, kHold, wait) == EINTR) return true;
  }
  return true;
}

/// The right to classify a descriptor and to keep its books. It is only tried: a thread or signal handler that does not
/// get it makes its write unrecorded. One left behind by a thread that did not live through a fork is taken over.
class Turn {
 public:
  Turn(FdEntry* entry, std::uint32_t life) noexcept : entry_(entry), life_(life) { Take(); }
  ~Turn() { Leave(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const { return taken_; }
  void Take() noexcept {
    std::uint32_t owner = entry_->busy.load(std::memory_order_relaxed);
    taken_ = owner != life_ && entry_->busy.compare_exchange_strong(owner, life_, std::memory_order_acquire);
  }
  void Leave() noexcept {
    if (taken_) entry_->busy.store(0, std::memory_order_release);
    taken_ = false;
  }

 private:
  FdEntry* const entry_;
  const std::uint32_t life_;
  bool taken_ = false;
};

enum class Verdict { kGo, kRefuse };

/// Whether the program is used to short results and refusals from this write.
bool TakesPieces(const Write& write) noexcept {
  return write.dont_wait || (fcntl(write.fd, F_GETFL) & O_NONBLOCK) != 0;
}

/// A write whose lane is held.
Verdict Hold(const Write& write, FdEntry* entry, client::Segment* segment, Turn* turn, std::int64_t now) noexcept {
  const std::uint32_t lane = entry->lane;
  RecordRefusal(entry, segment, write.bytes, now);
  if (TakesPieces(write)) {
    MaskWritable(write.fd, entry);
    if (!IsHeld(segment, lane)) {  // It opened while we masked: the worker may have looked already.
      UnmaskWritable(write.fd, entry);
      return Verdict::kGo;
    }
    SlowDown(entry, segment->lanes[lane], now);
    return Verdict::kRefuse;
  }
  turn->Leave();
  const bool go = WaitForTurn(write.fd, segment, lane);
  turn->Take();
  return go ? Verdict::kGo : Verdict::kRefuse;
}

/// A full socket, by what may wait unsent. TCP itself only looks when it begins a new segment of up to 64 KiB: a
/// program that writes until it is refused would fill one whatever the limit, and what TCP has taken is beyond any
/// gate. Asking this way also makes the kernel wake whoever waits for room, level- or edge-triggered.
bool IsFull(int fd) noexcept {
  pollfd room = {.fd = fd, .events = POLLOUT, .revents = 0};
  return real::poll(&room, nfds_t{1}, 0) == 0;
}

/// Makes the write or, while its lane has a limit on what may wait unsent, a piece of it if there is room.
ssize_t MakePiece(const Write& write, const client::LaneSlot& lane, bool gated) noexcept {
  const std::uint32_t lowat = lane.directive.notsent_lowat.load(std::memory_order_relaxed);
  const std::size_t piece = std::max<std::size_t>(kPieceMin, lowat / 2);
  const int saved = errno;
  std::size_t bytes = write.bytes;
  if (lowat != 0 && gated && TakesPieces(write)) {
    if (IsFull(write.fd)) {
      errno = EAGAIN;
      return -1;
    }
    bytes = std::min(bytes, piece);
  }
  errno = saved;
  return write.make(write.arguments, bytes);
}

/// A write to a data socket.
ssize_t PassData(const Write& write, FdEntry* entry, Turn* turn, std::int64_t now) noexcept {
  client::Segment* segment = process.segment.load(std::memory_order_acquire);
  if (segment == nullptr) return write.make(write.arguments, write.bytes);
  const int saved = errno;
  const bool gated = write.bytes >= kGatedBytes && write.may_be_held;
  if (gated && IsHeld(segment, entry->lane) && Hold(write, entry, segment, turn, now) == Verdict::kRefuse) {
    errno = EAGAIN;
    return -1;
  }
  errno = saved;
  const std::uint64_t cookie = entry->cookie;
  const ssize_t result = MakePiece(write, segment->lanes[entry->lane], gated);
  const int error = errno;
  // Another thread may have closed the descriptor while the write was under way.
  if (turn->taken() && entry->kind.load(std::memory_order_acquire) == FdKind::kData && entry->cookie == cookie) {
    if (gated) RecordOpening(entry, segment);
    if (result >= 0 || error == EAGAIN) RecordWrite(entry, segment, write, result, now);
  }
  errno = error;
  return result;
}

ssize_t PassSocket(const Write& write, FdEntry* entry) noexcept {
  const int saved = errno;
  const std::uint32_t life = Lock::HeldByThisThread() ? 0 : ProcessLife();
  if (entry == nullptr && life != 0) entry = process.fds.Get(write.fd);
  errno = saved;
  if (entry == nullptr || life == 0) return write.make(write.arguments, write.bytes);
  Turn turn(entry, life);
  if (!turn.taken()) return write.make(write.arguments, write.bytes);
  const std::int64_t now = client::NowNs();
  const bool data = Classify(write.fd, entry, write.bytes, life, now);
  errno = saved;
  return data ? PassData(write, entry, &turn, now) : write.make(write.arguments, write.bytes);
}

}  // namespace

ssize_t Pass(const Write& write) noexcept {
  FdEntry* entry = process.fds.Find(write.fd);
  const FdKind kind = entry == nullptr ? FdKind::kUnknown : entry->kind.load(std::memory_order_relaxed);
  if (kind == FdKind::kOther || (kind != FdKind::kData && write.bytes < kGatedBytes) || !EnvironmentAllows()) {
    return write.make(write.arguments, write.bytes);
  }
  return PassSocket(write, entry);
}

void Forget(int fd) noexcept {
  FdEntry* entry = process.fds.Find(fd);
  if (entry == nullptr) return;
  const FdKind kind = entry->kind.load(std::memory_order_relaxed);
  const bool registered = entry->registered.load(std::memory_order_relaxed);
  if (kind == FdKind::kUnknown && !registered) return;
  const int saved = errno;
  if (!Lock::HeldByThisThread() && ProcessLife() != 0 && !BorrowsMemory()) {
    if (entry->held.load()) UnmaskWritable(fd, entry);
    if (kind == FdKind::kData && entry->life == ProcessLife()) RemoveSocket(entry);
    if (registered) ForgetRegistrations(entry);
    entry->kind.store(FdKind::kUnknown);
  }
  errno = saved;
}

void ForgetRange(unsigned first, unsigned last) noexcept {
  for (unsigned fd = first; fd <= last; ++fd) {
    fd = process.fds.NextRecorded(fd, last);
    if (fd > last || fd > 0x7fffffffu) return;
    Forget(static_cast<int>(fd));
  }
}

}  // namespace weir::preload
