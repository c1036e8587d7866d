// What the receiving end does for each message: no allocation, no lock, no log until the channel has failed. Memory
// that is not registered costs all three, for the time of its message.
#include <algorithm>
#include <array>
#include <cstring>

#include "transport/rdma/receiver.h"

namespace weir::transport::rdma {
namespace {

constexpr int kAtOnce = 16;

}  // namespace

Outcome RdmaReceiver::Irecv(std::span<const Slot> slots, Request** request) noexcept {
  *request = nullptr;
  if (!failure_.ok()) return Outcome::kFailed;
  if (slots.empty() || slots.size() > slots_) {
    Fail(StatusCode::kInvalidArgument,
         "a receive has at least one slot, and at most as many as the listener was made for");
    return Outcome::kFailed;
  }
  if (free_.empty() || advertising_ == AdvertiseDepth(options_.requests)) {
    Progress();
    return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  }
  const std::uint32_t entry = free_.back();
  Receive* receive = &receives_[entry];
  receive->count = static_cast<std::uint32_t>(slots.size());
  receive->complete = 0;
  receive->number = next_number_;
  Posted posted;
  if (!Prepare(slots, receive, &posted) || !Advertise(posted, entry)) return Outcome::kFailed;
  free_.pop_back();
  next_number_++;
  *request = receive;
  return Outcome::kDone;
}

bool RdmaReceiver::Prepare(std::span<const Slot> slots, Receive* receive, Posted* posted) noexcept {
  posted->number = receive->number;
  posted->count = receive->count;
  for (std::size_t i = 0; i < slots.size(); ++i) receive->places[i] = {slots[i].capacity, 0, 0, 0, false, nullptr};
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Slot& slot = slots[i];
    Posted::Room& room = posted->rooms[i];
    room = {reinterpret_cast<std::uint64_t>(slot.data), slot.capacity, 0, slot.tag};
    if (slot.capacity == 0) continue;
    const Registrations::Entry* entry = nullptr;
    if (slot.memory.value != 0) {
      entry = memory_.Find(slot.memory, slot.data, slot.capacity);
      if (entry == nullptr) {
        Fail(StatusCode::kInvalidArgument, "a slot of a receive is not within the memory that it names");
        return false;
      }
    } else {
      entry = receive->places[i].borrowed = memory_.Borrow(slot.data, slot.capacity);
      if (entry == nullptr) {
        Fail(StatusCode::kResourceExhausted, "the device refuses to register a receive's memory; ulimit -l says more");
        return false;
      }
    }
    room.key = entry->memory->rkey;
  }
  return true;
}

bool RdmaReceiver::Advertise(const Posted& posted, std::uint32_t entry) noexcept {
  std::byte* copy = ring_copy_->data() + entry * kPostedStride;
  const std::size_t size = EncodePosted(posted, std::span<std::byte, kPostedStride>(copy, kPostedStride));
  ibv_sge piece{reinterpret_cast<std::uint64_t>(copy), static_cast<std::uint32_t>(size), ring_copy_->memory().lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.send_flags = size <= queues_->inline_bytes() ? IBV_SEND_SIGNALED | IBV_SEND_INLINE : IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.imm_data = htobe32(entry);
  request.wr.rdma.remote_addr = peer_.memory_address + entry * kPostedStride;
  request.wr.rdma.rkey = peer_.memory_key;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(queues_->pair(0), &request, &bad); error != 0) {
    Fail(StatusCode::kUnavailable, std::string("the device takes no more work: ") + std::strerror(error));
    return false;
  }
  advertising_++;
  return true;
}

/// Of all slots, the last that got something: what came before it on the way to the GPU is there as well.
Result<Request*> RdmaReceiver::Flush(std::span<const Slot> slots) noexcept {
  if (!failure_.ok()) return tl::unexpected(failure_);
  const auto last = std::find_if(slots.rbegin(), slots.rend(), [](const Slot& slot) { return slot.capacity > 0; });
  if (last == slots.rend()) return nullptr;
  const Registrations::Entry* entry = memory_.Find(last->memory, last->data, last->capacity);
  if (entry == nullptr) {
    return Error(StatusCode::kInvalidArgument, "what is to be flushed is not within the memory that it names");
  }
  if (Status status = PrepareToFlush(); !status.ok()) return tl::unexpected(status);
  FlushQueue::Flush* flush = flushes_->Post(*entry, last->data, clock_.Now());
  if (flush != nullptr) return flush;
  return Error(StatusCode::kResourceExhausted, "the device takes no more flushes; those under way must be tested");
}

Outcome RdmaReceiver::TestFlush(FlushQueue::Flush* flush) noexcept {
  if (!failure_.ok()) return Outcome::kFailed;
  const Nanoseconds now = clock_.Now();
  const Outcome outcome = flushes_->Test(flush, now);
  if (outcome == Outcome::kFailed) {
    Fail(StatusCode::kUnavailable, std::string("the device gave up on a flush: ") + flushes_->why());
  } else if (outcome == Outcome::kAgain && watch_.Overdue(flushes_->busy_since(), now)) {
    Fail(StatusCode::kUnavailable, "the device does not get a flush done within the bound of a dead link");
  }
  return failure_.ok() ? outcome : Outcome::kFailed;
}

