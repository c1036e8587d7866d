#include "agents/preload/sockets.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "agents/preload/environment.h"
#include "agents/preload/socket_options.h"

namespace weir::preload {
namespace {

constexpr std::uint8_t kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool Unpack(const sockaddr_storage& from, std::uint16_t* port, std::uint8_t address[16]) noexcept {
  if (from.ss_family == AF_INET) {
    sockaddr_in v4;
    memcpy(&v4, &from, sizeof v4);
    *port = ntohs(v4.sin_port);
    memcpy(address, &v4.sin_addr, 4);
    return true;
  }
  if (from.ss_family != AF_INET6) return false;
  sockaddr_in6 v6;
  memcpy(&v6, &from, sizeof v6);
  *port = ntohs(v6.sin6_port);
  memcpy(address, &v6.sin6_addr, 16);
  return true;
}

bool IsMapped(const std::uint8_t address[16]) noexcept {
  return memcmp(address, kMappedPrefix, sizeof kMappedPrefix) == 0;
}

/// The lane towards this peer, made if need be; kNoLane if there is no room. Under `slots`.
std::uint32_t LaneFor(const Ends& ends) noexcept {
  LaneInfo wanted = {};
  if (ends.family == AF_INET6 && IsMapped(ends.peer_address)) {
    wanted.family = AF_INET;
    memcpy(wanted.peer_address, ends.peer_address + 12, 4);
  } else {
    wanted.family = ends.family;
    memcpy(wanted.peer_address, ends.peer_address, 16);
  }
  for (std::uint32_t i = 0; i < process.lane_count; ++i) {
    if (memcmp(&process.lanes[i], &wanted, sizeof wanted) == 0) return i;
  }
  if (process.lane_count == client::kMaxLanes) return client::kNoLane;
  process.lanes[process.lane_count] = wanted;
  return process.lane_count++;
}

/// Index of a free socket slot, kMaxSockets if there is none. Under `slots`.
std::uint32_t FreeSlot() noexcept {
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (!process.sockets[i].live) return i;
  }
  if (process.socket_count < client::kMaxSockets) return process.socket_count++;
  // A program that closes descriptors behind our back leaves slots behind: they are taken over here.
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (CookieOf(process.sockets[i].fd) != process.sockets[i].cookie) return i;
  }
  return client::kMaxSockets;
}

void AnnounceLane(client::Segment* segment, std::uint32_t index) noexcept {
  client::LaneSlot& lane = segment->lanes[index];
  if (lane.state.load(std::memory_order_relaxed) != 0) return;
  lane.family = process.lanes[index].family;
  memcpy(lane.peer_address, process.lanes[index].peer_address, 16);
  lane.want_start.store(1, std::memory_order_relaxed);  // The first write rings even before the agent has armed it.
  lane.state.store(static_cast<std::uint32_t>(client::LaneState::kLive), std::memory_order_release);
  if (segment->header.lanes_used.load() <= index) segment->header.lanes_used.store(index + 1);
}

void DropRest(client::Segment* segment, client::SocketSlot* slot) noexcept {
  if (slot->rest.exchange(0) == 0) return;
  client::LaneSlot& lane = segment->lanes[slot->lane.load() % client::kMaxLanes];
  if (lane.sockets_with_rest.fetch_sub(1) != 1 || lane.want_drain.exchange(0) == 0) return;
  if (client::Doorbell* doorbell = process.doorbell.load(std::memory_order_acquire)) client::Ring(doorbell);
}

