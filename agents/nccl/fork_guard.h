#pragma once

#include <span>

/// A training process forks workers that load data. They inherit our sockets, and as long as one of them lives, no peer
/// would see the end of a parent that was killed. So a child closes them at once, and never uses the plugin.
namespace weir::nccl {

/// Sockets that a forked child must close. Numbers above kMaxDescriptor are not looked after. Any thread.
void CloseInChildren(std::span<const int> fds) noexcept;
void ForgetInChildren(std::span<const int> fds) noexcept;
inline constexpr int kMaxDescriptor = 1 << 20;

/// True in a process that was forked from one that uses the plugin.
bool IsForkedChild() noexcept;

/// Begins to watch for forks. Any number of calls.
void WatchForks() noexcept;

}  // namespace weir::nccl
