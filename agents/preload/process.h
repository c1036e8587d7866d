#pragma once

#include <netinet/in.h>
#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "agents/client/attachment.h"
#include "agents/preload/fd_table.h"

/// The state of this library in one process, and what all its parts may do with it. Everything is constant-initialised
/// and has a trivial destructor, because hooks run before our constructors and after everybody's destructors.
///
/// Locks, in the order in which they may be taken: FdEntry::busy (only ever tried), then `slots`, then `readiness`. No
/// lock is held across a call that can block, so each is held for microseconds. A signal handler that interrupts a
/// holder and comes back into this library finds Lock::HeldByThisThread() and passes its call on untouched.
namespace weir::preload {

inline constexpr std::size_t kGatedBytes = 1024;            ///< Smaller writes always pass.
inline constexpr std::size_t kDataWriteBytes = 16 * 1024;   ///< One write of this size makes a socket a data socket,
inline constexpr std::size_t kDataBurstBytes = 64 * 1024;   ///< and so do this many bytes
inline constexpr std::int64_t kBurstPause_ns = 15'000'000;  ///< without a pause as long as this.
inline constexpr std::int64_t kRecheck_ns = 5'000'000;  ///< A socket idle for longer may be another by now: look again.
inline constexpr int kAttachTimeout_ms = 100;
inline constexpr std::int64_t kAttachAgain_ns = 500'000'000;
inline constexpr std::int64_t kAttachAgainRefused_ns = 10'000'000'000;  ///< After "no" rather than silence.

/// One data socket, by the index of its slot. Outlives the segment it is announced in. Guarded by Process::slots.
struct SocketInfo {
  bool live;
  int fd;
  std::uint64_t cookie;
  std::uint32_t lane;
  std::uint16_t family;
  std::uint16_t local_port;
  std::uint16_t peer_port;
  std::uint8_t local_address[16];
  std::uint8_t peer_address[16];
  // What we set, and what was there before.
  std::uint64_t pacing_rate;
  std::uint64_t pacing_before;
  std::uint32_t lowat;
  std::uint32_t lowat_before;
  std::uint32_t marks;
};

struct LaneInfo {
  std::uint16_t family;
  std::uint8_t peer_address[16];
};

struct Process {
  FdTable fds;
  std::atomic<client::Segment*> segment{};  ///< nullptr while not attached.
  std::atomic<client::Doorbell*> doorbell{};
  std::atomic<std::uint32_t> held_sockets{};  ///< Sockets with FdEntry::held.
  std::atomic<bool> started{};                ///< Attaching was tried and the worker started.
  std::atomic<int> pid{};
  void* home{};  ///< Where every segment of this process is mapped, one after the other. First attach, then constant.
  pthread_mutex_t slots = PTHREAD_MUTEX_INITIALIZER;      ///< Guards the two arrays and the counts.
  pthread_mutex_t readiness = PTHREAD_MUTEX_INITIALIZER;  ///< Guards the registrations of all entries.
  LaneInfo lanes[client::kMaxLanes] = {};
  std::uint32_t lane_count{};
  SocketInfo sockets[client::kMaxSockets] = {};
  std::uint32_t socket_count{};  ///< High-water mark.
};

extern Process process;  // NOLINT(bugprone-dynamic-static-initializers): it is constinit where it is defined

class Lock {
 public:
  explicit Lock(pthread_mutex_t* mutex) noexcept;
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  /// True in a signal handler that interrupted a holder: taking a lock now could wait for ever.
  static bool HeldByThisThread() noexcept;

 private:
  pthread_mutex_t* const mutex_;
  const bool outer_;
};

/// A number that differs between a process and its forked children, however they were forked; 0 if it cannot be had,
/// and then nothing is managed. The first call in a child forgets what was the parent's.
std::uint32_t ProcessLife() noexcept;
/// True if the caller is a child that borrows its parent's memory (vfork): what it closes is not closed for us.
bool BorrowsMemory() noexcept;

/// The first call attaches (bounded by kAttachTimeout_ms) and starts the worker, which tries again from then on. False
/// if nothing says which job this process works for.
bool Start() noexcept;
/// One try to attach. Returns how long to wait before the next, 0 if attached.
std::int64_t TryAttach() noexcept;
/// Takes off our caps and forgets the segment. Worker thread.
void Detach() noexcept;

/// Gives `fd` a socket slot and a lane; false if there is none left (counted) or it is not to be managed.
bool AddSocket(int fd, FdEntry* entry) noexcept;
/// The data socket behind `entry` is gone or is not to be managed any more.
void RemoveSocket(FdEntry* entry) noexcept;

/// True while `lane` must not send. Reads the clock only if its gate says hold.
bool IsHeld(const client::Segment* segment, std::uint32_t lane) noexcept;

/// SO_COOKIE of `fd`, 0 if it is not a socket. Preserves errno.
std::uint64_t CookieOf(int fd) noexcept;

}  // namespace weir::preload
