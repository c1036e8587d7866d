#include "agents/preload/readiness.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "agents/preload/real.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kSlice_ns = 2'000'000;  // how late a poller may learn that a gate has opened
constexpr nfds_t kPollMax = 1024;              // larger sets are passed on as they are

class Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~Lock() { pthread_mutex_unlock(mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t* const mutex_;
};

bool Maskable(std::uint32_t events) noexcept {
  return (events & EPOLLOUT) != 0 && (events & (EPOLLONESHOT | EPOLLEXCLUSIVE)) == 0;
}

Registration* FindRegistration(FdEntry* entry, int epoll_fd) noexcept {
  for (Registration& registration : entry->registrations) {
    if (registration.epoll_fd == epoll_fd) return &registration;
  }
  return nullptr;
}

int Modify(int fd, const Registration& registration, std::uint32_t events) noexcept {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = registration.data;
  return real::epoll_ctl(registration.epoll_fd, EPOLL_CTL_MOD, fd, &event);
}

/// Under `readiness`.
void Unmask(int fd, FdEntry* entry) noexcept {
  if (!entry->held.exchange(false)) return;
  process.held_sockets.fetch_sub(1);
  for (Registration& registration : entry->registrations) {
    if (registration.epoll_fd < 0 || !registration.masked) continue;
    registration.masked = false;
    if (Modify(fd, registration, registration.events) != 0) registration.epoll_fd = -1;  // closed or removed meanwhile
  }
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
  if (event == nullptr && operation != EPOLL_CTL_DEL) return real::epoll_ctl(epoll_fd, operation, fd, event);
  FdEntry* entry = operation == EPOLL_CTL_DEL ? process.fds.Find(fd) : process.fds.Get(fd);
  if (entry == nullptr) return real::epoll_ctl(epoll_fd, operation, fd, event);
  const Lock lock(&process.readiness);
  Registration* registration = FindRegistration(entry, epoll_fd);
  if (operation == EPOLL_CTL_DEL) {
    if (registration != nullptr) registration->epoll_fd = -1;
    return real::epoll_ctl(epoll_fd, operation, fd, event);
  }
  if (registration == nullptr) registration = FindRegistration(entry, -1);
  epoll_event passed = *event;
  const bool mask = registration != nullptr && entry->held.load() && Maskable(event->events);
  if (mask) passed.events &= ~static_cast<std::uint32_t>(EPOLLOUT);
  const int result = real::epoll_ctl(epoll_fd, operation, fd, &passed);
  if (result == 0 && registration != nullptr) *registration = {epoll_fd, event->events, event->data.u64, mask};
  return result;
}

void MaskWritable(int fd, FdEntry* entry) noexcept {
  if (entry->held.load()) return;
  const Lock lock(&process.readiness);
  if (entry->held.exchange(true)) return;
  process.held_sockets.fetch_add(1);
  for (Registration& registration : entry->registrations) {
    if (registration.epoll_fd < 0 || !Maskable(registration.events)) continue;
    if (Modify(fd, registration, registration.events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) {
      registration.masked = true;
    } else {
      registration.epoll_fd = -1;
    }
  }
}

void UnmaskWritable(int fd, FdEntry* entry) noexcept {
  const Lock lock(&process.readiness);
  Unmask(fd, entry);
}

void OpenReleased(const client::Segment* segment) noexcept {
  if (process.held_sockets.load(std::memory_order_relaxed) == 0) return;
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    const SocketInfo& info = process.sockets[i];
    if (!info.live.load(std::memory_order_acquire)) continue;
    FdEntry* entry = process.fds.Find(info.fd);
    if (entry == nullptr || !entry->held.load() || (segment != nullptr && IsHeld(segment, info.lane))) continue;
    const Lock lock(&process.readiness);
    if (CookieOf(info.fd) == info.cookie) {
      Unmask(info.fd, entry);
    } else if (entry->held.exchange(false)) {
      process.held_sockets.fetch_sub(1);
    }
  }
}

void ForgetRegistrations(FdEntry* entry) noexcept {
  const Lock lock(&process.readiness);
  if (entry->held.exchange(false)) process.held_sockets.fetch_sub(1);
  for (Registration& registration : entry->registrations) registration.epoll_fd = -1;
}

int Poll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) noexcept {
  if (process.held_sockets.load(std::memory_order_relaxed) == 0 || count == 0 || count > kPollMax || fds == nullptr) {
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
  if (process.held_sockets.load(std::memory_order_relaxed) == 0 || writable == nullptr || count < 0 ||
      count > FD_SETSIZE) {
    return real::pselect(count, readable, writable, except, timeout, mask);
  }
  const Slices slices(timeout);
  timespec wait;
  for (;;) {
    FdSets sets = {};
    if (readable != nullptr) sets.readable = *readable;
    if (except != nullptr) sets.except = *except;
    sets.writable = *writable;
    if (!DropHeld(count, &sets.writable)) break;
    wait = slices.Next();
    const int ready = real::pselect(count, readable != nullptr ? &sets.readable : nullptr, &sets.writable,
                                    except != nullptr ? &sets.except : nullptr, &wait, mask);
    if (ready < 0) return ready;
    if (ready == 0 && !slices.over()) continue;
    if (readable != nullptr) *readable = sets.readable;
    if (except != nullptr) *except = sets.except;
    *writable = sets.writable;
    return ready;
  }
  return real::pselect(count, readable, writable, except, slices.All(&wait), mask);
}

}  // namespace weir::preload
