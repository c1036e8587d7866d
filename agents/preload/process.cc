#include "agents/preload/process.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <new>

#include "agents/preload/real.h"
#include "agents/preload/socket_options.h"
#include "agents/preload/worker.h"

namespace weir::preload {
namespace {

constexpr std::uint32_t kStarting = 0xffffffff;

/// Zero in a child after any kind of fork: the kernel wipes the page.
std::atomic<std::uint32_t>* LifePage() noexcept {
  static constinit std::atomic<void*> page{nullptr};
  void* known = page.load(std::memory_order_acquire);
  if (known == nullptr) {
    void* fresh = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fresh == MAP_FAILED || madvise(fresh, 4096, MADV_WIPEONFORK) != 0) return nullptr;
    if (page.compare_exchange_strong(known, fresh)) {
      known = fresh;
    } else {
      munmap(fresh, 4096);
    }
  }
  return static_cast<std::atomic<std::uint32_t>*>(known);
}

/// What the parent was managing is the parent's. Runs before anything else in the child touches the state.
void ForgetParent() noexcept {
  process.segment.store(nullptr);
  process.doorbell.store(nullptr);
  process.held_sockets.store(0);
  process.worker.store(0);
  process.next_attach.store(0);
  process.slots = PTHREAD_MUTEX_INITIALIZER;
  process.readiness = PTHREAD_MUTEX_INITIALIZER;
  for (std::uint32_t i = 0; i < process.socket_count; ++i) process.sockets[i].live.store(false);
  process.lane_count = 0;
  process.socket_count = 0;
}

struct Environment {
  bool enabled = false;
  bool loopback = false;
  int log_level = 1;
  const char* agent = nullptr;
  client::AttachRequest request;
};

const Environment& GetEnvironment() noexcept {
  // 0 = not read, 1 = being read, 2 = read. A reader that finds 1 sees nothing enabled: it is early or unlucky.
  static constinit std::atomic<int> state{0};
  static constinit Environment environment{};
  static const Environment nothing{};
  int expected = 0;
  if (state.load(std::memory_order_acquire) == 2) return environment;
  if (!state.compare_exchange_strong(expected, 1)) return expected == 2 ? environment : nothing;
  const char* disabled = getenv("WEIR_DISABLE");
  const char* log = getenv("WEIR_LOG");
  environment.loopback = getenv("WEIR_MANAGE_LOOPBACK") != nullptr;
  environment.agent = getenv("WEIR_AGENT_SOCKET");
  if (environment.agent == nullptr) environment.agent = "/run/weir/agent.sock";
  if (log != nullptr) environment.log_level = strcmp(log, "debug") == 0 ? 2 : strcmp(log, "off") == 0 ? 0 : 1;
  environment.enabled =
      (disabled == nullptr || strcmp(disabled, "0") == 0) && client::RequestFromEnvironment(&environment.request);
  state.store(2, std::memory_order_release);
  return environment;
}

/// Fills family and addresses; false if `fd` is not connected.
bool ReadAddress(int fd, bool peer, std::uint16_t* family, std::uint16_t* port, std::uint8_t address[16]) noexcept {
  sockaddr_storage storage = {};
  socklen_t length = sizeof storage;
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  if ((peer ? getpeername(fd, generic, &length) : getsockname(fd, generic, &length)) != 0) return false;
  memset(address, 0, 16);
  *family = storage.ss_family;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, &storage, sizeof v4);
    *port = ntohs(v4.sin_port);
    memcpy(address, &v4.sin_addr, 4);
    return true;
  }
  if (storage.ss_family != AF_INET6) return false;
  sockaddr_in6 v6;
  memcpy(&v6, &storage, sizeof v6);
  *port = ntohs(v6.sin6_port);
  memcpy(address, &v6.sin6_addr, 16);
  return true;
}

bool IsMapped(const std::uint8_t address[16]) noexcept {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return memcmp(address, kPrefix, sizeof kPrefix) == 0;
}

