#include "agents/preload/readiness.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "agents/preload/environment.h"
#include "agents/preload/real.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kSlice_ns = 2'000'000;  // how late a poller may learn that a gate has opened
constexpr nfds_t kPollMax = 512;               // larger sets are passed on as they are

bool Maskable(std::uint32_t events) noexcept {
  return (events & EPOLLOUT) != 0 && (events & (EPOLLONESHOT | EPOLLEXCLUSIVE)) == 0;
}

/// The one in the set `epoll_fd`; with -1, a free one.
Registration* FindRegistration(FdEntry* entry, int epoll_fd) noexcept {
  for (Registration& registration : entry->registrations) {
    if (registration.set == epoll_fd + 1) return &registration;
  }
  return nullptr;
}

int Modify(int fd, const Registration& registration, std::uint32_t events) noexcept {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = registration.data;
  return real::epoll_ctl(registration.set - 1, EPOLL_CTL_MOD, fd, &event);
}

/// Under `readiness`. Without `restore` the registrations stay as they are: they are somebody else's by now.
void Unmask(int fd, FdEntry* entry, bool restore) noexcept {
  if (!entry->held.exchange(false)) return;
  process.held_sockets.fetch_sub(1);
  entry->masked.store(false);
  for (Registration& registration : entry->registrations) {
    if (registration.set == 0 || !registration.masked) continue;
    registration.masked = false;
    if (restore && Modify(fd, registration, registration.events) != 0) registration.set = 0;  // closed or removed
  }
}

