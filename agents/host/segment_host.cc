#include "agents/host/segment_host.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "agents/host/foreign_process.h"

namespace weir::agents {
namespace {

using client::GateState;
using client::kMaxLanes;
using client::kMaxSockets;
using client::kMessageRingSize;
using client::Segment;

constexpr Bytes kMessageBytesMax = Bytes{1} << 40;  // A longer message is a lie; it would spoil the profile.

/// Wakes waiters of other processes too, hence not the private variant.
void FutexWake(std::atomic<std::uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Copies plain fields that the other side may be changing this moment: each byte is read exactly once.
template <std::size_t N>
std::array<std::uint8_t, N> CopyOut(const std::uint8_t (&from)[N]) {
  std::array<std::uint8_t, N> to;
  const volatile std::uint8_t* bytes = from;
  for (std::size_t i = 0; i < N; ++i) to[i] = bytes[i];
  return to;
}

std::uint16_t CopyOut(const std::uint16_t& from) {
  return *const_cast<const volatile std::uint16_t*>(&from);
}

}  // namespace

Result<std::unique_ptr<SegmentHost>> SegmentHost::Create(Nanoseconds now) {
  const int fd = memfd_create("weir-segment", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return Error(StatusCode::kResourceExhausted, std::string("memfd_create: ") + std::strerror(errno));
  // Sealed before anybody else sees it: a process that could shrink it would kill the agent with SIGBUS.
  void* memory = MAP_FAILED;
  if (ftruncate(fd, sizeof(Segment)) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
    memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  if (memory == MAP_FAILED) {
    const int error = errno;
    close(fd);
    return Error(StatusCode::kResourceExhausted, std::string("cannot set up a segment: ") + std::strerror(error));
  }
  auto* segment = new (memory) Segment;  // The memory is zero, and so are its atomics.
  segment->header.magic = client::kSegmentMagic;
  segment->header.version_major = client::kSegmentVersionMajor;
  segment->header.version_minor = client::kSegmentVersionMinor;
  segment->header.size = sizeof(Segment);
  segment->header.heartbeat.store(now, std::memory_order_release);
  return std::unique_ptr<SegmentHost>(new SegmentHost(fd, segment));
}

SegmentHost::~SegmentHost() {
  CloseMemfd();
  munmap(segment_, sizeof(Segment));
}

void SegmentHost::CloseMemfd() {
  if (memfd_ >= 0) close(memfd_);
  memfd_ = -1;
}

void SegmentHost::News::Clear() {
  lanes.clear();
  samples.clear();
  messages.clear();
  messages_lost = 0;
  detached = false;
}

std::uint32_t SegmentHost::LanesUsed() const {
  return std::min(segment_->header.lanes_used.load(std::memory_order_acquire), kMaxLanes);
}

std::uint32_t SegmentHost::SocketsUsed() const {
  return std::min(segment_->header.sockets_used.load(std::memory_order_acquire), kMaxSockets);
}

void SegmentHost::Look(News* news) {
  LookForLanes(news);
  LookForMessages(news);
  std::array<LaneSample, kMaxLanes> samples;
  const std::uint32_t used = LanesUsed();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (known_[i].live) samples[i] = ReadCounters(i);
  }
  AddRests(&samples);
  for (std::uint32_t i = 0; i < used; ++i) {
    Known& known = known_[i];
    if (!known.live) continue;
    const LaneSample& now = samples[i];
    const bool changed = now.start_taken || now.drain_taken || now.rest != known.last.rest ||
                         now.accepted != known.last.accepted || now.messages != known.last.messages ||
                         now.sockets != known.last.sockets || now.stalls != known.last.stalls ||
                         now.sends != known.last.sends;
    known.last = now;
    if (changed) news->samples.emplace_back(i, now);
  }
  news->detached = segment_->header.detached.load(std::memory_order_acquire) != 0;
}

void SegmentHost::LookForLanes(News* news) {
  const std::uint32_t used = LanesUsed();
  for (std::uint32_t i = 0; i < used; ++i) {
    if (known_[i].live) continue;
    const client::LaneSlot& slot = segment_->lanes[i];
    if (slot.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::LaneState::kLive)) continue;
    const std::uint16_t family = CopyOut(slot.family);
    if (family != AF_INET && family != AF_INET6) continue;  // Stays unmanaged.
    std::string peer = AddressText(family, CopyOut(slot.peer_address));
    known_[i].live = true;
    news->lanes.emplace_back(i, std::move(peer));
  }
}

/// Counters of one lane, without its rests. Clears what it reports as taken.
LaneSample SegmentHost::ReadCounters(std::uint32_t lane) {
  const client::LaneSlot& slot = segment_->lanes[lane];
  Known& known = known_[lane];
  LaneSample sample;
  // A ring taken is read before the counters: the process counts first and takes the ring after.
  sample.start_taken = known.start_armed && slot.want_start.load() == 0;
  sample.drain_taken = known.drain_armed && slot.want_drain.load() == 0;
  if (sample.start_taken) known.start_armed = false;
  if (sample.drain_taken) known.drain_armed = false;
  sample.accepted = slot.bytes_accepted.load();
  sample.messages = slot.messages.load();
  const client::LaneStalls& stalls = segment_->stalls[lane];
  sample.stalls = {stalls.gpu_ns.load(), stalls.credit_ns.load(), stalls.network_ns.load(), stalls.held_ns.load()};
  sample.sends = {stalls.sends_by_profiler.load(), stalls.sends_by_attributes.load(), stalls.sends_by_idle_gap.load()};
  return sample;
}

std::uint32_t SegmentHost::LaneOfSocket(std::uint32_t socket) const {
  const std::uint32_t lane = segment_->sockets[socket].lane.load(std::memory_order_relaxed);
  return lane < kMaxLanes && known_[lane].live ? lane : client::kNoLane;
}

void SegmentHost::AddRests(std::array<LaneSample, kMaxLanes>* samples) const {
  const std::uint32_t used = SocketsUsed();
  for (std::uint32_t i = 0; i < used; ++i) {
    const client::SocketSlot& slot = segment_->sockets[i];
    if (slot.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::SocketState::kLive)) continue;
    const Bytes rest = std::min(slot.rest.load(), kMessageBytesMax);
    const std::uint32_t lane = LaneOfSocket(i);
    if (rest == 0 || lane == client::kNoLane) continue;
    (*samples)[lane].rest += rest;
    ++(*samples)[lane].sockets;
  }
}

LaneSample SegmentHost::Sample(std::uint32_t lane) {
  if (lane >= kMaxLanes || !known_[lane].live) return LaneSample();
  std::array<LaneSample, kMaxLanes> samples;
  samples[lane] = ReadCounters(lane);
  AddRests(&samples);
  known_[lane].last = samples[lane];
  return samples[lane];
}

void SegmentHost::LookForMessages(News* news) {
  const std::uint64_t begun = segment_->header.messages_begun.load(std::memory_order_acquire);
  if (begun < messages_read_) messages_read_ = begun;  // Only a broken or hostile process counts backwards.
  if (begun - messages_read_ > kMessageRingSize) {
    news->messages_lost += begun - messages_read_ - kMessageRingSize;
    messages_read_ = begun - kMessageRingSize;
  }
  for (; messages_read_ < begun; ++messages_read_) {
    const client::MessageEntry& entry = segment_->messages[messages_read_ % kMessageRingSize];
    const std::uint64_t ticket = messages_read_ + 1;
    const std::uint64_t seen = entry.ticket.load(std::memory_order_acquire);
    if (seen < ticket && begun - messages_read_ < kMessageRingSize / 2) return;  // Being written; next time.
    Message message;
    message.time = entry.time.load(std::memory_order_relaxed);
    message.bytes = entry.bytes.load(std::memory_order_relaxed);
    const std::uint32_t socket = entry.socket.load(std::memory_order_relaxed);
    const std::uint16_t known_by = entry.known_by.load(std::memory_order_relaxed);
    if (known_by < client::kKnownByKinds) message.known_by = static_cast<client::KnownBy>(known_by);
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool whole = seen == ticket && entry.ticket.load(std::memory_order_relaxed) == ticket;
    message.lane = socket < kMaxSockets ? LaneOfSocket(socket) : client::kNoLane;
    if (!whole || message.lane == client::kNoLane || message.bytes == 0 || message.bytes > kMessageBytesMax) {
      ++news->messages_lost;
      continue;
    }
    news->messages.push_back(message);
  }
}

void SegmentHost::Arm(std::uint32_t lane, bool start, bool drain) {
  if (lane >= kMaxLanes || !known_[lane].live) return;
  if (start) segment_->lanes[lane].want_start.store(1);
  if (drain) segment_->lanes[lane].want_drain.store(1);
  known_[lane].start_armed |= start;
  known_[lane].drain_armed |= drain;
}

void SegmentHost::Write(std::uint32_t lane, const LaneControl& control) {
  if (lane >= kMaxLanes) return;
  client::LaneSlot& slot = segment_->lanes[lane];
  const std::uint32_t sequence = slot.sequence.load(std::memory_order_relaxed);
  slot.sequence.store(sequence | 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.directive.pacing_rate.store(control.pacing_rate, std::memory_order_relaxed);
  slot.directive.notsent_lowat.store(control.notsent_lowat, std::memory_order_relaxed);
  slot.directive.marks.store(control.marks, std::memory_order_relaxed);
  slot.sequence.store((sequence | 1) + 1, std::memory_order_release);
  // The bound is in place before the gate closes, and the gate is open before the bound goes.
  if (control.hold) slot.hold_until.store(control.hold_until, std::memory_order_release);
  slot.gate.store(static_cast<std::uint32_t>(control.hold ? GateState::kHold : GateState::kGo));
  if (!control.hold) slot.hold_until.store(0, std::memory_order_release);
}

void SegmentHost::Wake(const std::vector<std::uint32_t>& lanes) {
  segment_->header.generation.fetch_add(1);
  FutexWake(&segment_->header.generation);
  for (const std::uint32_t lane : lanes) {
    if (lane < kMaxLanes) FutexWake(&segment_->lanes[lane].gate);
  }
}

void SegmentHost::Beat(Nanoseconds now) {
  segment_->header.heartbeat.store(now, std::memory_order_release);
}

void SegmentHost::Release() {
  std::vector<std::uint32_t> lanes;
  for (std::uint32_t i = 0; i < kMaxLanes; ++i) {
    if (!known_[i].live) continue;
    Write(i, LaneControl());
    lanes.push_back(i);
  }
  segment_->header.heartbeat.store(0, std::memory_order_release);
  Wake(lanes);
}

std::vector<SocketKey> SegmentHost::Sockets(std::uint32_t lane) const {
  std::vector<SocketKey> keys;
  const std::uint32_t used = SocketsUsed();
  for (std::uint32_t i = 0; i < used; ++i) {
    const client::SocketSlot& slot = segment_->sockets[i];
    if (slot.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::SocketState::kLive)) continue;
    if (LaneOfSocket(i) != lane) continue;
    SocketKey key;
    key.family = CopyOut(slot.family);
    key.local_port = CopyOut(slot.local_port);
    key.peer_port = CopyOut(slot.peer_port);
    key.local = CopyOut(slot.local_address);
    key.peer = CopyOut(slot.peer_address);
    if (key.family == AF_INET || key.family == AF_INET6) keys.push_back(key);
  }
  return keys;
}

std::uint64_t SegmentHost::sockets_unmanaged() const {
  return segment_->header.sockets_unmanaged.load(std::memory_order_relaxed);
}

}  // namespace weir::agents