/// The lane for the peer of `info`, made if need be; kNoLane if there is no room. Under `slots`.
std::uint32_t LaneFor(const SocketInfo& info) noexcept {
  LaneInfo wanted = {};
  wanted.family = info.family;
  memcpy(wanted.peer_address, info.peer_address, 16);
  if (info.family == AF_INET6 && IsMapped(info.peer_address)) {
    wanted = {};
    wanted.family = AF_INET;
    memcpy(wanted.peer_address, info.peer_address + 12, 4);
  }
  for (std::uint32_t i = 0; i < process.lane_count; ++i) {
    if (memcmp(&process.lanes[i], &wanted, sizeof wanted) == 0) return i;
  }
  if (process.lane_count == client::kMaxLanes) return client::kNoLane;
  process.lanes[process.lane_count] = wanted;
  return process.lane_count++;
}

void AnnounceLane(client::Segment* segment, std::uint32_t index) noexcept {
  client::LaneSlot& lane = segment->lanes[index];
  if (lane.state.load(std::memory_order_relaxed) != 0) return;
  lane.family = process.lanes[index].family;
  memcpy(lane.peer_address, process.lanes[index].peer_address, 16);
  lane.want_start.store(
      1, std::memory_order_relaxed);  // So that the first write rings even before the agent has armed it.
  lane.state.store(static_cast<std::uint32_t>(client::LaneState::kLive), std::memory_order_release);
  if (segment->header.lanes_used.load() <= index) segment->header.lanes_used.store(index + 1);
}

void AnnounceSocket(client::Segment* segment, std::uint32_t index) noexcept {
  const SocketInfo& info = process.sockets[index];
  client::SocketSlot& slot = segment->sockets[index];
  AnnounceLane(segment, info.lane);
  slot.lane.store(info.lane, std::memory_order_relaxed);
  slot.family = info.family;
  slot.local_port = info.local_port;
  slot.peer_port = info.peer_port;
  memcpy(slot.local_address, info.local_address, 16);
  memcpy(slot.peer_address, info.peer_address, 16);
  slot.rest.store(0, std::memory_order_relaxed);
  slot.state.store(static_cast<std::uint32_t>(client::SocketState::kLive), std::memory_order_release);
  if (segment->header.sockets_used.load() <= index) segment->header.sockets_used.store(index + 1);
}

/// Index of a free socket slot, kMaxSockets if there is none. Under `slots`.
std::uint32_t FreeSlot() noexcept {
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    // A program that closes descriptors behind our back leaves slots behind: they are taken over here.
    if (!process.sockets[i].live.load() || CookieOf(process.sockets[i].fd) != process.sockets[i].cookie) return i;
  }
  return process.socket_count < client::kMaxSockets ? process.socket_count++ : client::kMaxSockets;
}

}  // namespace

constinit Process process;

std::uint32_t ProcessLife() noexcept {
  static constinit std::atomic<std::uint32_t> lives{0};
  std::atomic<std::uint32_t>* page = LifePage();
  if (page == nullptr) return 0;
  const std::uint32_t life = page->load(std::memory_order_acquire);
  if (life != 0 && life != kStarting) return life;
  std::uint32_t expected = 0;
  if (!page->compare_exchange_strong(expected, kStarting)) return 0;
  if (lives.load() != 0) ForgetParent();
  const std::uint32_t fresh = lives.fetch_add(1) + 1;
  page->store(fresh, std::memory_order_release);
  return fresh;
}

bool Enabled() noexcept {
  return GetEnvironment().enabled;
}

bool ManagesLoopback() noexcept {
  return GetEnvironment().loopback;
}

void Say(int level, const char* text) noexcept {
  if (GetEnvironment().log_level < level) return;
  char line[256];
  const std::size_t length = strnlen(text, 200);
  memcpy(line, "weir-preload: ", 14);
  memcpy(line + 14, text, length);
  line[14 + length] = '\n';
  [[maybe_unused]] const ssize_t wrote = real::write(2, static_cast<const void*>(line), length + 15);
}

