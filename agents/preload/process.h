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
/// Locks, in the order in which they may be taken: FdEntry::busy (only ever tried), then `slots` (try-locked in write
/// paths), then `readiness`. No lock is held across a call that can block.
namespace weir::preload {

inline constexpr std::size_t kGatedBytes = 1024;            ///< Smaller writes always pass.
inline constexpr std::size_t kDataWriteBytes = 16 * 1024;   ///< One write of this size makes a socket a data socket,
inline constexpr std::size_t kDataBurstBytes = 64 * 1024;   ///< and so do this many bytes
inline constexpr std::int64_t kBurstPause_ns = 15'000'000;  ///< without a pause as long as this.
inline constexpr std::int64_t kRecheck_ns =
    5'000'000;  ///< A socket idle for longer is looked at again: it may be another.
inline constexpr int kAttachTimeout_ms = 100;
inline constexpr std::int64_t kAttachAgain_ns = 500'000'000;

/// One data socket, by the index of its slot. Outlives the segment it is announced in.
struct SocketInfo {
  std::atomic<bool> live;
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
  std::atomic<std::uint32_t> held_sockets{};              ///< Sockets with FdEntry::held.
  std::atomic<std::uint32_t> worker{};                    ///< 1 while the worker thread exists.
  std::atomic<std::int64_t> next_attach{};                ///< Not before this.
  pthread_mutex_t slots = PTHREAD_MUTEX_INITIALIZER;      ///< Guards the two arrays and the counts.
  pthread_mutex_t readiness = PTHREAD_MUTEX_INITIALIZER;  ///< Guards the registrations of all entries.
  LaneInfo lanes[client::kMaxLanes] = {};
  std::uint32_t lane_count{};
  SocketInfo sockets[client::kMaxSockets] = {};
  std::uint32_t socket_count{};  ///< High-water mark.
};

extern Process process;

/// A number that differs between a process and its forked children, however they were forked; 0 if it cannot be had,
/// and then nothing is managed.
std::uint32_t ProcessLife() noexcept;

/// WEIR_DISABLE is not set and a job is known.
bool Enabled() noexcept;
/// WEIR_MANAGE_LOOPBACK is set: also sockets to this host itself are managed. For trying things on one machine.
bool ManagesLoopback() noexcept;
/// One line on standard error if WEIR_LOG allows: level 1 warn, 2 debug.
void Say(int level, const char* text) noexcept;

/// Attaches if that is not done and not too soon after the last try; starts the worker. Bounded by kAttachTimeout_ms.
void EnsureAttached() noexcept;
/// Announces all lanes and sockets in `segment`. Takes `slots`.
void Announce(client::Segment* segment) noexcept;
/// Opens everything, takes off our caps, and forgets the segment. Worker thread.
void Detach() noexcept;

/// Gives `fd` a socket slot and a lane; false if there is none left (counted) or it is not to be managed.
bool AddSocket(int fd, FdEntry* entry) noexcept;
void RemoveSocket(FdEntry* entry) noexcept;

/// True while `lane` must not send. Reads the clock only if its gate says hold.
bool IsHeld(const client::Segment* segment, std::uint32_t lane) noexcept;

/// SO_COOKIE of `fd`, 0 if it is not a socket.
std::uint64_t CookieOf(int fd) noexcept;

}  // namespace weir::preload
