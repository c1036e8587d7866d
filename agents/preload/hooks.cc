// The functions that stand in for libc's. Each hands over to one function of this library and to nothing else.
#include <fcntl.h>
#include <linux/close_range.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agents/preload/gate.h"
#include "agents/preload/readiness.h"
#include "agents/preload/real.h"

namespace {

using weir::preload::Extent;
using weir::preload::Forget;
using weir::preload::Pass;
namespace real = weir::preload::real;

/// Runs `make`, a lambda that takes the number of bytes to write at the most, as a write of `bytes` to `fd`.
template <typename Make>
ssize_t PassWrite(int fd, std::size_t bytes, int flags, const Make& make, Extent extent = Extent::kExact,
                  bool may_be_held = true) {
  const auto call = [](const void* arguments, std::size_t limit) -> ssize_t {
    return (*static_cast<const Make*>(arguments))(limit);
  };
  return Pass({fd, bytes, (flags & MSG_DONTWAIT) != 0, may_be_held && (flags & MSG_OOB) == 0, extent, call, &make});
}

constexpr std::size_t kPartsMax = 1024;  // The kernel refuses more; so does it what we must not read.

std::size_t Length(const iovec* parts, std::size_t count) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i) bytes += parts[i].iov_len;
  return bytes;
}

/// The first `limit` bytes of a list of parts; the list itself where that is all of it or the cut lies far down.
class Cut {
 public:
  Cut(const iovec* parts, std::size_t count, std::size_t limit) : parts_(parts), count_(count) {
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count && i < kCopied; ++i) {
      copy_[i] = parts[i];
      bytes += parts[i].iov_len;
      if (bytes < limit) continue;
      if (bytes == limit && i + 1 == count) return;
      copy_[i].iov_len -= bytes - limit;
      parts_ = copy_;
      count_ = i + 1;
      return;
    }
  }
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  const iovec* parts() const { return parts_; }
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t kCopied = 8;
  const iovec* parts_;
  std::size_t count_;
  iovec copy_[kCopied];
};

}  // namespace

#define WEIR_HOOK extern "C" __attribute__((visibility("default")))

WEIR_HOOK ssize_t write(int fd, const void* data, size_t size) {
  return PassWrite(fd, size, 0, [&](std::size_t limit) { return real::write(fd, data, limit); });
}

WEIR_HOOK ssize_t writev(int fd, const iovec* parts, int count) {
  if (parts == nullptr || count <= 0 || static_cast<std::size_t>(count) > kPartsMax)
    return real::writev(fd, parts, count);
  return PassWrite(fd, Length(parts, static_cast<std::size_t>(count)), 0, [&](std::size_t limit) {
    const Cut cut(parts, static_cast<std::size_t>(count), limit);
    return real::writev(fd, cut.parts(), static_cast<int>(cut.count()));
  });
}

WEIR_HOOK ssize_t send(int fd, const void* data, size_t size, int flags) {
  return PassWrite(fd, size, flags, [&](std::size_t limit) { return real::send(fd, data, limit, flags); });
}

WEIR_HOOK ssize_t sendto(int fd, const void* data, size_t size, int flags, const sockaddr* to, socklen_t length) {
  return PassWrite(fd, size, flags,
                   [&](std::size_t limit) { return real::sendto(fd, data, limit, flags, to, length); });
}

WEIR_HOOK ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (message == nullptr || message->msg_iov == nullptr || message->msg_iovlen > kPartsMax) {
    return real::sendmsg(fd, message, flags);
  }
  return PassWrite(fd, Length(message->msg_iov, message->msg_iovlen), flags, [&](std::size_t limit) {
    const Cut cut(message->msg_iov, message->msg_iovlen, limit);
    msghdr shorter = *message;
    shorter.msg_iov = const_cast<iovec*>(cut.parts());
    shorter.msg_iovlen = cut.count();
    return real::sendmsg(fd, &shorter, flags);
  });
}

WEIR_HOOK int sendmmsg(int fd, mmsghdr* messages, unsigned count, int flags) {
  if (messages == nullptr || count == 0 || messages[0].msg_hdr.msg_iov == nullptr ||
      messages[0].msg_hdr.msg_iovlen > kPartsMax) {
    return real::sendmmsg(fd, messages, count, flags);
  }
  // The books are kept in bytes, the call counts messages.
  int sent = -1;
  const ssize_t bytes =
      PassWrite(fd, Length(messages[0].msg_hdr.msg_iov, messages[0].msg_hdr.msg_iovlen), flags, [&](std::size_t) {
        sent = real::sendmmsg(fd, messages, count, flags);
        return sent < 0 ? ssize_t{-1} : static_cast<ssize_t>(messages[0].msg_len);
      });
  return bytes < 0 ? -1 : sent;
}

