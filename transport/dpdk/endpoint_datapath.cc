// What an endpoint does for each packet. No allocation, lock or log for those of channels; a guard is for each burst.
#include <pthread.h>
#include <sched.h>

#include <algorithm>

#include "transport/dpdk/endpoint.h"
#include "transport/dpdk/listener.h"

namespace weir::transport::dpdk {

Endpoint::Guard::Guard(Endpoint* endpoint) noexcept : endpoint_(*endpoint) {
  // Held for a burst at a time. Who holds it may have lost its core, so the waiting one gives up its own.
  while (endpoint_.busy_.exchange(true, std::memory_order_acquire)) sched_yield();
}

std::byte* Endpoint::Reserve(const FramePath& path) noexcept {
  std::byte* frame = port_.Reserve();
  if (frame == nullptr) {
    counters_.port_full++;
    return nullptr;
  }
  reserved_ = frame;
  return frame + FrameOverhead(path.source.is_v4());
}

void Endpoint::Send(const FramePath& path, std::size_t packet_bytes) noexcept {
  const std::size_t size = FrameOverhead(path.source.is_v4()) + packet_bytes;
  EncodeFrame(path, std::span(reserved_, size));
  port_.Commit(size);
  counters_.frames_sent++;
}

void Endpoint::Touch(ChannelEnd* end) noexcept {
  if (touched_.empty() || touched_.back() != end) {
    if (std::find(touched_.begin(), touched_.end(), end) == touched_.end()) touched_.push_back(end);
  }
}

void Endpoint::Serve(Nanoseconds now) noexcept {
  // Until the queue is empty, what comes out of it has waited.
  late_ = !drained_ || now - served_at_ > options_.queue_target / kLateShare;
  served_ += std::clamp<Nanoseconds>(now - served_at_, 0, std::min(kLookMax, beat()));
  served_at_ = now;
  bool drained = false;
  for (std::size_t burst = 0; burst < kBurstsAtOnce && !drained; ++burst) {
    const std::size_t count = port_.Receive(frames_);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) __builtin_prefetch(frames_[i + kAhead].data());
      Dispatch(frames_[i], now);
    }
    for (ChannelEnd* end : touched_) end->AfterBurst(now);
    touched_.clear();
    drained = count < frames_.size();
  }
  drained_ = drained || !late_;
  RunTimers(now);
  Flush();
}

void Endpoint::RunTimers(Nanoseconds now) noexcept {
  while (TimingWheel::Timer* expired = wheel_.Expire(now)) {
    EndTimer* timer = static_cast<EndTimer*>(expired);
    if (timer->thread == 0) {
      const Nanoseconds next = timer->end->OnTick(now);
      if (next != kNever) wheel_.Set(timer, next);
    } else if (Thread* thread = ThreadOf(timer->thread); thread != nullptr) {
      thread->due.Append(timer);
    }
  }
  const std::uint64_t id = ThisThread();
  const auto used = std::span(threads_).first(thread_count_);
  const auto mine = std::find_if(used.begin(), used.end(), [id](const Thread& one) { return one.id == id; });
  if (mine == used.end()) return;
  for (int i = 0; i < kPacedAtOnce; ++i) {
    Link* first = mine->due.first();
    if (first == nullptr) return;
    first->Unlink();
    static_cast<EndTimer*>(first)->end->OnPaced(now);
  }
}

std::uint64_t Endpoint::ThisThread() noexcept {
  static_assert(sizeof(pthread_t) == sizeof(std::uint64_t));
  return static_cast<std::uint64_t>(pthread_self());
}

/// Null when too many have channels that are due: theirs wait until they are asked.
Endpoint::Thread* Endpoint::ThreadOf(std::uint64_t id) noexcept {
  Thread* free = nullptr;
  for (Thread& one : std::span(threads_).first(thread_count_)) {
    if (one.id == id) return &one;
    if (!one.due.linked()) free = &one;
  }
  if (free == nullptr && thread_count_ < kThreads) free = &threads_[thread_count_++];
  if (free != nullptr) free->id = id;
  return free;
}

void Endpoint::WakeAt(ChannelEnd* end, Nanoseconds at) noexcept {
  if (!end->tick_.linked() || at < end->tick_.at()) wheel_.Set(&end->tick_, at);
}

void Endpoint::PaceAt(ChannelEnd* end, Nanoseconds at) noexcept {
  end->pace_.thread = ThisThread();
  wheel_.Set(&end->pace_, std::min(at, served_at_ + kPaceMax));
}

bool Endpoint::Paced(const ChannelEnd& end) const noexcept {
  return end.pace_.linked() && end.pace_.thread == ThisThread();
}

