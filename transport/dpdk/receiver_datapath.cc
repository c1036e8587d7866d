// What the receiving end does for each packet: no allocation, no log until the channel has failed.
#include <algorithm>
#include <cstring>

#include "transport/dpdk/receiver.h"

namespace weir::transport::dpdk {
namespace {

constexpr Nanoseconds kGrantsAgain = 200 * kMicrosecond;
constexpr Nanoseconds kGrantsAgainMax = 100 * kMillisecond;

}  // namespace

Outcome PacketReceiver::Irecv(std::span<const Slot> slots, Request** request) noexcept {
  *request = nullptr;
  const Endpoint::Guard guard(&endpoint_);
  if (!failure_.ok()) return Outcome::kFailed;
  if (slots.empty() || slots.size() > slots_) {
    Fail(StatusCode::kInvalidArgument,
         "a receive has at least one slot, and at most as many as the listener was made for");
    return Outcome::kFailed;
  }
  if (free_.empty()) return Outcome::kAgain;
  Receive*& place = posted_[next_receive_ % posted_.size()];
  // All requests are free but those under way, so an old one here is still being received: one that was overtaken.
  if (place != nullptr && place->complete < place->count) return Outcome::kAgain;
  Receive* receive = free_.back();
  free_.pop_back();
  receive->number = next_receive_++;
  receive->count = static_cast<std::uint32_t>(slots.size());
  receive->complete = 0;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    receive->places[i] = {static_cast<std::byte*>(slots[i].data), slots[i].capacity, slots[i].tag, false, 0, 0};
  }
  place = receive;
  const Nanoseconds now = endpoint_.clock().Now();
  grants_wait_ = kGrantsAgain;
  grants_again_at_ = now + grants_wait_;
  endpoint_.WakeAt(this, grants_again_at_);
  Say(Kind::kAck, 0, now);
  endpoint_.Flush();
  *request = receive;
  return Outcome::kDone;
}

Outcome PacketReceiver::Test(Request* request, std::span<Bytes> sizes) noexcept {
  const Endpoint::Guard guard(&endpoint_);
  Receive* receive = static_cast<Receive*>(request);
  if (receive->complete < receive->count && failure_.ok()) endpoint_.Serve(endpoint_.clock().Now());
  if (receive->complete < receive->count) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), receive->count); ++i) {
    sizes[i] = receive->places[i].total;
  }
  Receive*& place = posted_[receive->number % posted_.size()];
  if (place == receive) place = nullptr;
  free_.push_back(receive);
  return Outcome::kDone;
}

void PacketReceiver::OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept {
  if (header.kind == Kind::kClose) return Fail(StatusCode::kUnavailable, "the peer closed the channel");
  if (!failure_.ok()) return Leave();
  Ping ping;
  if (header.kind == Kind::kData) {
    OnData(datagram, now);
  } else if (header.kind == Kind::kPing && DecodePing(datagram.payload, &ping)) {
    Heard(now);
    SeeGrants(ping.grants_seen);
  } else {
    endpoint_.counters().malformed++;
    return;
  }
  if ((header.flags & Header::kAnswer) != 0) answer_ = 1;
  if (answer_ != 0) endpoint_.Touch(this);
}

void PacketReceiver::OnData(const Datagram& datagram, Nanoseconds now) noexcept {
  Data data;
  if (!DecodeData(datagram.payload, &data)) {
    endpoint_.counters().malformed++;
    return;
  }
  Heard(now);
  SeeGrants(data.grants_seen);
  arrived_++;
  if (datagram.path.ecn == Ecn::kCongested) congested_++;
  answer_ = 1;
  if (!IsNew(data.sequence)) {
    endpoint_.counters().duplicates++;
    return;
  }
  echo_ = data.sent_at;
  echo_at_ = now;
  echo_late_ = endpoint_.late();
  if (PlaceData(data, datagram.payload.subspan(kDataBytes))) Mark(data.sequence);
}

bool PacketReceiver::IsNew(std::uint32_t sequence) const noexcept {
  if (sequence - cumulative_ >= kWindow) return false;  // Old, or beyond what may be on the way.
  return (came_[sequence / 64 % came_.size()] >> (sequence % 64) & 1) == 0;
}

void PacketReceiver::Mark(std::uint32_t sequence) noexcept {
  came_[sequence / 64 % came_.size()] |= std::uint64_t{1} << (sequence % 64);
  if (Before(highest_, sequence + 1)) highest_ = sequence + 1;
  while (true) {
    std::uint64_t& word = came_[cumulative_ / 64 % came_.size()];
    const std::uint64_t bit = std::uint64_t{1} << (cumulative_ % 64);
    if ((word & bit) == 0) return;
    word &= ~bit;
    cumulative_++;
  }
}

