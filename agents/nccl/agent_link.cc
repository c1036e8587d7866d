#include "agents/nccl/agent_link.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "agents/nccl/log.h"
#include "agents/nccl/marks.h"

namespace weir::nccl {
namespace {

using client::Segment;

constexpr int kAttachTimeout_ms = 100;
constexpr Nanoseconds kAttachAgain = 500 * kMillisecond;
constexpr Nanoseconds kAttachAgainRefused = 10 * kSecond;
constexpr Nanoseconds kLook = 100 * kMillisecond;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSegmentBytes = (sizeof(Segment) + kPage - 1) / kPage * kPage;

/// One end of a socket, with IPv4 in IPv6 taken as IPv4.
struct End {
  std::uint16_t family = 0;  ///< Of the socket itself.
  std::uint16_t host_family = 0;
  std::uint16_t port = 0;
  std::array<std::uint8_t, 16> own{};   ///< As the socket has it,
  std::array<std::uint8_t, 16> host{};  ///< and as a lane has it.
};

bool ReadEnd(int fd, int (*ask)(int, sockaddr*, socklen_t*), End* out) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (ask(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return false;
  out->family = out->host_family = storage.ss_family;
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &storage, sizeof v4);
    out->port = ntohs(v4.sin_port);
    std::memcpy(out->own.data(), &v4.sin_addr, sizeof v4.sin_addr);
    out->host = out->own;
    return true;
  }
  if (storage.ss_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &storage, sizeof v6);
  out->port = ntohs(v6.sin6_port);
  std::memcpy(out->own.data(), &v6.sin6_addr, sizeof v6.sin6_addr);
  out->host = out->own;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    out->host_family = AF_INET;
    out->host = {};
    std::memcpy(out->host.data(), out->own.data() + 12, 4);
  }
  return true;
}

}  // namespace

AgentLink::AgentLink(const client::AttachRequest& request, std::string socket_path, bool manages_loopback)
    : request_(request), socket_path_(std::move(socket_path)), manages_loopback_(manages_loopback) {
  lanes_.reserve(client::kMaxLanes);
  slots_.resize(client::kMaxSockets);
}

AgentLink::Place AgentLink::Open(std::span<const int> fds, bool may_mark) {
  Place place;
  const std::lock_guard lock(mutex_);
  for (const int fd : fds) {
    End local;
    End peer;
    if (!ReadEnd(fd, getsockname, &local) || !ReadEnd(fd, getpeername, &peer)) continue;
    if (!manages_loopback_ && local.host == peer.host) return {};
    const Slot slot{true, may_mark, 0, fd, client::kNoLane, local.family, local.port, peer.port, local.own, peer.own};
    if (!Add({peer.host_family, peer.host}, slot, &place)) break;
  }
  return Finish(std::move(place));
}

AgentLink::Place AgentLink::Open(const transport::Route& route) {
  Place place;
  const std::lock_guard lock(mutex_);
  if (!manages_loopback_ && route.own == route.peer) return {};
  Slot slot;
  slot.live = true;
  const auto family = static_cast<std::uint16_t>(route.peer.is_v4() ? AF_INET : AF_INET6);
  static_cast<void>(Add({family, route.peer.bytes()}, slot, &place));
  return Finish(std::move(place));
}

/// Gives the slot a place beside the others of its connection. False: there is none.
bool AgentLink::Add(const Lane& peer, const Slot& slot, Place* place) {
  if (place->lane == client::kNoLane) place->lane = LaneOf(peer);
  const auto free = std::find_if(slots_.begin(), slots_.end(), [](const Slot& each) { return !each.live; });
  Segment* const known = segment();
  if (place->lane == client::kNoLane || free == slots_.end()) {
    if (known != nullptr) known->header.sockets_unmanaged.fetch_add(1);
    return false;
  }
  *free = slot;
  free->lane = place->lane;
  place->slots.push_back(static_cast<std::uint32_t>(free - slots_.begin()));
  if (known == nullptr) return true;
  Announce(known, place->slots.back());
  Mark(known, &*free);
  return true;
}

AgentLink::Place AgentLink::Finish(Place place) {
  if (place.slots.empty()) return {};
  if (!std::exchange(started_, true)) StartHelper();
  return place;
}

void AgentLink::Close(const Place& place) {
  const std::lock_guard lock(mutex_);
  for (const std::uint32_t index : place.slots) {
    slots_[index].live = false;
    Segment* const known = segment();
    if (known == nullptr) continue;
    if (known->sockets[index].rest.exchange(0) > 0) known->lanes[place.lane].sockets_with_rest.fetch_sub(1);
    known->sockets[index].state.store(static_cast<std::uint32_t>(client::SocketState::kFree));
  }
}

