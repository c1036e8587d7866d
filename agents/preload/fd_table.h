#pragma once

#include <atomic>
#include <cstdint>

/// What is known of each descriptor of this process. Lock-free reads; memory comes in pages straight from mmap, is
/// never given back, and exists only for descriptors that were looked at. Zero bytes are a valid entry that knows
/// nothing.
namespace weir::preload {

enum class FdKind : std::uint32_t {
  kUnknown,  ///< Not looked at, or forgotten because it was closed.
  kOther,    ///< Not a TCP socket to another host: never ours.
  kControl,  ///< A TCP socket that has not sent a burst: never held.
  kData,     ///< A TCP socket that sends bursts: has a socket slot, obeys its lane.
};

/// One registration of a descriptor in an epoll set, as the program made it. Guarded by Process::readiness.
struct Registration {
  int set;      ///< The epoll descriptor + 1; 0 = free.
  bool masked;  ///< EPOLLOUT is taken out at the moment.
  std::uint32_t events;
  std::uint64_t data;
};

inline constexpr int kRegistrations = 2;  ///< Further sets of a descriptor are not masked; see SlowDown in gate.cc.

struct alignas(64) FdEntry {
  std::atomic<FdKind> kind;
  std::atomic<std::uint32_t> busy;  ///< ProcessLife() of the thread that writes, 0 = nobody. Never waited for.
  std::atomic<bool> held;           ///< Refused and not yet let go: pollers leave out writability.
  std::atomic<bool> registered;     ///< Some registration is or was recorded.
  std::atomic<bool> masked;         ///< Some registration is masked: the program is not told "writable".
  // What follows belongs to the thread that holds `busy`.
  std::uint32_t life;      ///< ProcessLife() at classification; another value means a fork lies between.
  std::uint32_t slot;      ///< Index of its socket slot, if kData.
  std::uint32_t lane;      ///< Index of its lane, if kData.
  std::uint32_t refusals;  ///< Since `first_refusal`, to notice loops that spin.
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
  static constexpr unsigned kPageEntries = 64;
  static constexpr unsigned kPages = 16384;  ///< Descriptors from 1,048,576 on are left alone.

  /// nullptr if nothing was ever recorded for `fd`, or it is out of range. One or two loads.
  FdEntry* Find(int fd) {
    const auto number = static_cast<unsigned>(fd);
    if (number >= kPages * kPageEntries) return nullptr;
    FdEntry* page = pages_[number / kPageEntries].load(std::memory_order_acquire);
    return page == nullptr ? nullptr : page + number % kPageEntries;
  }
  /// Makes the page if need be; nullptr if out of range or out of memory. Async-signal-safe, may change errno.
  FdEntry* Get(int fd);
  /// The first descriptor from `from` to `last` for which there may be an entry; `last` + 1 if there is none.
  unsigned NextRecorded(unsigned from, unsigned last) const;

 private:
  std::atomic<FdEntry*> pages_[kPages] = {};
};

}  // namespace weir::preload
