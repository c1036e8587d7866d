// What the sending end does for each message: no allocation, no lock, no log until the channel has failed. Memory that
// is not registered costs all three, for the time of its message.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "transport/rdma/sender.h"

namespace weir::transport::rdma {
namespace {

constexpr Bytes kPieceMin = 4096;  ///< Handing over less takes no time to speak of: the clock is not read.

}  // namespace

Outcome RdmaSender::Isend(std::span<const Part> parts, std::int32_t tag, Request** request) noexcept {
  *request = nullptr;
  if (!failure_.ok()) return Outcome::kFailed;
  if (free_.empty()) {
    Progress();
    return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  }
  Bytes total = 0;
  for (const Part& part : parts) total += std::min(part.size, kMaxMessageBytes + 1 - total);
  if (parts.empty() || parts.size() > kMaxParts || total > kMaxMessageBytes) {
    Fail(StatusCode::kInvalidArgument, "a message has 1 to 8 parts and at most 1 TiB");
    return Outcome::kFailed;
  }
  Send* send = free_.back();
  std::copy(parts.begin(), parts.end(), send->parts.begin());
  send->part_count = parts.size();
  send->total = total;
  send->assigned = 0;
  send->open = 0;
  send->pairs = 0;
  send->matched = false;
  send->closed = false;
  send->done = false;
  if (slots_ > 1) {
    const Outcome slot = TakeSlot(send, tag);
    if (slot != Outcome::kDone) return slot;
  }
  if (!Keys(send)) return Outcome::kFailed;
  free_.pop_back();
  queue_[(queue_head_ + queue_size_++) % queue_.size()] = send;
  Progress();
  if (!failure_.ok()) return Outcome::kFailed;
  *request = send;
  return Outcome::kDone;
}

Outcome RdmaSender::Look() noexcept {
  if (failure_.ok()) Progress();
  return failure_.ok() ? Outcome::kDone : Outcome::kFailed;
}

Outcome RdmaSender::Test(Request* request, std::span<Bytes> sizes) noexcept {
  Send* send = static_cast<Send*>(request);
  if (!send->done && failure_.ok()) Progress();
  if (!send->done) return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
  if (!sizes.empty()) sizes[0] = send->total;
  Release(send);
  free_.push_back(send);
  return Outcome::kDone;
}

/// Finds the device's key for each part.
bool RdmaSender::Keys(Send* send) noexcept {
  send->borrowed.fill(nullptr);
  for (std::size_t i = 0; i < send->part_count; ++i) {
    const Part& part = send->parts[i];
    send->keys[i] = 0;
    if (part.size == 0) continue;
    if (part.memory.value != 0) {
      const Registrations::Entry* entry = memory_.Find(part.memory, part.data, part.size);
      if (entry == nullptr) {
        Fail(StatusCode::kInvalidArgument, "a part of a message is not within the memory that it names");
        return false;
      }
      send->keys[i] = entry->memory->lkey;
    } else if (send->total > queues_->inline_bytes()) {
      send->borrowed[i] = memory_.Borrow(part.data, part.size);
      if (send->borrowed[i] == nullptr) {
        Fail(StatusCode::kResourceExhausted, "the device refuses to register a message's memory; ulimit -l says more");
        return false;
      }
      send->keys[i] = send->borrowed[i]->memory->lkey;
    }
  }
  return true;
}

void RdmaSender::Release(Send* send) noexcept {
  for (std::size_t i = 0; i < send->part_count; ++i) {
    if (send->borrowed[i] != nullptr) memory_.GiveBack(send->borrowed[i]);
    send->borrowed[i] = nullptr;
  }
}

void RdmaSender::Progress() noexcept {
  const Nanoseconds now = clock_.Now();
  Heed(watch_.Check(now));
  Poll(now);
  CheckBounds(now);
  if (failure_.ok()) Serve(now);
}

void RdmaSender::Serve(Nanoseconds now) noexcept {
  const Nanoseconds begin = now;
  while (queue_size_ > 0) {
    Send* send = queue_[queue_head_];
    // The lane goes on to hold lower ones back, but without asking: for as long as it takes the pacer to forget it.
    if (!send->matched && !Match(send)) return;
    if (Push(send, begin, &now) != Pushed::kAll) return;
    queue_head_ = (queue_head_ + 1) % queue_.size();
    queue_size_--;
  }
  if (lane_ == nullptr || !failure_.ok()) return;
  // What is under way has the link; what lower levels sent now would be beside it.
  if (under_way_ > kPieceMin) {
    lane_share_.Waits(now);
  } else {
    lane_share_.Drained(now);
  }
}

RdmaSender::Pushed RdmaSender::Push(Send* send, Nanoseconds begin, Nanoseconds* now) noexcept {
  while (send->assigned < send->total || send->total == 0) {
    Pair* pair = *now - begin > options_.window_time ? nullptr : PairWithRoom();
    // The lane is asked in any case: it has something to send, and those below it must know.
    const Bytes most = pair == nullptr ? kPieceMin : std::max(std::min(pair->window / 2, InTime()), kPieceMin);
    const Bytes granted = Admit(std::min({send->total - send->assigned, options_.stripe_bytes, most}), *now);
    if (granted == 0 && send->total > 0) return Pushed::kPaced;
    if (pair != nullptr) pair = PairWithRoom();  // Its level may have changed.
    if (pair == nullptr) {
      if (lane_ != nullptr) lane_->Return(granted);
      return Pushed::kFull;
    }
    next_pair_++;
    const Bytes before = send->assigned;
    if (!Piece(send, pair, granted, *now)) return Pushed::kFailed;
    *now = Timed(send->assigned - before, *now);
    if (send->closed) return Pushed::kAll;
  }
  return Close(send, *now) ? Pushed::kAll : Pushed::kFailed;
}

/// The time now, when so many bytes were handed over since `begin`.
Nanoseconds RdmaSender::Timed(Bytes bytes, Nanoseconds begin) noexcept {
  if (bytes < kPieceMin) return begin;
  const Nanoseconds now = clock_.Now();
  const double each = static_cast<double>(now - begin) / static_cast<double>(bytes);
  hand_ns_per_byte_ += (each - hand_ns_per_byte_) / 4;
  return now;
}

/// Bytes that are handed over within RdmaOptions::window_time.
Bytes RdmaSender::InTime() const noexcept {
  const double time = static_cast<double>(options_.window_time);
  if (hand_ns_per_byte_ * static_cast<double>(options_.stripe_bytes) <= time) return options_.stripe_bytes;
  return std::max(static_cast<Bytes>(time / hand_ns_per_byte_), kPieceMin);
}

Bytes RdmaSender::Admit(Bytes wanted, Nanoseconds now) noexcept {
  if (lane_ == nullptr || wanted == 0) return wanted;
  const Bytes granted = lane_share_.Admit(wanted, now);
  if (port_.limits().rate_kbps_max > 0 && lane_->directive().rate != device_rate_) PaceByDevice();
  return granted;
}

/// The device spreads the packets of a piece over time; how many pieces there are is still the lane's to say. Costs a
/// system call, each time that the cap changes.
void RdmaSender::PaceByDevice() noexcept {
  device_rate_ = lane_->directive().rate;
  const PortLimits& limits = port_.limits();
  const double kbps = std::isfinite(device_rate_) ? device_rate_ * 8 / 1000 : 0;
  ibv_qp_rate_limit_attr attributes{};
  if (kbps > 0 && kbps < limits.rate_kbps_max) {
    attributes.rate_limit = std::max(static_cast<std::uint32_t>(std::ceil(kbps)), limits.rate_kbps_min);
  }
  // What the device refuses is paced all the same, in pieces.
  for (const Pair& pair : pairs_) static_cast<void>(port_.verbs().modify_qp_rate_limit(pair.pair, &attributes));
}

/// The next queue pair of the lane's class that has room; with one request to spare, for the mark at the end.
RdmaSender::Pair* RdmaSender::PairWithRoom() noexcept {
  const QueuePlan& plan = queues_->plan();
  const std::size_t level = lane_ == nullptr ? 0 : lane_->directive().level;
  const std::size_t first = std::min<std::size_t>(level, plan.classes - 1) * plan.pairs;
  for (std::uint32_t i = 0; i < plan.pairs; ++i) {
    Pair& pair = pairs_[first + (next_pair_ + i) % plan.pairs];
    if (pair.size + 2 <= kDepth && (pair.size == 0 || pair.bytes < pair.window)) return &pair;
    pair.filled = true;
  }
  return nullptr;
}

/// Hands over as much of `bytes` as one request takes.
bool RdmaSender::Piece(Send* send, Pair* pair, Bytes bytes, Nanoseconds now) noexcept {
  std::array<ibv_sge, kMaxParts> pieces;
  ibv_send_wr request{};
  request.sg_list = pieces.data();
  const Bytes size = Gather(*send, bytes, pieces, &request.num_sge);
  if (lane_ != nullptr) lane_->Return(bytes - size);
  const bool whole = size == send->total;
  request.opcode = whole ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.send_flags = size <= queues_->inline_bytes() ? IBV_SEND_SIGNALED | IBV_SEND_INLINE : IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = send->room.address + send->assigned;
  request.wr.rdma.rkey = send->room.key;
  if (whole) {
    send->mark.kind = Mark::Kind::kWhole;
    request.imm_data = htobe32(EncodeMark(send->mark));
    send->closed = true;
  }
  if (size == 0) {  // Nothing is written, so it is of no account where.
    request.wr.rdma.remote_addr = peer_.memory_address;
    request.wr.rdma.rkey = peer_.memory_key;
  }
  send->assigned += size;
  send->pairs |= 1u << (pair - pairs_.data());
  return Hand(send, pair, &request, size, now);
}

/// Marks the end on each queue pair that carried a piece, and with the last, how long the message is.
bool RdmaSender::Close(Send* send, Nanoseconds now) noexcept {
  send->closed = true;
  Record record{send->total, 0};
  for (std::uint32_t left = send->pairs; left != 0; left &= left - 1) record.ends++;
  std::array<std::byte, kRecordBytes> bytes;
  EncodeRecord(record, bytes);
  ibv_sge piece{reinterpret_cast<std::uint64_t>(bytes.data()), kRecordBytes, 0};
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    if ((send->pairs & (1u << i)) == 0) continue;
    const bool last = --record.ends == 0;
    send->mark.kind = last ? Mark::Kind::kRecord : Mark::Kind::kPart;
    ibv_send_wr request{};
    request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    request.sg_list = &piece;
    request.num_sge = last ? 1 : 0;
    request.imm_data = htobe32(EncodeMark(send->mark));
    request.wr.rdma.remote_addr =
        peer_.memory_address + (send->mark.entry * std::uint64_t{slots_} + send->mark.slot) * kRecordBytes;
    request.wr.rdma.rkey = peer_.memory_key;
    if (!Hand(send, &pairs_[i], &request, 0, now)) return false;
  }
  return true;
}

