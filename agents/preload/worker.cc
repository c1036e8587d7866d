#include "agents/preload/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "agents/preload/process.h"
#include "agents/preload/readiness.h"
#include "agents/preload/socket_options.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kLook_ns = 100'000'000;  // between two looks at the heartbeat
constexpr std::size_t kStackBytes = 64 * 1024;

bool AnyLiveSocket() noexcept {
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

void ApplyDirectives(const client::Segment* segment) noexcept {
  pthread_mutex_lock(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live.load(std::memory_order_relaxed)) ApplyDirective(segment, &process.sockets[i]);
  }
  pthread_mutex_unlock(&process.slots);
}

void Serve(client::Segment* segment) noexcept {
  const std::uint32_t seen = segment->header.generation.load(std::memory_order_acquire);
  OpenReleased(segment);
  ApplyDirectives(segment);
  const std::int64_t heartbeat = segment->header.heartbeat.load(std::memory_order_relaxed);
  if (heartbeat == 0 || client::NowNs() > heartbeat + client::kAgentDeadAfter_ns) {
    Detach();
    OpenReleased(nullptr);
    return;
  }
  client::FutexWait(&segment->header.generation, seen, kLook_ns);
}

void* Run(void*) {
  static constinit std::atomic<std::uint32_t> nothing{0};
  for (;;) {
    if (client::Segment* segment = process.segment.load(std::memory_order_acquire)) {
      Serve(segment);
      continue;
    }
    client::FutexWait(&nothing, 0, kLook_ns);
    if (AnyLiveSocket()) EnsureAttached();
  }
  return nullptr;
}

}  // namespace

void StartWorker() noexcept {
  std::uint32_t expected = 0;
  if (!process.worker.compare_exchange_strong(expected, 1)) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, Run, nullptr) == 0) {
    pthread_setname_np(thread, "weir-preload");
  } else {
    // Without the thread nobody would open a gate for a program that sleeps: be as if not attached, try again later.
    process.segment.store(nullptr);
    process.worker.store(0);
    Say(1, "cannot start the helper thread; this process runs unmanaged");
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace weir::preload
