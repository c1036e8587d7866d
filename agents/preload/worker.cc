#include "agents/preload/worker.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "agents/preload/environment.h"
#include "agents/preload/process.h"
#include "agents/preload/readiness.h"
#include "agents/preload/socket_options.h"

namespace weir::preload {
namespace {

constexpr std::int64_t kLook_ns = 200'000'000;  // between two looks if nothing falls due earlier
constexpr std::int64_t kLate_ns = 500'000;      // so that what fell due is over when we look
// Small, because it is somebody else's memory; some programs have more thread-local data than that, hence the second.
constexpr std::size_t kStackBytes[] = {64 * 1024, 1024 * 1024};

bool AnyLiveSocket() noexcept {
  const Lock lock(&process.slots);
  return std::any_of(process.sockets, process.sockets + process.socket_count,
                     [](const SocketInfo& info) { return info.live; });
}

void ApplyDirectives(const client::Segment* segment) noexcept {
  const Lock lock(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live) ApplyDirective(segment, &process.sockets[i]);
  }
}

/// When the first hold runs out by itself, if one does before `latest`.
std::int64_t NextExpiry(const client::Segment* segment, std::int64_t latest) noexcept {
  if (process.held_sockets.load(std::memory_order_relaxed) == 0) return latest;
  const std::uint32_t lanes = std::min(segment->header.lanes_used.load(), client::kMaxLanes);
  for (std::uint32_t i = 0; i < lanes; ++i) {
    if (IsHeld(segment, i)) latest = std::min(latest, segment->lanes[i].hold_until.load());
  }
  return latest;
}

/// One round while attached.
void Serve(client::Segment* segment) noexcept {
  const std::uint32_t seen = segment->header.generation.load(std::memory_order_acquire);
  OpenReleased(segment);
  ApplyDirectives(segment);
  const std::int64_t heartbeat = segment->header.heartbeat.load(std::memory_order_acquire);
  const std::int64_t now = client::NowNs();
  const std::int64_t death = heartbeat + client::kAgentDeadAfter_ns;
  if (heartbeat == 0 || now > death) {
    Detach();
    OpenReleased(nullptr);
    return;
  }
  const std::int64_t due = NextExpiry(segment, std::min(death, now + kLook_ns)) + kLate_ns;
  client::FutexWait(&segment->header.generation, seen, std::max<std::int64_t>(due - now, 0));
}

void* Run(void*) {
  static constinit std::atomic<std::uint32_t> nothing{0};
  for (;;) {
    if (client::Segment* segment = process.segment.load(std::memory_order_acquire)) {
      Serve(segment);
      continue;
    }
    std::int64_t wait = kAttachAgain_ns;
    if (AnyLiveSocket()) wait = TryAttach();
    if (wait > 0) client::FutexWait(&nothing, 0, wait);
  }
  return nullptr;
}

bool StartThread(std::size_t stack_bytes) noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, Run, nullptr) == 0;
  if (started) pthread_setname_np(thread, "weir-preload");
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

void StartWorker() noexcept {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = std::any_of(std::begin(kStackBytes), std::end(kStackBytes), StartThread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) return;
  // Without the thread nobody would open a gate for a program that sleeps: be as if there were no agent.
  if (process.segment.load() != nullptr) Detach();
  Say(1, "cannot start the helper thread; this process runs unmanaged");
}

}  // namespace weir::preload