void AnnounceSocket(client::Segment* segment, std::uint32_t index) noexcept {
  const SocketInfo& info = process.sockets[index];
  client::SocketSlot& slot = segment->sockets[index];
  AnnounceLane(segment, info.lane);
  slot.state.store(static_cast<std::uint32_t>(client::SocketState::kFree), std::memory_order_release);
  DropRest(segment, &slot);
  slot.lane.store(info.lane, std::memory_order_relaxed);
  slot.family = info.family;
  slot.local_port = info.local_port;
  slot.peer_port = info.peer_port;
  memcpy(slot.local_address, info.local_address, 16);
  memcpy(slot.peer_address, info.peer_address, 16);
  slot.state.store(static_cast<std::uint32_t>(client::SocketState::kLive), std::memory_order_release);
  if (segment->header.sockets_used.load() <= index) segment->header.sockets_used.store(index + 1);
}

void Fill(SocketInfo* info, int fd, const FdEntry& entry, const Ends& ends, std::uint32_t lane) noexcept {
  *info = {};
  info->live = true;
  info->fd = fd;
  info->cookie = entry.cookie;
  info->lane = lane;
  info->family = ends.family;
  info->local_port = ends.local_port;
  info->peer_port = ends.peer_port;
  memcpy(info->local_address, ends.local_address, 16);
  memcpy(info->peer_address, ends.peer_address, 16);
  ReadOptions(info);
}

}  // namespace

bool ReadEnds(int fd, Ends* ends) noexcept {
  sockaddr_storage peer = {};
  sockaddr_storage local = {};
  socklen_t peer_length = sizeof peer;
  socklen_t local_length = sizeof local;
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_length) != 0) {
    return false;
  }
  ends->family = peer.ss_family;
  return peer.ss_family == local.ss_family && Unpack(peer, &ends->peer_port, ends->peer_address) &&
         Unpack(local, &ends->local_port, ends->local_address);
}

bool StaysOnHost(const Ends& ends) noexcept {
  static constexpr std::uint8_t kLoopback6[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  if (memcmp(ends.local_address, ends.peer_address, 16) == 0) return true;
  if (ends.family == AF_INET) return ends.peer_address[0] == 127;
  if (IsMapped(ends.peer_address)) return ends.peer_address[12] == 127;
  return memcmp(ends.peer_address, kLoopback6, 16) == 0;
}

void AnnounceAll(client::Segment* segment) noexcept {
  for (std::uint32_t i = 0; i < process.socket_count; ++i) {
    if (process.sockets[i].live) AnnounceSocket(segment, i);
  }
}

bool AddSocket(int fd, FdEntry* entry) noexcept {
  Ends ends;
  if (!ReadEnds(fd, &ends)) return false;
  const Lock lock(&process.slots);
  client::Segment* segment = process.segment.load(std::memory_order_acquire);
  const std::uint32_t lane = LaneFor(ends);
  const std::uint32_t index = lane == client::kNoLane ? client::kMaxSockets : FreeSlot();
  if (index == client::kMaxSockets) {
    entry->kind.store(FdKind::kOther, std::memory_order_relaxed);
    if (segment != nullptr) segment->header.sockets_unmanaged.fetch_add(1);
    return false;
  }
  Fill(&process.sockets[index], fd, *entry, ends, lane);
  entry->slot = index;
  entry->lane = lane;
  entry->rest = 0;
  entry->kind.store(FdKind::kData, std::memory_order_release);
  if (segment != nullptr) {
    AnnounceSocket(segment, index);
    ApplyDirective(segment, &process.sockets[index]);
  }
  return true;
}

void RemoveSocket(FdEntry* entry) noexcept {
  const Lock lock(&process.slots);
  SocketInfo& info = process.sockets[entry->slot];
  entry->kind.store(FdKind::kUnknown, std::memory_order_release);
  if (!info.live || info.cookie != entry->cookie) return;  // The slot was taken over meanwhile.
  info.live = false;
  client::Segment* segment = process.segment.load(std::memory_order_acquire);
  if (segment == nullptr) return;
  client::SocketSlot& slot = segment->sockets[entry->slot];
  slot.state.store(static_cast<std::uint32_t>(client::SocketState::kFree), std::memory_order_release);
  DropRest(segment, &slot);
}

}  // namespace weir::preload