WEIR_HOOK ssize_t sendfile(int fd, int in, off_t* offset, size_t size) {
  return PassWrite(
      fd, size, 0, [&](std::size_t) { return real::sendfile(fd, in, offset, size); }, Extent::kUpTo);
}

WEIR_HOOK ssize_t sendfile64(int fd, int in, off64_t* offset, size_t size) {
  static_assert(sizeof(off_t) == sizeof(off64_t));
  return PassWrite(
      fd, size, 0, [&](std::size_t) { return real::sendfile(fd, in, offset, size); }, Extent::kUpTo);
}

WEIR_HOOK ssize_t splice(int in, off64_t* in_offset, int fd, off64_t* offset, size_t size, unsigned flags) {
  return PassWrite(
      fd, size, 0, [&](std::size_t) { return real::splice(in, in_offset, fd, offset, size, flags); }, Extent::kUpTo,
      false);
}

WEIR_HOOK int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event* event) noexcept {
  return weir::preload::ControlEpoll(epoll_fd, operation, fd, event);
}

WEIR_HOOK int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  const timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return weir::preload::Poll(fds, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

WEIR_HOOK int ppoll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  return weir::preload::Poll(fds, count, timeout, mask);
}

WEIR_HOOK int __poll_chk(pollfd* fds, nfds_t count, int timeout_ms, size_t size) {
  if (size / sizeof(pollfd) < count) __builtin_trap();
  return poll(fds, count, timeout_ms);
}

WEIR_HOOK int __ppoll_chk(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask, size_t size) {
  if (size / sizeof(pollfd) < count) __builtin_trap();
  return ppoll(fds, count, timeout, mask);
}

WEIR_HOOK int select(int count, fd_set* readable, fd_set* writable, fd_set* except, timeval* timeout) {
  if (weir::preload::process.held_sockets.load(std::memory_order_relaxed) == 0) {
    return real::select(count, readable, writable, except, timeout);
  }
  if (timeout == nullptr) return weir::preload::Select(count, readable, writable, except, nullptr, nullptr);
  const std::int64_t begin = weir::client::NowNs();
  const std::int64_t limit = timeout->tv_sec * 1'000'000'000 + timeout->tv_usec * 1'000;
  const timespec wait = {timeout->tv_sec, timeout->tv_usec * 1'000};
  const int result = weir::preload::Select(count, readable, writable, except, &wait, nullptr);
  // Linux leaves in `timeout` what is left of it.
  const std::int64_t left = std::max<std::int64_t>(0, limit - (weir::client::NowNs() - begin));
  *timeout = {left / 1'000'000'000, left % 1'000'000'000 / 1'000};
  return result;
}

WEIR_HOOK int pselect(int count, fd_set* readable, fd_set* writable, fd_set* except, const timespec* timeout,
                      const sigset_t* mask) {
  return weir::preload::Select(count, readable, writable, except, timeout, mask);
}

WEIR_HOOK int close(int fd) {
  Forget(fd);
  return real::close(fd);
}

WEIR_HOOK int close_range(unsigned first, unsigned last, int flags) noexcept {
  if ((flags & ~static_cast<int>(CLOSE_RANGE_UNSHARE)) == 0) weir::preload::ForgetRange(first, last);
  return real::close_range(first, last, flags);
}

WEIR_HOOK void closefrom(int first) noexcept {
  weir::preload::ForgetRange(first < 0 ? 0 : static_cast<unsigned>(first), ~0u);
  real::closefrom(first);
}

WEIR_HOOK int dup(int from) noexcept {
  const int fd = real::dup(from);
  if (fd >= 0) Forget(fd);
  return fd;
}

WEIR_HOOK int dup2(int from, int to) noexcept {
  if (from != to) Forget(to);
  return real::dup2(from, to);
}

WEIR_HOOK int dup3(int from, int to, int flags) noexcept {
  if (from != to) Forget(to);
  return real::dup3(from, to, flags);
}

// A new descriptor under an old number that was closed past us.
WEIR_HOOK int socket(int domain, int type, int protocol) noexcept {
  const int fd = real::socket(domain, type, protocol);
  if (fd >= 0) Forget(fd);
  return fd;
}

WEIR_HOOK int accept(int fd, sockaddr* address, socklen_t* length) {
  const int accepted = real::accept(fd, address, length);
  if (accepted >= 0) Forget(accepted);
  return accepted;
}

WEIR_HOOK int accept4(int fd, sockaddr* address, socklen_t* length, int flags) {
  const int accepted = real::accept4(fd, address, length, flags);
  if (accepted >= 0) Forget(accepted);
  return accepted;
}