bool PacketReceiver::PlaceData(const Data& data, std::span<const std::byte> bytes) noexcept {
  Receive* receive = posted_[data.receive % posted_.size()];
  if (receive == nullptr || receive->number != data.receive || data.slot >= receive->count) {
    Fail(StatusCode::kProtocol, "a segment came for a receive that is not posted");
    return false;
  }
  Place& place = receive->places[data.slot];
  if (data.total > place.capacity) {
    Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
    return false;
  }
  if (!place.begun) {
    place.begun = true;
    place.total = data.total;
  } else if (data.total != place.total || data.size > place.total - place.received || data.size == 0) {
    Fail(StatusCode::kProtocol, "two segments of a message contradict each other");
    return false;
  }
  if (!bytes.empty()) std::memcpy(place.data + data.offset, bytes.data(), bytes.size());
  place.received += bytes.size();
  if (place.received == place.total) receive->complete++;
  return true;
}

void PacketReceiver::SeeGrants(std::uint32_t seen) noexcept {
  if (!Before(grants_seen_, seen) || Before(next_receive_, seen)) return;
  grants_seen_ = seen;
  if (Before(next_grant_, seen)) next_grant_ = seen;
  grants_wait_ = kGrantsAgain;
}

void PacketReceiver::AfterBurst(Nanoseconds now) noexcept {
  if (answer_ == 0 || !failure_.ok()) return;
  answer_ = 0;
  Say(Kind::kAck, 0, now);
}

Nanoseconds PacketReceiver::OnTick(Nanoseconds now) noexcept {
  const Nanoseconds next = CheckLife(now);
  if (!failure_.ok() || grants_seen_ == next_receive_) return next;
  if (now >= grants_again_at_) {
    grants_wait_ = std::min(2 * grants_wait_, kGrantsAgainMax);
    grants_again_at_ = now + grants_wait_;
    next_grant_ = grants_seen_;
    Say(Kind::kAck, Header::kAnswer, now);
  }
  return std::min(next, grants_again_at_);
}

void PacketReceiver::Beat() noexcept {
  Say(Kind::kAck, Header::kAnswer, endpoint_.clock().Now());
}

void PacketReceiver::Leave() noexcept {
  Say(Kind::kClose, 0, endpoint_.clock().Now());
}

void PacketReceiver::FillMap(Ack* ack) const noexcept {
  const std::uint32_t span = highest_ - cumulative_;  // 0 when all came.
  ack->start = cumulative_ & ~std::uint32_t{63};
  if (!Before(cumulative_, highest_)) return;
  const std::uint32_t most = (kWordsMax - 1) * 64;
  if (span > most) ack->start = (highest_ - most) & ~std::uint32_t{63};
  ack->words = static_cast<std::uint8_t>((highest_ - ack->start + 63) / 64);
  for (std::uint32_t i = 0; i < ack->words; ++i) ack->map[i] = came_[(ack->start / 64 + i) % came_.size()];
}

void PacketReceiver::Say(Kind kind, std::uint8_t flags, Nanoseconds now) noexcept {
  std::byte* packet = endpoint_.Reserve(peer_.path);
  if (packet == nullptr) return;
  Ack ack;
  ack.cumulative = cumulative_;
  ack.congested = congested_;
  ack.arrived = arrived_;
  ack.echo = echo_;
  ack.delay = echo_ == 0 ? 0 : static_cast<std::uint32_t>(std::clamp<Nanoseconds>(now - echo_at_, 0, 0xffff'ffff));
  if (echo_ != 0 && echo_late_) flags |= Header::kLate;
  echo_ = 0;
  FillMap(&ack);
  ack.first_grant = next_grant_;
  if (kind == Kind::kAck) {
    while (ack.grants < kGrantsMax && next_grant_ + ack.grants != next_receive_) {
      const Receive* receive = posted_[(next_grant_ + ack.grants) % posted_.size()];
      Grant& grant = ack.grant[ack.grants++];
      // One that is done has been seen, whatever has been said of it.
      grant.count = receive == nullptr ? 1 : static_cast<std::uint8_t>(receive->count);
      for (std::uint32_t i = 0; receive != nullptr && i < receive->count; ++i) {
        grant.rooms[i] = {receive->places[i].tag, receive->places[i].capacity};
      }
    }
  }
  std::size_t told = 0;
  endpoint_.Send(peer_.path, EncodeAck(kind, peer_.channel, flags, ack, peer_.packet_max, packet, &told));
  next_grant_ += static_cast<std::uint32_t>(told);
}

}  // namespace weir::transport::dpdk