void Endpoint::Dispatch(std::span<const std::byte> frame, Nanoseconds now) noexcept {
  counters_.frames_received++;
  Datagram datagram;
  switch (DecodeFrame(frame, &datagram)) {
    case FrameVerdict::kOk:
      break;
    case FrameVerdict::kOther:
      if (!OnNeighbour(frame)) counters_.not_ours++;
      return;
    case FrameVerdict::kMalformed:
      counters_.malformed++;
      return;
    case FrameVerdict::kBadChecksum:
      counters_.bad_checksum++;
      return;
  }
  if (datagram.path.destination != options_.address || datagram.path.destination_port != options_.port) {
    counters_.not_ours++;
    return;
  }
  Header header;
  const HeaderVerdict verdict = DecodeHeader(datagram.payload, &header);
  if (verdict == HeaderVerdict::kNotOurs) counters_.not_ours++;
  if (verdict == HeaderVerdict::kMalformed) counters_.malformed++;
  if (verdict == HeaderVerdict::kOtherVersion) OnOtherVersion(header, datagram);
  if (verdict != HeaderVerdict::kOk) return;
  if (header.kind == Kind::kHello) return OnHello(datagram, now);
  if (header.kind == Kind::kClose && header.to == 0) return OnReset(datagram);
  const auto end = ends_.find(header.to);
  if (end == ends_.end()) return OnUnknown(header, datagram);
  end->second->OnPacket(header, datagram, now);
}

void Endpoint::OnOtherVersion(const Header& header, const Datagram& datagram) noexcept {
  counters_.other_version++;
  if (header.kind == Kind::kHello && datagram.payload.size() >= kGreetingBytes) {
    Refuse(datagram, header.to, Nonce{}, Verdict::kOtherVersion);
  } else if (header.kind == Kind::kWelcome) {
    if (const auto end = ends_.find(header.to); end != ends_.end()) end->second->OnOtherVersion();
  }
}

void Endpoint::OnHello(const Datagram& datagram, Nanoseconds now) noexcept {
  const auto hello = DecodeGreeting(datagram.payload);
  if (!hello) {
    counters_.malformed++;
    return;
  }
  if (const auto listener = listeners_.find(hello->listener); listener != listeners_.end()) {
    return listener->second->Greet(*hello, datagram, now);
  }
  if (Repeat(*hello)) return;
  Refuse(datagram, hello->from, hello->channel, Verdict::kOtherListener);
}

bool Endpoint::Repeat(const Greeting& hello) noexcept {
  return std::any_of(ends_.begin(), ends_.end(), [&](const auto& entry) { return entry.second->OnHello(hello); });
}

void Endpoint::Refuse(const Datagram& datagram, std::uint64_t to, const Nonce& channel, Verdict verdict) noexcept {
  counters_.refused++;
  const FramePath path = Reverse(datagram.path);
  std::byte* packet = Reserve(path);
  if (packet == nullptr) return;
  Greeting answer;
  answer.channel = channel;
  answer.verdict = verdict;
  answer.identity = options_.identity;
  Send(path, EncodeGreeting(Kind::kWelcome, to, answer, packet));
}

/// For a channel that has closed, or that a former process had: the peer is told, or it would ask until it gives up.
void Endpoint::OnUnknown(const Header& header, const Datagram& datagram) noexcept {
  counters_.unknown_channel++;
  if (header.kind == Kind::kClose || header.kind == Kind::kWelcome) return;  // Nothing is answered to an answer.
  const FramePath path = Reverse(datagram.path);
  std::byte* packet = Reserve(path);
  if (packet == nullptr) return;
  const auto grave = std::find_if(graves_.begin(), graves_.end(),
                                  [&](const Grave& one) { return one.channel == header.to && one.channel != 0; });
  Ack last;
  std::uint64_t to = 0;
  if (grave != graves_.end()) {
    last = grave->last;
    to = grave->peer_channel;
  } else {
    last.echo = header.to;
  }
  std::size_t grants = 0;
  Send(path, EncodeAck(Kind::kClose, to, 0, last, PacketMax(), packet, &grants));
}

void Endpoint::OnReset(const Datagram& datagram) noexcept {
  Ack ack;
  if (!DecodeAck(datagram.payload, &ack)) {
    counters_.malformed++;
    return;
  }
  for (const auto& [number, end] : ends_) {
    if (ack.echo != 0 && end->peer().channel == ack.echo) return end->OnReset();
  }
}

/// True if the frame was about who has which address, and of use.
bool Endpoint::OnNeighbour(std::span<const std::byte> frame) noexcept {
  NeighbourMessage heard;
  if (!DecodeNeighbour(frame, &heard) || heard.sender_mac == port_.mac()) return false;
  if (neighbours_.Learn(heard.sender, heard.sender_mac)) {
    for (const auto& [number, end] : ends_) {
      if (end->peer().next_hop == heard.sender) end->Redirect(heard.sender_mac);
    }
  }
  if (!heard.asks || heard.target != options_.address) return neighbours_.wanted(heard.sender);
  std::byte* room = port_.Reserve();
  if (room == nullptr) return true;
  port_.Commit(EncodeNeighbour({false, options_.address, port_.mac(), heard.sender}, heard.sender_mac, room));
  counters_.neighbours_answered++;
  return true;
}

void Endpoint::AskFor(const IpAddress& neighbour) noexcept {
  std::byte* room = port_.Reserve();
  if (room == nullptr) return;
  port_.Commit(EncodeNeighbour({true, options_.address, port_.mac(), neighbour}, {}, room));
}

FramePath Endpoint::Reverse(const FramePath& path) const noexcept {
  FramePath back = path;
  back.source_mac = port_.mac();
  back.destination_mac = path.source_mac;
  back.source = path.destination;
  back.destination = path.source;
  back.source_port = options_.port;
  back.destination_port = options_.port;
  return back;
}

}  // namespace weir::transport::dpdk