/// True if something is held, in this very process.
bool AnythingHeld() noexcept {
  if (process.held_sockets.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  // In a child that has not noticed yet, what is held is the parent's.
  return ProcessLife() != 0 && process.held_sockets.load(std::memory_order_relaxed) != 0;
}

/// True if `fd` is a socket that may not send now.
bool IsHeldSocket(int fd) noexcept {
  FdEntry* entry = process.fds.Find(fd);
  return entry != nullptr && entry->held.load(std::memory_order_acquire);
}

timespec ToTimespec(std::int64_t ns) noexcept {
  return {ns / 1'000'000'000, ns % 1'000'000'000};
}

/// Time left of a wait that began with `timeout`; a slice at the most.
class Slices {
 public:
  explicit Slices(const timespec* timeout)
      : endless_(timeout == nullptr),
        deadline_ns_(endless_ ? 0 : client::NowNs() + timeout->tv_sec * 1'000'000'000 + timeout->tv_nsec) {}
  bool over() const { return !endless_ && client::NowNs() >= deadline_ns_; }
  timespec Next() const { return ToTimespec(endless_ ? kSlice_ns : std::clamp<std::int64_t>(left(), 0, kSlice_ns)); }
  /// For the last call, when nothing is held: nullptr if endless.
  const timespec* All(timespec* storage) const {
    if (endless_) return nullptr;
    *storage = ToTimespec(std::max<std::int64_t>(left(), 0));
    return storage;
  }

 private:
  std::int64_t left() const { return deadline_ns_ - client::NowNs(); }
  const bool endless_;
  const std::int64_t deadline_ns_;
};

/// Copies `fds` without the writability of held sockets; true if there was any.
bool CopyMasked(const pollfd* fds, nfds_t count, pollfd* copy) noexcept {
  bool masked = false;
  for (nfds_t i = 0; i < count; ++i) {
    copy[i] = fds[i];
    if ((fds[i].events & (POLLOUT | POLLWRNORM)) == 0 || !IsHeldSocket(fds[i].fd)) continue;
    copy[i].events = static_cast<short>(fds[i].events & ~(POLLOUT | POLLWRNORM));
    masked = true;
  }
  return masked;
}

constexpr int kWordBits = 8 * sizeof(fd_mask);

/// Programs may pass sets that are only as long as `count` needs.
std::size_t SetBytes(int count) noexcept {
  return static_cast<std::size_t>((count + kWordBits - 1) / kWordBits) * sizeof(fd_mask);
}

struct FdSets {
  fd_set readable;
  fd_set writable;
  fd_set except;
};

bool DropHeld(int count, fd_set* writable) noexcept {
  bool dropped = false;
  for (int fd = 0; fd < count; ++fd) {
    if (!FD_ISSET(fd, writable) || !IsHeldSocket(fd)) continue;
    FD_CLR(fd, writable);
    dropped = true;
  }
  return dropped;
}

}  // namespace

int ControlEpoll(int epoll_fd, int operation, int fd, epoll_event* event) noexcept {
  const bool adds = operation != EPOLL_CTL_DEL && event != nullptr && (event->events & EPOLLOUT) != 0;
  FdEntry* entry = process.fds.Find(fd);
  const bool known = entry != nullptr && entry->registered.load(std::memory_order_relaxed);
  if ((!adds && !known) || epoll_fd < 0 || !EnvironmentAllows() || Lock::HeldByThisThread() || ProcessLife() == 0) {
    return real::epoll_ctl(epoll_fd, operation, fd, event);
  }
  const int saved = errno;
  if (entry == nullptr) entry = process.fds.Get(fd);
  errno = saved;
  if (entry == nullptr || (event == nullptr && operation != EPOLL_CTL_DEL)) {
    return real::epoll_ctl(epoll_fd, operation, fd, event);
  }
  const Lock lock(&process.readiness);
  Registration* registration = FindRegistration(entry, epoll_fd);
  if (operation == EPOLL_CTL_DEL) {
    if (registration != nullptr) registration->set = 0;
    return real::epoll_ctl(epoll_fd, operation, fd, event);
  }
  if (registration == nullptr) registration = FindRegistration(entry, -1);
  epoll_event passed = *event;
  const bool mask = registration != nullptr && entry->held.load() && Maskable(event->events);
  if (mask) passed.events &= ~static_cast<std::uint32_t>(EPOLLOUT);
  const int result = real::epoll_ctl(epoll_fd, operation, fd, &passed);
  if (result != 0 || registration == nullptr) return result;
  *registration = {epoll_fd + 1, mask, event->events, event->data.u64};
  entry->registered.store(true, std::memory_order_relaxed);
  if (mask) entry->masked.store(true);
  return result;
}

void MaskWritable(int fd, FdEntry* entry) noexcept {
  if (entry->held.load()) return;
  const Lock lock(&process.readiness);
  if (entry->held.exchange(true)) return;
  process.held_sockets.fetch_add(1);
  for (Registration& registration : entry->registrations) {
    if (registration.set == 0 || !Maskable(registration.events)) continue;
    if (Modify(fd, registration, registration.events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) {
      registration.masked = true;
      entry->masked.store(true);
    } else {
      registration.set = 0;
    }
  }
}

void UnmaskWritable(int fd, FdEntry* entry) noexcept {
  const Lock lock(&process.readiness);
  Unmask(fd, entry, true);
}

void OpenReleased(const client::Segment* segment) noexcept {
  if (process.held_sockets.load(std::memory_order_relaxed) == 0) return;
  const Lock slots(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    const SocketInfo& info = process.sockets[i];
    if (!info.live) continue;
    FdEntry* entry = process.fds.Find(info.fd);
    if (entry == nullptr || !entry->held.load() || (segment != nullptr && IsHeld(segment, info.lane))) continue;
    const Lock lock(&process.readiness);
    Unmask(info.fd, entry, CookieOf(info.fd) == info.cookie);
  }
}

void ForgetRegistrations(FdEntry* entry) noexcept {
  const Lock lock(&process.readiness);
  Unmask(-1, entry, false);
  entry->registered.store(false, std::memory_order_relaxed);
  for (Registration& registration : entry->registrations) registration.set = 0;
}

int Poll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) noexcept {
  if (!AnythingHeld() || count == 0 || count > kPollMax || fds == nullptr) {
    return real::ppoll(fds, count, timeout, mask);
  }
  const Slices slices(timeout);
  pollfd copy[kPollMax];
  timespec wait;
  while (CopyMasked(fds, count, copy)) {
    wait = slices.Next();
    const int ready = real::ppoll(copy, count, &wait, mask);
    if (ready < 0) return ready;
    for (nfds_t i = 0; i < count; ++i) fds[i].revents = copy[i].revents;
    if (ready > 0 || slices.over()) return ready;
  }
  return real::ppoll(fds, count, slices.All(&wait), mask);
}

int Select(int count, fd_set* readable, fd_set* writable, fd_set* except, const timespec* timeout,
           const sigset_t* mask) noexcept {
  if (!AnythingHeld() || writable == nullptr || count < 0 || count > FD_SETSIZE) {
    return real::pselect(count, readable, writable, except, timeout, mask);
  }
  const Slices slices(timeout);
  const std::size_t bytes = SetBytes(count);
  timespec wait;
  for (;;) {
    FdSets sets;
    if (readable != nullptr) memcpy(&sets.readable, readable, bytes);
    if (except != nullptr) memcpy(&sets.except, except, bytes);
    memcpy(&sets.writable, writable, bytes);
    if (!DropHeld(count, &sets.writable)) break;
    wait = slices.Next();
    const int ready = real::pselect(count, readable != nullptr ? &sets.readable : nullptr, &sets.writable,
                                    except != nullptr ? &sets.except : nullptr, &wait, mask);
    if (ready < 0) return ready;
    if (ready == 0 && !slices.over()) continue;
    if (readable != nullptr) memcpy(readable, &sets.readable, bytes);
    if (except != nullptr) memcpy(except, &sets.except, bytes);
    memcpy(writable, &sets.writable, bytes);
    return ready;
  }
  return real::pselect(count, readable, writable, except, slices.All(&wait), mask);
}

}  // namespace weir::preload
