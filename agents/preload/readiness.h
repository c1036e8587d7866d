#pragma once

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

#include "agents/preload/process.h"

/// Keeps a program from being told that a held socket is writable, whichever way it waits: a loop that were told so
/// would try, be refused, and try again without end.
///
/// epoll: EPOLLOUT is taken out of the kernel's registration and put back, as the program made it, when the gate opens.
/// The program's own changes meanwhile are remembered and take effect then. One-shot and exclusive registrations are
/// not touched (putting them back would arm them behind the program's back); the refusal itself slows such loops down.
/// poll, select: the call works on a copy without the held sockets' writability, in slices, for as long as one is held.
namespace weir::preload {

/// The program's epoll_ctl.
int ControlEpoll(int epoll_fd, int operation, int fd, epoll_event* event) noexcept;
/// Takes writability of `fd` away; call before refusing a write.
void MaskWritable(int fd, FdEntry* entry) noexcept;
/// Gives it back.
void UnmaskWritable(int fd, FdEntry* entry) noexcept;
/// Gives it back to every socket that is not held any more; with nullptr, to all. Worker thread.
void OpenReleased(const client::Segment* segment) noexcept;
/// Forgets the registrations of a descriptor that was closed.
void ForgetRegistrations(FdEntry* entry) noexcept;

/// poll and ppoll; `timeout` nullptr = for ever.
int Poll(pollfd* fds, nfds_t count, const timespec* timeout, const sigset_t* mask) noexcept;
/// select and pselect.
int Select(int count, fd_set* readable, fd_set* writable, fd_set* except, const timespec* timeout,
           const sigset_t* mask) noexcept;

}  // namespace weir::preload
