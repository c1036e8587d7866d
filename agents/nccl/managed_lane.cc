#include "agents/nccl/managed_lane.h"

#include <algorithm>

namespace weir::nccl {
namespace {

void CountSend(Attribution by, client::LaneStalls* of) noexcept {
  std::atomic<std::uint64_t>& count = by == Attribution::kProfiler     ? of->sends_by_profiler
                                      : by == Attribution::kAttributes ? of->sends_by_attributes
                                                                       : of->sends_by_idle_gap;
  count.fetch_add(1, std::memory_order_relaxed);
}

client::KnownBy KnownByOf(Attribution by) noexcept {
  switch (by) {
    case Attribution::kProfiler:
      return client::KnownBy::kProfiler;
    case Attribution::kAttributes:
      return client::KnownBy::kAttributes;
    case Attribution::kIdleGap:
      return client::KnownBy::kIdleGap;
  }
  return client::KnownBy::kIdleGap;
}

}  // namespace

void ManagedLane::Connected(std::span<const int> fds, bool may_mark) {
  if (link_ != nullptr) place_ = link_->Open(fds, may_mark);
}

void ManagedLane::Connected(const transport::Route& route) {
  if (link_ != nullptr) place_ = link_->Open(route);
}

void ManagedLane::Close() noexcept {
  if (place_.lane != client::kNoLane) link_->Close(place_);
  place_ = {};
}

Nanoseconds ManagedLane::HeldUntil(const client::Segment* segment, Nanoseconds now) const noexcept {
  const client::LaneSlot& lane = segment->lanes[place_.lane];
  if (lane.gate.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::GateState::kHold)) {
    met_at_ = 0;
    return 0;
  }
  if (met_at_ == 0 || now - looked_at_ > kPause) met_at_ = now;
  looked_at_ = now;
  const Nanoseconds alive = segment->header.heartbeat.load(std::memory_order_relaxed) + client::kAgentDeadAfter_ns;
  const Nanoseconds until = std::min({lane.hold_until.load(std::memory_order_relaxed), met_at_ + hold_max_, alive});
  return until > now ? until : 0;
}

bool ManagedLane::MayBegin(const TransferIdentity& what, Bytes bytes, Nanoseconds now) noexcept {
  if (!tried_) OnFirstTry(what.key, now);
  client::Segment* const known = segment();
  if (known == nullptr) return true;
  if (HeldUntil(known, now) > 0) {
    OnRefusal(known, what, bytes, now);
    return false;
  }
  if (!waiting_) return true;
  Settle(&client::LaneStalls::held_ns, &held_since_, now);
  // Of all connections that the hold kept, one accounts for it.
  client::LaneSlot& lane = known->lanes[place_.lane];
  const Nanoseconds refused = lane.first_refused.exchange(0, std::memory_order_relaxed);
  if (refused != 0) lane.held_ns.fetch_add(now - refused, std::memory_order_relaxed);
  return true;
}

/// Between two transfers of one coflow, it was the GPU that had nothing to send.
void ManagedLane::OnFirstTry(const CoflowKey& key, Nanoseconds now) noexcept {
  tried_ = true;
  if (told_ && key == told_key_) Settle(&client::LaneStalls::gpu_ns, &idle_since_, now);
  idle_since_ = 0;
}

void ManagedLane::NotYet(Nanoseconds now) noexcept {
  if (credit_since_ == 0) credit_since_ = now;
}

void ManagedLane::Settle(std::atomic<std::int64_t> client::LaneStalls::*account, Nanoseconds* since,
                         Nanoseconds now) noexcept {
  client::Segment* const known = segment();
  if (*since != 0 && known != nullptr) {
    (known->stalls[place_.lane].*account).fetch_add(now - *since, std::memory_order_relaxed);
  }
  *since = 0;
}

void ManagedLane::OnRefusal(client::Segment* known, const TransferIdentity& what, Bytes bytes,
                            Nanoseconds now) noexcept {
  client::LaneSlot& lane = known->lanes[place_.lane];
  refused_ = bytes;
  if (!waiting_) {
    waiting_ = true;
    held_since_ = now;
    lane.writes_held.fetch_add(1, std::memory_order_relaxed);
    Nanoseconds none = 0;
    lane.first_refused.compare_exchange_strong(none, now);
    TellMessage(known, what, bytes, true, now);
  }
  TellRest(known);  // Again each time: the agent may be another one by now.
  link_->RingIfWanted(lane.want_start);
}

void ManagedLane::Begun(const TransferIdentity& what, Bytes bytes, Bytes sent, Nanoseconds now) noexcept {
  posted_ += bytes;
  waiting_ = tried_ = false;
  refused_ = 0;
  Settle(&client::LaneStalls::credit_ns, &credit_since_, now);
  if (under_way_++ == 0) network_since_ = now;
  client::Segment* const known = segment();
  if (known == nullptr) {
    sent_ = sent;
    return;
  }
  CountSend(what.key.attribution, &known->stalls[place_.lane]);
  TellMessage(known, what, bytes, false, now);
  link_->coflows(place_.lane).Add(what.key, bytes);
  link_->RingIfWanted(known->lanes[place_.lane].want_start);
  Moved(sent);
  TellRest(known);
}

