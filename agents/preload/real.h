#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>

/// The functions that this library stands in front of, as the next library in line defines them. Found on first use, so
/// that calls made before our constructors, by other libraries' static initialisers, work too.
namespace weir::preload {

/// nullptr if there is none, as in an older libc; no program there can call it.
void* FindNext(const char* name) noexcept;

/// One function of the next library. Constant-initialised; any thread, any time.
template <typename Signature>
class Real {
 public:
  constexpr explicit Real(const char* name) : name_(name) {}
  template <typename... Arguments>
  auto operator()(Arguments... arguments) {
    void* found = address_.load(std::memory_order_relaxed);
    if (found == nullptr) [[unlikely]]
      found = Find();
    return reinterpret_cast<Signature*>(found)(arguments...);
  }
  void* Find() noexcept {
    void* found = FindNext(name_);
    address_.store(found, std::memory_order_relaxed);
    return found;
  }

 private:
  const char* const name_;
  std::atomic<void*> address_{nullptr};
};

namespace real {

// All are constant-initialised, where they are defined.
// NOLINTBEGIN(bugprone-dynamic-static-initializers)
extern Real<ssize_t(int, const void*, size_t)> write;
extern Real<ssize_t(int, const iovec*, int)> writev;
extern Real<ssize_t(int, const void*, size_t, int)> send;
extern Real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)> sendto;
extern Real<ssize_t(int, const msghdr*, int)> sendmsg;
extern Real<int(int, mmsghdr*, unsigned, int)> sendmmsg;
extern Real<ssize_t(int, int, off_t*, size_t)> sendfile;
extern Real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)> splice;
extern Real<int(int, int, int, epoll_event*)> epoll_ctl;
extern Real<int(pollfd*, nfds_t, int)> poll;
extern Real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll;
extern Real<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select;
extern Real<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> pselect;
extern Real<int(int)> close;
extern Real<int(unsigned, unsigned, int)> close_range;
extern Real<void(int)> closefrom;
extern Real<int(int)> dup;
extern Real<int(int, int)> dup2;
extern Real<int(int, int, int)> dup3;
extern Real<int(int, int, int)> socket;
extern Real<int(int, sockaddr*, socklen_t*)> accept;
extern Real<int(int, sockaddr*, socklen_t*, int)> accept4;
// NOLINTEND(bugprone-dynamic-static-initializers)

}  // namespace real
}  // namespace weir::preload
