#pragma once

#include <atomic>
#include <cstdint>

/// What is known of each descriptor of this process. Lock-free reads; memory comes in pages straight from mmap, is
/// never given back, and exists only for descriptors that were looked at.
namespace weir::preload {

enum class FdKind : std::uint32_t {
  kUnknown,  ///< Not looked at, or forgotten because it was closed.
  kOther,    ///< Not a TCP socket to another host: never ours.
  kControl,  ///< A TCP socket that has not sent a burst: never held.
  kData,     ///< A TCP socket that sends bursts: has a socket slot, obeys its lane.
};

/// One registration of a descriptor in an epoll set, as the program made it. Guarded by the readiness lock.
struct Registration {
  int epoll_fd = -1;  ///< -1 = free.
  std::uint32_t events = 0;
  std::uint64_t data = 0;
  bool masked = false;  ///< EPOLLOUT is taken out at the moment.
};

inline constexpr int kRegistrations = 2;  ///< A descriptor in more sets than this waits without mask (see Refuse).

struct alignas(64) FdEntry {
  std::atomic<FdKind> kind;
  std::atomic_flag busy;   ///< Held by the thread that writes; never waited for.
  std::atomic<bool> held;  ///< Some registration is masked, or a poller should leave out writability.
  std::uint32_t life;      ///< ProcessLife() at classification; another value means a fork lies between.
  std::uint32_t slot;      ///< Index of its socket slot, if kData.
  std::uint32_t refusals;  ///< Within the last kSpinWindow, for loops that wait in a way we do not know.
  std::int64_t first_refusal;
  std::uint64_t cookie;       ///< SO_COOKIE at classification.
  std::int64_t last_write;    ///< CLOCK_MONOTONIC ns.
  std::uint64_t burst_bytes;  ///< Since the last pause.
  std::uint64_t rest;         ///< Of the current message.
  std::uint64_t message;      ///< Number of the current message.
  Registration registrations[kRegistrations];
};

class FdTable {
 public:
  static constexpr int kPageEntries = 512;
  static constexpr int kPages = 2048;  ///< Descriptors from 1,048,576 on are left alone.

  /// nullptr if nothing was ever recorded for `fd`, or it is out of range. One or two loads.
  FdEntry* Find(int fd) {
    const auto number = static_cast<unsigned>(fd);
    if (number >= static_cast<unsigned>(kPages * kPageEntries)) return nullptr;
    FdEntry* page = pages_[number / kPageEntries].load(std::memory_order_acquire);
    return page == nullptr ? nullptr : page + number % kPageEntries;
  }
  /// Makes the page if need be; nullptr if out of range or out of memory. Async-signal-safe.
  FdEntry* Get(int fd);

 private:
  std::atomic<FdEntry*> pages_[kPages] = {};
};

}  // namespace weir::preload