bool RdmaSender::Hand(Send* send, Pair* pair, ibv_send_wr* request, Bytes bytes, Nanoseconds now) noexcept {
  request->wr_id = static_cast<std::uint64_t>(pair - pairs_.data());
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(pair->pair, request, &bad); error != 0) {
    Fail(StatusCode::kUnavailable, std::string("the device takes no more work: ") + std::strerror(error));
    return false;
  }
  if (pair->size == 0) pair->moved_at = watch_.Watched(now);
  pair->work[(pair->head + pair->size++) % kDepth] = {send, bytes, now};
  pair->bytes += bytes;
  under_way_ += bytes;
  send->open++;
  return true;
}

/// The next `bytes` of the message as pieces of memory; fewer bytes when that takes more pieces than the device does.
Bytes RdmaSender::Gather(const Send& send, Bytes bytes, std::span<ibv_sge> pieces, int* count) const noexcept {
  Bytes skip = send.assigned;
  Bytes left = bytes;
  std::size_t used = 0;
  for (std::size_t i = 0; i < send.part_count && left > 0 && used < queues_->parts(); ++i) {
    const Part& part = send.parts[i];
    if (skip >= part.size) {
      skip -= part.size;
      continue;
    }
    const Bytes size = std::min(part.size - skip, left);
    pieces[used++] = {reinterpret_cast<std::uint64_t>(part.data) + skip, static_cast<std::uint32_t>(size),
                      send.keys[i]};
    left -= size;
    skip = 0;
  }
  *count = static_cast<int>(used);
  return bytes - left;
}

}  // namespace weir::transport::rdma
