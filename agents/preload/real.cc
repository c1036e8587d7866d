#include "agents/preload/real.h"

#include <dlfcn.h>

namespace weir::preload {

void* FindNext(const char* name) noexcept {
  return dlsym(RTLD_NEXT, name);
}

namespace {

template <typename... Reals>
void FindEach(Reals&... reals) {
  (reals.Find(), ...);
}

}  // namespace

namespace real {

constinit Real<ssize_t(int, const void*, size_t)> write("write");
constinit Real<ssize_t(int, const iovec*, int)> writev("writev");
constinit Real<ssize_t(int, const void*, size_t, int)> send("send");
constinit Real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)> sendto("sendto");
constinit Real<ssize_t(int, const msghdr*, int)> sendmsg("sendmsg");
constinit Real<int(int, mmsghdr*, unsigned, int)> sendmmsg("sendmmsg");
constinit Real<ssize_t(int, int, off_t*, size_t)> sendfile("sendfile");
constinit Real<ssize_t(int, off64_t*, int, off64_t*, size_t, unsigned)> splice("splice");
constinit Real<int(int, int, int, epoll_event*)> epoll_ctl("epoll_ctl");
constinit Real<int(pollfd*, nfds_t, int)> poll("poll");
constinit Real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll("ppoll");
constinit Real<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select("select");
constinit Real<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> pselect("pselect");
constinit Real<int(int)> close("close");
constinit Real<int(unsigned, unsigned, int)> close_range("close_range");
constinit Real<void(int)> closefrom("closefrom");
constinit Real<int(int)> dup("dup");
constinit Real<int(int, int)> dup2("dup2");
constinit Real<int(int, int, int)> dup3("dup3");
constinit Real<int(int, int, int)> socket("socket");
constinit Real<int(int, sockaddr*, socklen_t*)> accept("accept");
constinit Real<int(int, sockaddr*, socklen_t*, int)> accept4("accept4");

namespace {

/// Looked up before the program runs, because a signal handler must not be the first to ask the linker.
__attribute__((constructor)) void FindAll() {
  FindEach(write, writev, send, sendto, sendmsg, sendmmsg, sendfile, splice, epoll_ctl, poll, ppoll, select, pselect,
           close, close_range, closefrom, dup, dup2, dup3, socket, accept, accept4);
}

}  // namespace
}  // namespace real
}  // namespace weir::preload