/// A process that cannot have one more thread trains on without an agent.
void AgentLink::StartHelper() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread helper([this] { Run(); });
    pthread_setname_np(helper.native_handle(), "weir-nccl");
    helper.detach();
  } catch (const std::system_error& error) {
    Warn(fmt::format("cannot start the helper thread, so this process is not managed: {}", error.what()));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

std::uint32_t AgentLink::LaneOf(const Lane& peer) {
  const auto found = std::find(lanes_.begin(), lanes_.end(), peer);
  if (found != lanes_.end()) return static_cast<std::uint32_t>(found - lanes_.begin());
  if (lanes_.size() == client::kMaxLanes) return client::kNoLane;
  lanes_.push_back(peer);
  const auto index = static_cast<std::uint32_t>(lanes_.size() - 1);
  if (Segment* known = segment()) AnnounceLane(known, index);
  return index;
}

void AgentLink::AnnounceLane(Segment* segment, std::uint32_t index) const {
  client::LaneSlot& slot = segment->lanes[index];
  slot.family = lanes_[index].family;
  std::copy(lanes_[index].address.begin(), lanes_[index].address.end(), slot.peer_address);
  slot.state.store(static_cast<std::uint32_t>(client::LaneState::kLive), std::memory_order_release);
  segment->header.lanes_used.store(static_cast<std::uint32_t>(lanes_.size()), std::memory_order_release);
}

void AgentLink::Announce(Segment* segment, std::uint32_t index) const {
  const Slot& from = slots_[index];
  client::SocketSlot& slot = segment->sockets[index];
  slot.lane.store(from.lane);
  slot.family = from.family;
  slot.local_port = from.local_port;
  slot.peer_port = from.peer_port;
  std::copy(from.local.begin(), from.local.end(), slot.local_address);
  std::copy(from.peer.begin(), from.peer.end(), slot.peer_address);
  slot.rest.store(0);
  slot.state.store(static_cast<std::uint32_t>(client::SocketState::kLive), std::memory_order_release);
  const std::uint32_t used = segment->header.sockets_used.load();
  segment->header.sockets_used.store(std::max(used, index + 1), std::memory_order_release);
}

/// Marks stay once they are set: to take them off a live connection would reorder its packets.
void AgentLink::Mark(const Segment* segment, Slot* slot) {
  const std::uint32_t wanted = segment->lanes[slot->lane].directive.marks.load(std::memory_order_relaxed);
  if (!slot->may_mark || !IsMark(wanted) || wanted == slot->marks) return;
  slot->marks = wanted;
  SetMarks(slot->fd, wanted);
}

/// Forked children have no use for it.
bool AgentLink::MoveHome(client::Attachment* attachment) {
  if (home_ == nullptr) {
    void* home = mmap(nullptr, kSegmentBytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (home == MAP_FAILED) return false;
    home_ = home;
  }
  constexpr int kThere = MREMAP_MAYMOVE | MREMAP_FIXED;
  char* home = static_cast<char*>(home_);
  if (mremap(attachment->segment, kSegmentBytes, kSegmentBytes, kThere, home) == MAP_FAILED ||
      mremap(attachment->doorbell, kPage, kPage, kThere, home + kSegmentBytes) == MAP_FAILED) {
    return false;
  }
  madvise(home_, kSegmentBytes + kPage, MADV_DONTFORK);
  attachment->segment = reinterpret_cast<Segment*>(home);
  attachment->doorbell = reinterpret_cast<client::Doorbell*>(home + kSegmentBytes);
  return true;
}

/// How long to wait before the next try; 0: attached.
Nanoseconds AgentLink::TryAttach() {
  client::Attachment attachment;
  switch (client::Attach(socket_path_.c_str(), request_, kAttachTimeout_ms, &attachment)) {
    case client::AttachResult::kAttached:
      break;
    case client::AttachResult::kNoAgent:
      SayOnce(Inform,
              fmt::format(
                  "no agent answers at {}: not managed until one does, which is tried twice a second; start weir-agent "
                  "on this host, or name its socket in WEIR_AGENT_SOCKET",
                  socket_path_));
      return kAttachAgain;
    case client::AttachResult::kRefused:
      SayOnce(Warn, fmt::format("the agent at {} refused this process, which is not managed: {}", socket_path_,
                                attachment.reason));
      return kAttachAgainRefused;
    case client::AttachResult::kBroken:
      SayOnce(Warn,
              fmt::format("the agent at {} is of another release than ours, {}; this process is not managed until both "
                          "are of one",
                          socket_path_, WEIR_VERSION));
      return kAttachAgainRefused;
  }
  if (!MoveHome(&attachment)) return kAttachAgainRefused;
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = 0; i < lanes_.size(); ++i) AnnounceLane(attachment.segment, i);
  for (std::uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].live) Announce(attachment.segment, i);
  }
  doorbell_.store(attachment.doorbell, std::memory_order_release);
  segment_.store(attachment.segment, std::memory_order_release);
  client::Ring(attachment.doorbell);
  said_.clear();
  Inform(fmt::format("managed by the agent at {} for job {}", socket_path_, request_.job));
  return 0;
}

void AgentLink::SayOnce(void (*say)(std::string_view), const std::string& text) {
  if (std::exchange(said_, text) != text) say(text);
}

void AgentLink::Run() {
  while (true) {
    if (segment() != nullptr) {
      Watch();
      continue;
    }
    const Nanoseconds wait = TryAttach();
    if (wait > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(wait));
  }
}

/// Until the agent says something, or it is time to look whether it lives.
void AgentLink::Watch() {
  Segment* const known = segment();
  const std::uint32_t seen = known->header.generation.load();
  {
    const std::lock_guard lock(mutex_);
    for (Slot& slot : slots_) {
      if (slot.live) Mark(known, &slot);
    }
  }
  const Nanoseconds beat = known->header.heartbeat.load();
  if (beat == 0 || client::NowNs() >= beat + client::kAgentDeadAfter_ns) return Detach();
  client::FutexWait(&known->header.generation, seen, kLook);
}

void AgentLink::Detach() {
  Segment* const known = segment_.exchange(nullptr);
  doorbell_.store(nullptr);
  known->header.detached.store(1);
  Inform("the agent is gone; not managed until it comes back");
}

void AgentLink::RingIfWanted(std::atomic<std::uint32_t>& wanted) noexcept {
  if (wanted.load(std::memory_order_relaxed) == 0 || wanted.exchange(0) == 0) return;
  if (client::Doorbell* doorbell = doorbell_.load(std::memory_order_acquire)) client::Ring(doorbell);
}

}  // namespace weir::nccl
