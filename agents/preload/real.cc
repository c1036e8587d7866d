#include "agents/preload/real.h"

#include <dlfcn.h>
#include <stdlib.h>

namespace weir::preload {

void* FindNext(const char* name) noexcept {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) abort();  // A libc without write() or poll(): nothing could go on.
  return found;
}

namespace real {

constinit Real<ssize_t(int, const void*, size_t)> write("write");
constinit Real<ssize_t(int, const iovec*, int)> writev("writev");
constinit Real<ssize_t(int, const void*, size_t, int)> send("send");
constinit Real<ssize_t(int, const void*, size_t, int, const sockaddr*, socklen_t)> sendto("sendto");
constinit Real<ssize_t(int, const msghdr*, int)> sendmsg("sendmsg");
constinit Real<int(int, mmsghdr*, unsigned, int)> sendmmsg("sendmmsg");
constinit Real<ssize_t(int, int, off_t*, size_t)> sendfile("sendfile");
constinit Real<int(int, int, int, epoll_event*)> epoll_ctl("epoll_ctl");
constinit Real<int(pollfd*, nfds_t, int)> poll("poll");
constinit Real<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll("ppoll");
constinit Real<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select("select");
constinit Real<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> pselect("pselect");
constinit Real<int(int)> close("close");
constinit Real<int(int, int)> dup2("dup2");
constinit Real<int(int, int, int)> dup3("dup3");
constinit Real<int(int, int, int)> socket("socket");
constinit Real<int(int, sockaddr*, socklen_t*)> accept("accept");
constinit Real<int(int, sockaddr*, socklen_t*, int)> accept4("accept4");

}  // namespace real
}  // namespace weir::preload