Outcome RdmaReceiver::Test(Request* request, std::span<Bytes> sizes) noexcept {
  if (flushes_ != nullptr && flushes_->Owns(request)) return TestFlush(static_cast<FlushQueue::Flush*>(request));
  Receive* receive = static_cast<Receive*>(request);
  if (receive->complete < receive->count && failure_.ok()) Progress();
  if (receive->complete < receive->count) {
    if (closed_) Fail(StatusCode::kUnavailable, "the peer closed the channel");
    return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(sizes.size(), receive->count); ++i) {
    sizes[i] = receive->places[i].total;
  }
  Release(receive);
  free_.push_back(static_cast<std::uint32_t>(receive - receives_.data()));
  return Outcome::kDone;
}

void RdmaReceiver::Release(Receive* receive) noexcept {
  for (std::uint32_t i = 0; i < receive->count; ++i) {
    if (receive->places[i].borrowed != nullptr) memory_.GiveBack(receive->places[i].borrowed);
    receive->places[i].borrowed = nullptr;
  }
  receive->count = 0;
}

void RdmaReceiver::Progress() noexcept {
  const Nanoseconds now = clock_.Now();
  const Watch::State state = watch_.Check(now);
  // What the device got done before the peer went is looked at below; what it did not, will not come.
  closed_ = state == Watch::State::kClosed;
  if (state == Watch::State::kBroken) return Fail(StatusCode::kUnavailable, watch_.why());
  std::array<ibv_wc, kAtOnce> completions;
  int count = kAtOnce;
  while (count == kAtOnce && failure_.ok()) {
    count = ibv_poll_cq(queues_->completions(), kAtOnce, completions.data());
    if (count < 0) return Fail(StatusCode::kUnavailable, "the device does not say what it got done");
    for (int i = 0; i < count && failure_.ok(); ++i) {
      const ibv_wc& one = completions[static_cast<std::size_t>(i)];
      if (one.status == IBV_WC_SUCCESS) watch_.Alive(now);
      if (one.status != IBV_WC_SUCCESS) {
        OnError(one);
      } else if (one.wr_id == Queues::kIncoming) {
        OnMark(be32toh(one.imm_data), one.byte_len);
      } else {
        advertising_--;
        advertised_at_ = watch_.Watched(now);
      }
    }
  }
  if (closed_ || !failure_.ok()) return;
  if (advertising_ == 0) advertised_at_ = watch_.Watched(now);
  if (const char* why = watch_.Dead(now); why != nullptr) return Fail(StatusCode::kUnavailable, why);
  if (advertising_ > 0 && watch_.Overdue(advertised_at_, now)) {
    Fail(StatusCode::kUnavailable, "the link is dead: the device got nothing done within the bound");
  }
}

void RdmaReceiver::OnMark(std::uint32_t value, Bytes bytes) noexcept {
  Mark mark;
  if (!DecodeMark(value, &mark) || mark.entry >= receives_.size()) {
    return Fail(StatusCode::kProtocol, "the peer marks the end of nothing");
  }
  Receive& receive = receives_[mark.entry];
  if (mark.slot >= receive.count || mark.number != receive.number % kMarkNumbers ||
      receive.places[mark.slot].complete || !Account(mark, bytes, &receive.places[mark.slot])) {
    return Fail(StatusCode::kProtocol, "the peer marks the end of a message that is not under way");
  }
  if (receive.places[mark.slot].complete) receive.complete++;
  if (!queues_->Replenish()) Fail(StatusCode::kUnavailable, "the device takes no more work");
}

/// False when it cannot be.
bool RdmaReceiver::Account(const Mark& mark, Bytes bytes, Place* place) noexcept {
  if (mark.kind == Mark::Kind::kWhole) {
    place->total = bytes;
    place->complete = true;
    return place->ends == 0 && bytes <= place->capacity;
  }
  place->ends++;
  if (mark.kind == Mark::Kind::kRecord) {
    Record record;
    const std::byte* at = records_->data() + (mark.entry * std::size_t{slots_} + mark.slot) * kRecordBytes;
    if (!DecodeRecord(std::span<const std::byte, kRecordBytes>(at, kRecordBytes), &record)) return false;
    place->ends_all = record.ends;
    place->total = record.total;
  }
  place->complete = place->ends == place->ends_all;
  return place->total <= place->capacity && place->ends <= queues_->size();
}

void RdmaReceiver::OnError(const ibv_wc& completion) noexcept {
  // A peer that is gone is the reason, and what the device says its consequence.
  closed_ = watch_.Look(clock_.Now()) == Watch::State::kClosed;
  if (closed_) return;
  Fail(StatusCode::kUnavailable, std::string("the device gave up: ") + port_.verbs().wc_status_str(completion.status));
}

}  // namespace weir::transport::rdma