void EnsureAttached() noexcept {
  if (process.segment.load(std::memory_order_acquire) != nullptr) return;
  const std::int64_t now = client::NowNs();
  std::int64_t next = process.next_attach.load();
  if (now < next || !process.next_attach.compare_exchange_strong(next, now + kAttachAgain_ns)) return;
  client::Attachment attachment;
  const Environment& environment = GetEnvironment();
  const client::AttachResult result =
      client::Attach(environment.agent, environment.request, kAttachTimeout_ms, &attachment);
  if (result == client::AttachResult::kAttached) {
    Announce(attachment.segment);
    process.doorbell.store(attachment.doorbell, std::memory_order_release);
    process.segment.store(attachment.segment, std::memory_order_release);
    client::Ring(attachment.doorbell);
    Say(2, "attached to the agent");
  } else if (result == client::AttachResult::kRefused) {
    Say(1, "the agent refused this process; it runs unmanaged");
  } else if (result == client::AttachResult::kBroken) {
    Say(1, "the agent speaks another version; this process runs unmanaged");
  }
  StartWorker();
}

void Announce(client::Segment* segment) noexcept {
  pthread_mutex_lock(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live.load()) AnnounceSocket(segment, i);
  }
  pthread_mutex_unlock(&process.slots);
}

void Detach() noexcept {
  client::Segment* segment = process.segment.exchange(nullptr);
  if (segment != nullptr) segment->header.detached.store(1);
  pthread_mutex_lock(&process.slots);
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live.load()) RestoreOptions(&process.sockets[i]);
  }
  pthread_mutex_unlock(&process.slots);
  Say(2, "the agent is gone; running unmanaged");
}

bool AddSocket(int fd, FdEntry* entry) noexcept {
  SocketInfo info = {};
  std::uint16_t local_family = 0;
  if (!ReadAddress(fd, true, &info.family, &info.peer_port, info.peer_address) ||
      !ReadAddress(fd, false, &local_family, &info.local_port, info.local_address)) {
    return false;
  }
  if (pthread_mutex_trylock(&process.slots) != 0) return false;
  const std::uint32_t lane = LaneFor(info);
  const std::uint32_t index = lane == client::kNoLane ? client::kMaxSockets : FreeSlot();
  client::Segment* segment = process.segment.load(std::memory_order_acquire);
  if (index == client::kMaxSockets) {
    pthread_mutex_unlock(&process.slots);
    if (segment != nullptr) segment->header.sockets_unmanaged.fetch_add(1);
    return false;
  }
  SocketInfo& slot = process.sockets[index];
  slot.fd = fd;
  slot.cookie = entry->cookie;
  slot.lane = lane;
  slot.family = info.family;
  slot.local_port = info.local_port;
  slot.peer_port = info.peer_port;
  memcpy(slot.local_address, info.local_address, 16);
  memcpy(slot.peer_address, info.peer_address, 16);
  ReadOptions(&slot);
  slot.live.store(true, std::memory_order_release);
  entry->slot = index;
  entry->kind.store(FdKind::kData, std::memory_order_release);
  if (segment != nullptr) {
    AnnounceSocket(segment, index);
    ApplyDirective(segment, &slot);
  }
  pthread_mutex_unlock(&process.slots);
  return true;
}

void RemoveSocket(FdEntry* entry) noexcept {
  SocketInfo& info = process.sockets[entry->slot];
  if (client::Segment* segment = process.segment.load(std::memory_order_acquire)) {
    client::SocketSlot& slot = segment->sockets[entry->slot];
    client::LaneSlot& lane = segment->lanes[info.lane];
    if (slot.rest.exchange(0) > 0) lane.sockets_with_rest.fetch_sub(1);
    slot.state.store(static_cast<std::uint32_t>(client::SocketState::kFree), std::memory_order_release);
    client::Doorbell* doorbell = process.doorbell.load(std::memory_order_acquire);
    if (lane.want_drain.exchange(0) != 0 && doorbell != nullptr) client::Ring(doorbell);
  }
  info.live.store(false, std::memory_order_release);
  entry->kind.store(FdKind::kUnknown, std::memory_order_release);
  entry->rest = 0;
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
