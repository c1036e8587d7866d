// What the sending end does for each packet: no allocation, no log until the channel has failed.
#include <algorithm>
#include <bit>
#include <cstring>

#include "transport/dpdk/sender.h"

namespace weir::transport::dpdk {
namespace {

constexpr Nanoseconds kTimeoutFirst = 20 * kMillisecond;  ///< Before anything was measured.
constexpr Nanoseconds kTimeoutMin = 2 * kMillisecond;
constexpr Nanoseconds kTimeoutMax = 500 * kMillisecond;
constexpr Nanoseconds kProbeMin = 50 * kMicrosecond;
constexpr Nanoseconds kRoundTripMax = 60 * kSecond;
/// Grants that came are confirmed within that, by a segment if there is one.
constexpr Nanoseconds kConfirmAfter = 100 * kMicrosecond;
/// Packets that a call sends at most, so that one channel does not keep its thread from the others.
constexpr int kPacketsAtOnce = 64;
/// The lane is asked for so much at a time.
constexpr Bytes kAllowance = 64 * 1024;
/// Segments that follow each other on one path, where there are several.
constexpr std::uint32_t kPathRun = 64;
/// A lane may let less pass at once than a segment has; it is not cut smaller than this.
constexpr Bytes kSegmentLeast = 1024;

/// Copies `size` bytes from `offset` of a gathered message.
void Gather(std::span<const Part> parts, Bytes offset, Bytes size, std::byte* out) noexcept {
  for (const Part& part : parts) {
    if (size == 0) return;
    if (offset >= part.size) {
      offset -= part.size;
      continue;
    }
    const Bytes piece = std::min(part.size - offset, size);
    std::memcpy(out, static_cast<const std::byte*>(part.data) + offset, piece);
    out += piece;
    size -= piece;
    offset = 0;
  }
}

}  // namespace

Outcome PacketSender::Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept {
  *request = nullptr;
  const Endpoint::Guard guard(&endpoint_);
  if (!failure_.ok()) return Outcome::kFailed;
  const Nanoseconds now = endpoint_.clock().Now();
  Bytes total = 0;
  for (const Part& part : parts) total += std::min(part.size, kMaxMessageBytes + 1 - total);
  if (parts.empty() || parts.size() > kMaxParts || total > kMaxMessageBytes) {
    Fail(StatusCode::kInvalidArgument, "a message has 1 to 8 parts and at most 1 TiB");
    return Outcome::kFailed;
  }
  if (free_.empty()) {
    Progress(now);
    return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  }
  Send* send = free_.back();
  send->slot = 0;
  if (slots_ > 1) {
    const Outcome slot = TakeSlot(tag, total, send);
    if (slot == Outcome::kAgain) Progress(now);
    if (slot != Outcome::kDone) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  } else {
    send->receive = next_receive_++;
  }
  free_.pop_back();
  std::copy(parts.begin(), parts.end(), send->parts.begin());
  send->part_count = parts.size();
  send->total = total;
  send->cut = 0;
  send->flying = 0;
  send->begun = false;
  send->done = false;
  queue_[(queue_head_ + queue_size_++) % queue_.size()] = send;
  Progress(now);
  if (!failure_.ok()) return Outcome::kFailed;
  *request = send;
  return Outcome::kDone;
}

Outcome PacketSender::Look() noexcept {
  const Endpoint::Guard guard(&endpoint_);
  if (failure_.ok()) Progress(endpoint_.clock().Now());
  return failure_.ok() ? Outcome::kDone : Outcome::kFailed;
}

Outcome PacketSender::Test(Request* request, std::span<Bytes> sizes) noexcept {
  const Endpoint::Guard guard(&endpoint_);
  Send* send = static_cast<Send*>(request);
  if (!send->done && failure_.ok()) Progress(endpoint_.clock().Now());
  if (!send->done) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  Rest(endpoint_.clock().Now());  // It may have become done while another channel was served.
  if (!sizes.empty()) sizes[0] = send->total;
  free_.push_back(send);
  return Outcome::kDone;
}

void PacketSender::Progress(Nanoseconds now) noexcept {
  const bool waits = endpoint_.Paced(*this) && !lane_->Changed();
  if (waits && endpoint_.Fresh(now)) return;
  endpoint_.Serve(now);
  if (!failure_.ok()) {
    if (lane_ != nullptr) lane_share_.Idle();
    return;
  }
  CheckTimeout(now);
  if (!waits) Pump(now);
  endpoint_.Flush();
}

void PacketSender::OnPaced(Nanoseconds now) noexcept {
  if (failure_.ok()) Pump(now);
}

/// What was lost first, then what is new, while window, grants, lane and port allow. Where it is rate or gate that do
/// not, it goes on when its time has come.
void PacketSender::Pump(Nanoseconds now) noexcept {
  refused_ = false;
  endpoint_.StopPacing(this);
  for (int i = 0; i < kPacketsAtOnce && failure_.ok(); ++i) {
    if (!(lost_.head != kNone ? Repeat(now) : SendNew(now))) break;
  }
  if (lane_ == nullptr) return;
  if (lost_.head == kNone) {
    lane_->Return(allowance_);
    allowance_ = 0;
  }
  if (refused_ && lane_->WaitsForTime()) endpoint_.PaceAt(this, lane_->AskAgainAt(now));
  if (lost_.head != kNone || queue_size_ > 0) lane_share_.Waits(now);
  Rest(now);
}

/// Leaves the link to others when there is nothing to send, or no grant for it.
void PacketSender::Rest(Nanoseconds now) noexcept {
  // The owner sees the end of a message when all of it is acknowledged, and may have the next one then.
  if (lane_ == nullptr || flying_.head != kNone || lost_.head != kNone) return;
  const bool waits_for_grant =
      queue_size_ > 0 && !queue_[queue_head_]->begun && GrantOf(queue_[queue_head_]->receive) == nullptr && slots_ == 1;
  if (queue_size_ == 0 || waits_for_grant) lane_share_.Drained(now);
}

bool PacketSender::Fits(Bytes bytes) noexcept {
  if (flying_.head == kNone || flying_bytes_ + bytes <= congestion_->window()) return true;
  limited_ = true;
  return false;
}

/// Whether the lane lets `bytes` pass, if not all `wanted`. What it gave and was not used stays in allowance_.
bool PacketSender::Afford(Bytes bytes, Bytes wanted, Nanoseconds now) noexcept {
  if (lane_ == nullptr || allowance_ >= bytes) return true;
  allowance_ += lane_share_.Admit(std::max(bytes, std::min(wanted, kAllowance)) - allowance_, now);
  refused_ = allowance_ < bytes;
  return !refused_;
}

bool PacketSender::Repeat(Nanoseconds now) noexcept {
  const std::uint32_t at = lost_.head;
  Segment& segment = segments_[at];
  const std::uint32_t sequence = oldest_ + (at - oldest_) % kWindow;
  if (!Fits(segment.size) || !Afford(segment.size, segment.size, now)) return false;
  if (!Transmit(sequence, 0, now)) return false;
  if (lane_ != nullptr) {
    allowance_ -= segment.size;
    lane_->Repeated(segment.size);
  }
  endpoint_.counters().repeated++;
  Unlink(&lost_, sequence);
  Append(&flying_, sequence);
  segment.state = State::kFlying;
  segment.sent_at = now;
  flying_bytes_ += segment.size;
  return true;
}

bool PacketSender::SendNew(Nanoseconds now) noexcept {
  if (queue_size_ == 0 || next_ - oldest_ >= kWindow) return false;
  Send* send = queue_[queue_head_];
  if (!send->begun && slots_ == 1) {
    const Granted* granted = GrantOf(send->receive);
    if (granted == nullptr) return false;
    if (send->total > granted->grant.rooms[0].capacity) {
      Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
      return false;
    }
  }
  Bytes size = std::min(segment_bytes_, send->total - send->cut);
  if (!Fits(size)) return false;
  if (size > 0 && !Afford(size, send->total - send->cut, now)) {
    if (allowance_ < std::min(size, kSegmentLeast)) return false;
    size = allowance_;
  }
  Segment& segment = At(next_);
  segment.send = send;
  segment.offset = send->cut;
  segment.size = static_cast<std::uint16_t>(size);
  const bool last = send->cut + size == send->total;
  if (!Transmit(next_, 0, now)) return false;
  if (lane_ != nullptr) allowance_ -= size;
  segment.state = State::kFlying;
  segment.sent_at = now;
  Append(&flying_, next_++);
  flying_bytes_ += size;
  send->begun = true;
  send->cut += size;
  send->flying++;
  if (last) {
    queue_head_ = (queue_head_ + 1) % queue_.size();
    queue_size_--;
  }
  return true;
}

bool PacketSender::Transmit(std::uint32_t sequence, std::uint8_t flags, Nanoseconds now) noexcept {
  const Segment& segment = At(sequence);
  const Send& send = *segment.send;
  const FramePath path = PathOf(sequence);
  std::byte* packet = endpoint_.Reserve(path);
  if (packet == nullptr) return false;
  if (flying_.head == kNone) progress_at_ = now;
  const Data data{sequence,     grants_seen_,   send.receive, send.slot,
                  segment.size, segment.offset, send.total,   static_cast<std::uint64_t>(now)};
  const std::size_t header = EncodeData(peer_.channel, flags, data, packet);
  Gather(std::span(send.parts).first(send.part_count), segment.offset, segment.size, packet + header);
  endpoint_.Send(path, header + segment.size);
  confirm_ = false;
  return true;
}

FramePath PacketSender::PathOf(std::uint32_t sequence) const noexcept {
  const EndpointOptions& options = endpoint_.options();
  FramePath path = peer_.path;
  path.source_port = static_cast<std::uint16_t>(options.port + sequence / kPathRun % options.paths);
  if (lane_ != nullptr) path.dscp = options.dscp[lane_->directive().level];
  return path;
}

void PacketSender::OnPacket(const Header& header, const Datagram& datagram, Nanoseconds now) noexcept {
  if (!failure_.ok()) {
    if (header.kind != Kind::kClose) Leave();
    return;
  }
  if (header.kind == Kind::kWelcome) return;  // Came again.
  Ack ack;
  if ((header.kind != Kind::kAck && header.kind != Kind::kClose) || !DecodeAck(datagram.payload, &ack)) {
    endpoint_.counters().malformed++;
    return;
  }
  Heard(now);
  OnAck(ack, endpoint_.late() || (header.flags & Header::kLate) != 0, now);
  if (header.kind == Kind::kClose) return Fail(StatusCode::kUnavailable, "the peer closed the channel");
  if ((header.flags & Header::kAnswer) != 0) {
    confirm_ = true;
    endpoint_.Touch(this);
  }
}

void PacketSender::OnAck(const Ack& ack, bool late, Nanoseconds now) noexcept {
  TakeGrants(ack, now);
  // An old one, or one of what was never sent.
  if (ack.cumulative - oldest_ > next_ - oldest_) return;
  const bool progress = TakeAck(ack);
  const Nanoseconds round_trip = MeasureRoundTrip(ack, now);
  FindLost();
  if (!progress) return;
  backoff_ = 0;
  probed_ = false;
  progress_at_ = now;
  if (timed_out_at_ != 0 && ack.echo != 0) {
    // What came was sent before the timeout: it was not lost, only slow (after RFC 3522, section 3.2).
    if (static_cast<Nanoseconds>(ack.echo) < timed_out_at_) congestion_->OnTimeoutUndone();
    timed_out_at_ = 0;
  }
  CongestionControl::Sample sample;
  sample.now = now;
  sample.late = late;
  sample.round_trip = round_trip == 0 ? 0 : std::max<Nanoseconds>(round_trip - ack.delay, 1);
  sample.bytes = acknowledged_bytes_;
  sample.lost = lost_bytes_;
  sample.limited = limited_;
  const std::uint32_t arrived = ack.arrived - arrived_;
  const std::uint32_t congested = ack.congested - congested_;
  sample.marked = arrived == 0 ? 0 : std::min(1.0, static_cast<double>(congested) / static_cast<double>(arrived));
  arrived_ = ack.arrived;
  congested_ = ack.congested;
  lost_bytes_ = 0;
  acknowledged_bytes_ = 0;
  limited_ = false;
  congestion_->OnAck(sample);
}

/// True if it says of any segment for the first time that it has come.
bool PacketSender::TakeAck(const Ack& ack) noexcept {
  bool progress = false;
  for (std::uint32_t i = oldest_; i != ack.cumulative; ++i) progress = Acknowledge(i) || progress;
  for (std::uint32_t word = 0; word < ack.words; ++word) {
    for (std::uint64_t bits = ack.map[word]; bits != 0; bits &= bits - 1) {
      const std::uint32_t sequence = ack.start + word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      if (sequence - oldest_ < next_ - oldest_) progress = Acknowledge(sequence) || progress;
    }
  }
  while (oldest_ != next_ && At(oldest_).state == State::kAcknowledged) At(oldest_++).state = State::kFree;
  return progress;
}

bool PacketSender::Acknowledge(std::uint32_t sequence) noexcept {
  Segment& segment = At(sequence);
  if (segment.state == State::kAcknowledged) return false;
  Unlink(segment.state == State::kFlying ? &flying_ : &lost_, sequence);
  if (segment.state == State::kFlying) flying_bytes_ -= segment.size;
  segment.state = State::kAcknowledged;
  acknowledged_bytes_ += segment.size;
  newest_sent_at_ = std::max(newest_sent_at_, segment.sent_at);
  Send* send = segment.send;
  send->flying--;
  send->done = send->flying == 0 && send->cut == send->total;
  return true;
}

/// RFC 6298, section 2. Returns the round trip, 0 when the acknowledgement has none.
Nanoseconds PacketSender::MeasureRoundTrip(const Ack& ack, Nanoseconds now) noexcept {
  const Nanoseconds round_trip = now - static_cast<Nanoseconds>(ack.echo);
  if (ack.echo == 0 || round_trip <= 0 || round_trip > kRoundTripMax) return 0;
  if (smooth_ == 0) {
    smooth_ = round_trip;
    variation_ = round_trip / 2;
    return round_trip;
  }
  const Nanoseconds error = round_trip - smooth_;
  variation_ += ((error < 0 ? -error : error) - variation_) / 4;
  smooth_ = std::max<Nanoseconds>(smooth_ + error / 8, 1);
  return round_trip;
}

void PacketSender::FindLost() noexcept {
  const Nanoseconds overtaking = std::max({smooth_ / 4, variation_, 10 * kMicrosecond});
  while (flying_.head != kNone && segments_[flying_.head].sent_at + overtaking < newest_sent_at_) {
    const std::uint32_t at = flying_.head;
    Segment& segment = segments_[at];
    Unlink(&flying_, at);
    Append(&lost_, at);
    segment.state = State::kLost;
    flying_bytes_ -= segment.size;
    lost_bytes_ += segment.size;
  }
}

/// Nothing came back for two round trips: the end of what was sent may be lost, and nothing comes after it that would
/// show that. One segment is sent again, once; its acknowledgement shows it (RFC 8985, section 7).
void PacketSender::Probe(Nanoseconds now) noexcept {
  const Nanoseconds wait = std::max(2 * smooth_ + 4 * variation_, kProbeMin);
  if (smooth_ == 0 || probed_ || now - std::max(progress_at_, segments_[flying_.tail].sent_at) < wait) return;
  const std::uint32_t at = flying_.head;
  if (!Transmit(oldest_ + (at - oldest_) % kWindow, Header::kAnswer, now)) return;
  probed_ = true;
  endpoint_.counters().repeated++;
  Unlink(&flying_, at);
  Append(&flying_, at);
  segments_[at].sent_at = now;
}

void PacketSender::CheckTimeout(Nanoseconds now) noexcept {
  if (flying_.head == kNone) return;
  Probe(now);
  // Twice as long as Probe waits, so that one segment is tried before all.
  const Nanoseconds base = smooth_ == 0 ? kTimeoutFirst : 4 * smooth_ + 8 * variation_;
  const Nanoseconds timeout =
      std::min(std::max(base, kTimeoutMin) << std::min(backoff_, 16u), std::max(base, kTimeoutMax));
  if (now - std::max(progress_at_, segments_[flying_.head].sent_at) < timeout) return;
  endpoint_.counters().timeouts++;
  backoff_++;
  progress_at_ = now;
  congestion_->OnTimeout();
  timed_out_at_ = now;
  while (flying_.head != kNone) {
    const std::uint32_t at = flying_.head;
    Unlink(&flying_, at);
    Append(&lost_, at);
    segments_[at].state = State::kLost;
    flying_bytes_ -= segments_[at].size;
  }
}

void PacketSender::TakeGrants(const Ack& ack, Nanoseconds now) noexcept {
  for (std::uint32_t i = 0; i < ack.grants; ++i) {
    const std::uint32_t receive = ack.first_grant + i;
    if (receive - grants_seen_ >= granted_.size() || ack.grant[i].count > slots_) continue;
    Granted& granted = granted_[receive % granted_.size()];
    if (granted.there && granted.receive == receive) continue;
    granted = {ack.grant[i], receive, true, 0};
    if (!confirm_) endpoint_.WakeAt(this, now + kConfirmAfter);
    confirm_ = true;
  }
  while (GrantOf(grants_seen_) != nullptr) grants_seen_++;
}

PacketSender::Granted* PacketSender::GrantOf(std::uint32_t receive) noexcept {
  Granted& granted = granted_[receive % granted_.size()];
  return granted.there && granted.receive == receive ? &granted : nullptr;
}

Outcome PacketSender::TakeSlot(std::int32_t tag, Bytes total, Send* send) noexcept {
  Granted* head = GrantOf(next_receive_);
  if (head == nullptr) {
    endpoint_.Serve(endpoint_.clock().Now());
    head = GrantOf(next_receive_);
    if (head == nullptr || !failure_.ok()) return Outcome::kAgain;
  }
  for (std::uint8_t i = 0; i < head->grant.count; ++i) {
    if ((head->taken_mask >> i & 1) != 0 || (head->grant.rooms[i].tag != tag && head->grant.count > 1)) continue;
    if (total > head->grant.rooms[i].capacity) {
      Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
      return Outcome::kFailed;
    }
    send->receive = next_receive_;
    send->slot = i;
    head->taken_mask = static_cast<std::uint8_t>(head->taken_mask | 1u << i);
    if (std::popcount(head->taken_mask) == head->grant.count) next_receive_++;
    return Outcome::kDone;
  }
  return Outcome::kAgain;
}

void PacketSender::AfterBurst(Nanoseconds) noexcept {
  if (confirm_ && failure_.ok()) SayPing(0);
}

Nanoseconds PacketSender::OnTick(Nanoseconds now) noexcept {
  const Nanoseconds next = CheckLife(now);
  if (confirm_ && failure_.ok()) SayPing(0);
  return confirm_ && failure_.ok() ? std::min(next, now + kConfirmAfter) : next;
}

void PacketSender::Beat() noexcept {
  SayPing(Header::kAnswer);
}

void PacketSender::SayPing(std::uint8_t flags) noexcept {
  std::byte* packet = endpoint_.Reserve(peer_.path);
  if (packet == nullptr) return;
  confirm_ = false;
  endpoint_.Send(peer_.path, EncodePing(peer_.channel, flags, {grants_seen_}, packet));
}

void PacketSender::Leave() noexcept {
  std::byte* packet = endpoint_.Reserve(peer_.path);
  if (packet == nullptr) return;
  std::size_t grants = 0;
  endpoint_.Send(peer_.path, EncodeAck(Kind::kClose, peer_.channel, 0, Ack{}, peer_.packet_max, packet, &grants));
}

}  // namespace weir::transport::dpdk
