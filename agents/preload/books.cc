#include "agents/preload/books.h"

namespace weir::preload {
namespace {

void RingIfWanted(std::atomic<std::uint32_t>& wanted) noexcept {
  if (wanted.load(std::memory_order_relaxed) == 0 || wanted.exchange(0) == 0) return;
  if (client::Doorbell* doorbell = process.doorbell.load(std::memory_order_acquire)) client::Ring(doorbell);
}

void BeginMessage(FdEntry* entry, client::Segment* segment, std::size_t bytes, bool held, std::int64_t now) noexcept {
  entry->message = segment->header.messages_begun.fetch_add(1);
  client::MessageEntry& message = segment->messages[entry->message % client::kMessageRingSize];
  // Whoever sees a new field also sees that the old ticket is gone.
  message.ticket.store(0, std::memory_order_relaxed);
  message.time.store(now, std::memory_order_release);
  message.accepted.store(0, std::memory_order_release);
  message.bytes.store(bytes, std::memory_order_release);
  message.socket.store(entry->slot, std::memory_order_release);
  message.held.store(held ? 1 : 0, std::memory_order_release);
  message.known_by.store(static_cast<std::uint16_t>(client::KnownBy::kWrites), std::memory_order_release);
  message.ticket.store(entry->message + 1, std::memory_order_release);
  segment->lanes[entry->lane].messages.fetch_add(1, std::memory_order_relaxed);
}

/// A write of `bytes`, of which `taken` were taken and `rest` are still to come.
void Record(FdEntry* entry, client::Segment* segment, std::size_t bytes, std::size_t taken, std::size_t rest, bool held,
            std::int64_t now) noexcept {
  client::LaneSlot& lane = segment->lanes[entry->lane];
  if (taken > 0) lane.bytes_accepted.fetch_add(taken, std::memory_order_relaxed);
  const bool continues = entry->rest > 0 && bytes == entry->rest;
  if (!continues && bytes < kGatedBytes && entry->rest == 0 && rest == 0) return;  // A word between two messages.
  if (!continues && bytes >= kGatedBytes) BeginMessage(entry, segment, bytes, held, now);
  entry->rest = rest;
  const std::uint64_t before = segment->sockets[entry->slot].rest.exchange(rest);
  if (before == 0 && rest > 0) lane.sockets_with_rest.fetch_add(1);
  if (before > 0 && rest == 0) lane.sockets_with_rest.fetch_sub(1);
  RingIfWanted(lane.want_start);
  if (rest > 0) return;
  client::MessageEntry& message = segment->messages[entry->message % client::kMessageRingSize];
  if (message.ticket.load(std::memory_order_relaxed) == entry->message + 1) message.accepted.store(now);
  if (lane.sockets_with_rest.load() == 0) RingIfWanted(lane.want_drain);
}

}  // namespace

void RecordRefusal(FdEntry* entry, client::Segment* segment, std::size_t bytes, std::int64_t now) noexcept {
  client::LaneSlot& lane = segment->lanes[entry->lane];
  lane.writes_held.fetch_add(1, std::memory_order_relaxed);
  std::int64_t none = 0;
  lane.first_refused.compare_exchange_strong(none, now);
  Record(entry, segment, bytes, 0, bytes, true, now);
}

void RecordOpening(FdEntry* entry, client::Segment* segment) noexcept {
  client::LaneSlot& lane = segment->lanes[entry->lane];
  std::int64_t refused = lane.first_refused.load(std::memory_order_relaxed);
  if (refused != 0 && lane.first_refused.compare_exchange_strong(refused, 0)) {
    lane.held_ns.fetch_add(client::NowNs() - refused, std::memory_order_relaxed);
  }
}

void RecordWrite(FdEntry* entry, client::Segment* segment, const Write& write, ssize_t result,
                 std::int64_t now) noexcept {
  const std::size_t taken = result > 0 ? static_cast<std::size_t>(result) : 0;
  const bool over = write.extent == Extent::kUpTo && result >= 0;
  Record(entry, segment, write.bytes, taken, over ? 0 : write.bytes - taken, false, now);
}

}  // namespace weir::preload
