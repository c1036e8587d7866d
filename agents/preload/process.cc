#include "agents/preload/process.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "agents/preload/environment.h"
#include "agents/preload/socket_options.h"
#include "agents/preload/sockets.h"
#include "agents/preload/worker.h"

namespace weir::preload {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSegmentBytes = (sizeof(client::Segment) + kPage - 1) / kPage * kPage;

/// Moves what was just mapped to this process's one place for it. A thread that still looks at the segment before finds
/// the new one there, or, in a forked child, empty memory: it never faults, and never writes into somebody else's.
bool MoveHome(client::Attachment* attachment) noexcept {
  if (process.home == nullptr) {
    void* home = mmap(nullptr, kSegmentBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (home == MAP_FAILED) return false;
    process.home = home;
  }
  constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
  char* home = static_cast<char*>(process.home);
  if (mremap(attachment->segment, kSegmentBytes, kSegmentBytes, kThere, home) == MAP_FAILED ||
      mremap(attachment->doorbell, kPage, kPage, kThere, home + kSegmentBytes) == MAP_FAILED) {
    return false;
  }
  attachment->segment = reinterpret_cast<client::Segment*>(home);
  attachment->doorbell = reinterpret_cast<client::Doorbell*>(home + kSegmentBytes);
  return true;
}

void SayOnce(const char* text, const char* more = "") noexcept {
  static constinit std::atomic<const char*> said{nullptr};
  if (said.exchange(text) != text) Say(1, text, more);
}

}  // namespace

constinit Process process;

bool Start() noexcept {
  if (process.started.load(std::memory_order_acquire)) return true;
  if (!EnvironmentNamesJob()) return false;
  if (process.started.exchange(true)) return true;
  TryAttach();
  StartWorker();
  return true;
}

std::int64_t TryAttach() noexcept {
  client::Attachment attachment;
  switch (client::Attach(AgentSocket(), Request(), kAttachTimeout_ms, &attachment)) {
    case client::AttachResult::kAttached:
      break;
    case client::AttachResult::kNoAgent:
      return kAttachAgain_ns;
    case client::AttachResult::kRefused:
      SayOnce("the agent refused this process, which runs unmanaged: ", attachment.reason);
      return kAttachAgainRefused_ns;
    case client::AttachResult::kBroken:
      SayOnce("the agent speaks another version; this process runs unmanaged");
      return kAttachAgainRefused_ns;
  }
  if (!MoveHome(&attachment)) return kAttachAgainRefused_ns;
  {
    const Lock lock(&process.slots);
    AnnounceAll(attachment.segment);
    process.doorbell.store(attachment.doorbell, std::memory_order_release);
    process.segment.store(attachment.segment, std::memory_order_release);
  }
  client::Ring(attachment.doorbell);
  Say(2, "attached to the agent");
  return 0;
}

void Detach() noexcept {
  client::Segment* segment = process.segment.exchange(nullptr);
  if (segment != nullptr) segment->header.detached.store(1);
  const Lock lock(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live) RestoreOptions(&process.sockets[i]);
  }
  Say(2, "the agent is gone; running unmanaged");
}

bool IsHeld(const client::Segment* segment, std::uint32_t lane) noexcept {
  const client::LaneSlot& slot = segment->lanes[lane];
  if (slot.gate.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::GateState::kHold)) return false;
  const std::int64_t now = client::NowNs();
  return now < slot.hold_until.load(std::memory_order_relaxed) &&
         now < segment->header.heartbeat.load(std::memory_order_relaxed) + client::kAgentDeadAfter_ns;
}

std::uint64_t CookieOf(int fd) noexcept {
  const int saved = errno;
  std::uint64_t cookie = 0;
  socklen_t length = sizeof cookie;
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) != 0) cookie = 0;
  errno = saved;
  return cookie;
}

}  // namespace weir::preload
