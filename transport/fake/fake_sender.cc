#include "transport/fake/fake_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::transport::fake {
namespace {

constexpr std::size_t kFlyingMax = 64;

Nanoseconds RepeatAfter(const FakeOptions& options) {
  return 4 * options.delay_max + kMillisecond;
}

}  // namespace

FakeSender::FakeSender(FakeNetwork* network, std::shared_ptr<Wire> wire, Lane* lane)
    : network_(*network), wire_(std::move(wire)), lane_(lane), lane_share_(lane) {}

FakeSender::~FakeSender() {
  wire_->sender.closed = true;
  wire_->sender.closed_at = network_.Now() + network_.options().delay_max;
  if (lane_ != nullptr) lane_share_.Idle();
}

Outcome FakeSender::Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept {
  *request = nullptr;
  Progress();
  if (!failure_.ok()) return Outcome::kFailed;
  if (sends_.size() >= network_.options().requests) return Outcome::kAgain;
  Bytes total = 0;
  for (const Part& part : parts) total += std::min(part.size, kMaxMessageBytes + 1 - total);
  if (parts.empty() || parts.size() > kMaxParts || total > kMaxMessageBytes) {
    Fail(StatusCode::kInvalidArgument, "a message has 1 to 8 parts and at most 1 TiB");
    return Outcome::kFailed;
  }
  if (wire_->slots > 1) {
    const Outcome slot = TakeSlot(tag, total);
    if (slot != Outcome::kDone) return slot;
  }
  auto send = std::make_unique<Send>(this);
  send->parts.assign(parts.begin(), parts.end());
  send->tag = tag;
  send->message = next_message_++;
  send->total = total;
  queue_.push_back(send.get());
  *request = send.get();
  sends_.emplace(send.get(), std::move(send));
  return Outcome::kDone;
}

Outcome FakeSender::Look() noexcept {
  if (failure_.ok()) Progress();
  return failure_.ok() ? Outcome::kDone : Outcome::kFailed;
}

Outcome FakeSender::Test(Request* request, std::span<Bytes> sizes) noexcept {
  Send* send = static_cast<Send*>(request);
  if (!send->done && failure_.ok()) Progress();
  if (!send->done) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  if (!sizes.empty()) sizes[0] = send->total;
  sends_.erase(send);
  return Outcome::kDone;
}

void FakeSender::Progress() {
  if (!failure_.ok()) return;
  TakeAcks();
  if (network_.DeadFor(network_.options().dead_after)) {
    return Fail(StatusCode::kUnavailable, "the link is dead: nothing came back within the bound");
  }
  if (wire_->receiver.closed && network_.Now() >= wire_->receiver.closed_at && !network_.DeadFor(0)) {
    return Fail(StatusCode::kUnavailable, "the peer closed the channel");
  }
  Repeat();
  SendNew();
  if (lane_ != nullptr && queue_.empty()) lane_share_.Drained(network_.Now());
}

void FakeSender::TakeAcks() {
  if (network_.DeadFor(0)) return;  // They come when the network is back.
  while (!wire_->acks.empty() && wire_->acks.begin()->first <= network_.Now()) {
    const auto flying = flying_.find(wire_->acks.begin()->second);
    wire_->acks.erase(wire_->acks.begin());
    if (flying == flying_.end()) continue;  // Acknowledged before.
    Send* send = flying->second.send;
    send->acked += flying->second.size;
    send->done = send->acked == send->total && send->sent == send->total;
    flying_.erase(flying);
  }
  while (!wire_->posted.empty() && wire_->posted.begin()->first <= network_.Now()) {
    Posted posted;
    posted.slots = wire_->posted.begin()->second;
    posted.taken.resize(posted.slots.size());
    posted_.push_back(std::move(posted));
    wire_->posted.erase(wire_->posted.begin());
  }
}

void FakeSender::Repeat() {
  for (auto& [number, flying] : flying_) {
    if (flying.again_at <= network_.Now()) Transmit(number, &flying);
  }
}

void FakeSender::SendNew() {
  std::size_t most = network_.options().partial ? network_.Draw(0, 3) : kFlyingMax;
  while (!queue_.empty() && flying_.size() < kFlyingMax && most-- > 0) {
    Send* send = queue_.front();
    const Bytes packet = network_.options().partial ? network_.Draw(1, network_.options().packet_bytes)
                                                    : network_.options().packet_bytes;
    Bytes size = std::min(send->total - send->sent, packet);
    if (lane_ != nullptr && size > 0) {
      const Bytes admitted = lane_share_.Admit(size, network_.Now());
      if (admitted == 0) return;
      size = admitted;
    }
    Flying& flying = flying_[next_number_];
    flying = {send, send->sent, size, 0};
    Transmit(next_number_++, &flying);
    send->sent += size;
    if (send->sent == send->total) queue_.pop_front();
  }
}

void FakeSender::Transmit(std::uint64_t number, Flying* flying) {
  flying->again_at = network_.Now() + RepeatAfter(network_.options());
  Packet packet{number, flying->send->message, flying->send->tag, flying->offset, flying->send->total, {}};
  Bytes skip = flying->offset;
  for (const Part& part : flying->send->parts) {
    if (skip >= part.size) {
      skip -= part.size;
      continue;
    }
    const auto* from = static_cast<const std::byte*>(part.data) + skip;
    const Bytes size = std::min(part.size - skip, flying->size - packet.bytes.size());
    packet.bytes.insert(packet.bytes.end(), from, from + size);
    skip = 0;
  }
  const int copies = network_.Chance(network_.options().duplication) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    if (!network_.Loses()) wire_->packets.emplace(network_.ArrivesAt(), packet);
  }
}

Outcome FakeSender::TakeSlot(std::int32_t tag, Bytes total) {
  if (posted_.empty()) return Outcome::kAgain;
  Posted& head = posted_.front();
  for (std::size_t i = 0; i < head.slots.size(); ++i) {
    if (head.taken[i] || (head.slots.size() > 1 && head.slots[i].tag != tag)) continue;
    if (total > head.slots[i].capacity) {
      Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
      return Outcome::kFailed;
    }
    head.taken[i] = true;
    if (std::all_of(head.taken.begin(), head.taken.end(), [](bool taken) { return taken; })) posted_.pop_front();
    return Outcome::kDone;
  }
  return Outcome::kAgain;
}

void FakeSender::Fail(StatusCode code, const std::string& what) {
  failure_ = Status(code, fmt::format("{}, sending to {}: {}", wire_->sender.identity, wire_->receiver.identity, what));
  if (lane_ != nullptr) lane_share_.Idle();
}

}  // namespace weir::transport::fake