void ManagedLane::Moved(Bytes sent) noexcept {
  if (sent <= sent_) return;
  const Bytes more = sent - sent_;
  sent_ = sent;
  client::Segment* const known = segment();
  if (known == nullptr) return;
  client::LaneSlot& lane = known->lanes[place_.lane];
  lane.bytes_accepted.fetch_add(more, std::memory_order_relaxed);
  TellRest(known);
  if (sent_ != posted_ || waiting_ || lane.sockets_with_rest.load() != 0) return;
  TellEnd(known);
  link_->RingIfWanted(lane.want_drain);
}

void ManagedLane::Ended(Nanoseconds now) noexcept {
  if (under_way_ == 0 || --under_way_ > 0) return;
  Settle(&client::LaneStalls::network_ns, &network_since_, now);
  idle_since_ = now;
}

/// All that the lane was given has left; more of the same coflow may come, and then this is said again.
void ManagedLane::TellEnd(client::Segment* known) noexcept {
  const std::uint64_t ticket = link_->coflows(place_.lane).ticket();
  if (ticket == 0) return;
  client::MessageEntry& message = known->messages[(ticket - 1) % client::kMessageRingSize];
  if (message.ticket.load(std::memory_order_relaxed) == ticket) {
    message.accepted.store(client::NowNs(), std::memory_order_relaxed);
  }
}

void ManagedLane::TellRest(client::Segment* known) noexcept {
  std::atomic<std::uint64_t>& told = known->sockets[place_.slots.front()].rest;
  const Bytes rest = posted_ - std::min(posted_, sent_) + refused_;
  if (told.load(std::memory_order_relaxed) == rest) return;
  client::LaneSlot& lane = known->lanes[place_.lane];
  const std::uint64_t before = told.exchange(rest);
  if (before == 0 && rest > 0) lane.sockets_with_rest.fetch_add(1);
  if (before > 0 && rest == 0) lane.sockets_with_rest.fetch_sub(1);
}

/// A message is what a coflow sends to the lane's peer, over whatever connections.
void ManagedLane::TellMessage(client::Segment* known, const TransferIdentity& what, Bytes bytes, bool held,
                              Nanoseconds now) noexcept {
  if (told_ && told_key_ == what.key) return;
  told_ = true;
  told_key_ = what.key;
  Bytes expected = what.expected > 0 ? what.expected : bytes;
  if (expected == 0 || !link_->coflows(place_.lane).Begin(what.key, &expected)) return;
  const std::uint64_t number = known->header.messages_begun.fetch_add(1);
  client::MessageEntry& message = known->messages[number % client::kMessageRingSize];
  // Whoever sees a new field also sees that the old ticket is gone.
  message.ticket.store(0, std::memory_order_relaxed);
  message.time.store(now, std::memory_order_release);
  message.accepted.store(0, std::memory_order_release);
  message.bytes.store(expected, std::memory_order_release);
  message.socket.store(place_.slots.front(), std::memory_order_release);
  message.held.store(held ? 1 : 0, std::memory_order_release);
  message.known_by.store(static_cast<std::uint16_t>(KnownByOf(what.key.attribution)), std::memory_order_release);
  message.ticket.store(number + 1, std::memory_order_release);
  known->lanes[place_.lane].messages.fetch_add(1, std::memory_order_relaxed);
  link_->coflows(place_.lane).SetTicket(number + 1);
}

/// All that a directive depends on, in a few loads: its sequence, the gate, and whether there is an agent at all. A
/// hold is read again with each heartbeat, which renews it.
std::uint64_t ManagedLane::Version() const noexcept {
  const client::Segment* const known = segment();
  if (known == nullptr) return 0;
  const client::LaneSlot& lane = known->lanes[place_.lane];
  const std::uint64_t version = std::uint64_t{lane.sequence.load(std::memory_order_acquire)} << 1 | 1u;
  if (lane.gate.load(std::memory_order_acquire) != static_cast<std::uint32_t>(client::GateState::kHold)) return version;
  const auto beat = static_cast<std::uint64_t>(known->header.heartbeat.load(std::memory_order_relaxed));
  return version << 34 ^ beat << 1;
}

transport::LaneDirective ManagedLane::Read() const noexcept {
  transport::LaneDirective directive;
  const client::Segment* const known = segment();
  if (known == nullptr) return directive;
  // A rate is one word: it is whole whatever the sequence.
  const std::uint64_t rate = known->lanes[place_.lane].directive.pacing_rate.load(std::memory_order_relaxed);
  if (rate > 0) directive.rate = std::max(static_cast<BytesPerSecond>(rate), kRateFloor);
  directive.hold_until = HeldUntil(known, client::NowNs());
  return directive;
}

}  // namespace weir::nccl
