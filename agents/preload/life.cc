// Whose memory this is: forks of every kind, and the locks that must survive them.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agents/preload/process.h"

namespace weir::preload {
namespace {

constexpr std::uint32_t kStarting = 0xffffffff;

// Read by signal handlers of the same thread only.
constinit thread_local std::atomic<bool> holding{false};

/// Zero in a child after any kind of fork, raw clone too: the kernel wipes the page.
std::atomic<std::uint32_t>* LifePage() noexcept {
  static constinit std::atomic<void*> page{nullptr};
  void* known = page.load(std::memory_order_acquire);
  if (known == nullptr) {
    void* fresh = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED) return nullptr;
    if (madvise(fresh, 4096, MADV_WIPEONFORK) != 0) {
      munmap(fresh, 4096);
      return nullptr;
    }
    if (page.compare_exchange_strong(known, fresh)) {
      known = fresh;
    } else {
      munmap(fresh, 4096);
    }
  }
  return static_cast<std::atomic<std::uint32_t>*>(known);
}

/// What the parent was managing stays the parent's: its segment is taken out of this address space, its masked
/// registrations are the parent's to restore (the epoll sets are shared with it). One thread exists.
void ForgetParent() noexcept {
  process.segment.store(nullptr);
  process.doorbell.store(nullptr);
  constexpr int kOver = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (process.home != nullptr &&
      mmap(process.home, sizeof(client::Segment), PROT_READ | PROT_WRITE, kOver, -1, 0) == MAP_FAILED) {
    process.home = nullptr;  // Nothing points there any more; the next segment goes elsewhere.
  }
  process.slots = PTHREAD_MUTEX_INITIALIZER;
  process.readiness = PTHREAD_MUTEX_INITIALIZER;
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    process.sockets[i].live = false;
    FdEntry* entry = process.fds.Find(process.sockets[i].fd);
    if (entry == nullptr) continue;
    entry->held.store(false);
    entry->masked.store(false);
    for (Registration& registration : entry->registrations) registration.masked = false;
  }
  process.held_sockets.store(0);
  process.lane_count = 0;
  process.socket_count = 0;
  process.started.store(false);
}

void AfterForkInChild() {
  holding.store(false, std::memory_order_relaxed);
  ProcessLife();
}

__attribute__((constructor)) void WatchForks() {
  pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

}  // namespace

Lock::Lock(pthread_mutex_t* mutex) noexcept : mutex_(mutex), outer_(holding.load(std::memory_order_relaxed)) {
  holding.store(true, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  pthread_mutex_lock(mutex_);
}

Lock::~Lock() {
  pthread_mutex_unlock(mutex_);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  holding.store(outer_, std::memory_order_relaxed);
}

bool Lock::HeldByThisThread() noexcept {
  return holding.load(std::memory_order_relaxed);
}

std::uint32_t ProcessLife() noexcept {
  static constinit std::atomic<std::uint32_t> lives{0};
  std::atomic<std::uint32_t>* page = LifePage();
  if (page == nullptr) return 0;
  const std::uint32_t life = page->load(std::memory_order_acquire);
  if (life != 0) [[likely]]
    return life == kStarting ? 0 : life;
  std::uint32_t expected = 0;
  if (!page->compare_exchange_strong(expected, kStarting)) return expected == kStarting ? 0 : expected;
  if (lives.load() != 0) ForgetParent();
  process.pid.store(static_cast<int>(syscall(SYS_getpid)));
  const std::uint32_t fresh = lives.fetch_add(1) + 1;
  page->store(fresh, std::memory_order_release);
  return fresh;
}

bool BorrowsMemory() noexcept {
  return process.pid.load(std::memory_order_relaxed) != static_cast<int>(syscall(SYS_getpid));
}

}  // namespace weir::preload
