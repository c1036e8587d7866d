#include "transport/fake/fake_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::transport::fake {

FakeReceiver::FakeReceiver(FakeNetwork* network, std::shared_ptr<Wire> wire)
    : network_(*network), wire_(std::move(wire)) {}

FakeReceiver::~FakeReceiver() {
  wire_->receiver.closed = true;
  wire_->receiver.closed_at = network_.Now() + network_.options().delay_max;
}

Outcome FakeReceiver::Irecv(std::span<const Slot> slots, Request** request) noexcept {
  *request = nullptr;
  if (!failure_.ok()) return Outcome::kFailed;
  if (slots.empty() || slots.size() > wire_->slots) {
    Fail(StatusCode::kInvalidArgument,
         "a receive has at least one slot, and at most as many as the listener was made for");
    return Outcome::kFailed;
  }
  if (receives_.size() >= network_.options().requests) return Outcome::kAgain;
  auto receive = std::make_unique<Receive>(this);
  receive->count = slots.size();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    receive->places[i].receive = receive.get();
    receive->places[i].slot = slots[i];
  }
  if (wire_->slots > 1) {
    // In order: a later one never overtakes.
    const Nanoseconds last = wire_->posted.empty() ? 0 : wire_->posted.rbegin()->first;
    wire_->posted.emplace(std::max(last, network_.ArrivesAt()), std::vector<Slot>(slots.begin(), slots.end()));
  }
  unmatched_.push_back(receive.get());
  *request = receive.get();
  receives_.emplace(receive.get(), std::move(receive));
  return Outcome::kDone;
}

Outcome FakeReceiver::Test(Request* request, std::span<Bytes> sizes) noexcept {
  Receive* receive = static_cast<Receive*>(request);
  if (receive->complete < receive->count && failure_.ok()) Progress();
  if (receive->complete < receive->count) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  for (std::size_t i = 0; i < std::min(sizes.size(), receive->count); ++i) sizes[i] = receive->places[i].total;
  receives_.erase(receive);
  return Outcome::kDone;
}

void FakeReceiver::Progress() {
  const Nanoseconds now = network_.Now();
  while (!network_.DeadFor(0) && !wire_->packets.empty() && wire_->packets.begin()->first <= now && failure_.ok()) {
    const Packet packet = std::move(wire_->packets.begin()->second);
    wire_->packets.erase(wire_->packets.begin());
    if (Take(packet)) wire_->acks.emplace(network_.ArrivesAt(), packet.number);
  }
  if (!failure_.ok()) return;
  if (network_.DeadFor(network_.options().dead_after)) {
    return Fail(StatusCode::kUnavailable, "the link is dead: nothing came back within the bound");
  }
  // What a sender had acknowledged before it closed is here already.
  if (wire_->sender.closed && now >= wire_->sender.closed_at && wire_->packets.empty() && !network_.DeadFor(0)) {
    Fail(StatusCode::kUnavailable, "the peer closed the channel");
  }
}

/// Whether the packet is to be acknowledged: it was placed now or before.
bool FakeReceiver::Take(const Packet& packet) {
  const auto open = open_.find(packet.message);
  Place* place = open != open_.end() ? open->second : nullptr;
  if (place == nullptr && packet.message < next_message_) return true;
  if (place == nullptr) place = Begin(packet);
  if (place == nullptr) return false;
  if (!place->offsets.insert(packet.offset).second) return true;
  if (!packet.bytes.empty()) {
    std::memcpy(static_cast<std::byte*>(place->slot.data) + packet.offset, packet.bytes.data(), packet.bytes.size());
  }
  place->received += packet.bytes.size();
  if (place->received == place->total) {
    place->receive->complete++;
    open_.erase(packet.message);
  }
  return true;
}

FakeReceiver::Place* FakeReceiver::Begin(const Packet& packet) {
  if (packet.message != next_message_ || unmatched_.empty()) return nullptr;
  Receive* receive = unmatched_.front();
  const auto end = receive->places.begin() + static_cast<std::ptrdiff_t>(receive->count);
  const auto place = std::find_if(receive->places.begin(), end, [&](const Place& one) {
    return !one.matched && (receive->count == 1 || one.slot.tag == packet.tag);
  });
  if (place == end || packet.total > place->slot.capacity) {
    Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
    return nullptr;
  }
  next_message_++;
  place->matched = true;
  place->total = packet.total;
  if (++receive->matched == receive->count) unmatched_.pop_front();
  open_[packet.message] = &*place;
  return &*place;
}

void FakeReceiver::Fail(StatusCode code, const std::string& what) {
  failure_ =
      Status(code, fmt::format("{}, receiving from {}: {}", wire_->receiver.identity, wire_->sender.identity, what));
}

}  // namespace weir::transport::fake
