// What comes back to the sending end: work that the device got done, receives that the peer posted, and failures. No
// allocation, no lock, no log until the channel has failed.
#include <algorithm>
#include <array>

#include "transport/rdma/sender.h"

namespace weir::transport::rdma {
namespace {

constexpr int kAtOnce = 16;
constexpr Bytes kWindowMin = 16 * 1024;

}  // namespace

void RdmaSender::Poll(Nanoseconds now) noexcept {
  std::array<ibv_wc, kAtOnce> completions;
  int count = kAtOnce;
  while (count == kAtOnce && failure_.ok()) {
    count = ibv_poll_cq(queues_->completions(), kAtOnce, completions.data());
    if (count < 0) return Fail(StatusCode::kUnavailable, "the device does not say what it got done");
    for (int i = 0; i < count && failure_.ok(); ++i) {
      const ibv_wc& one = completions[static_cast<std::size_t>(i)];
      if (one.status == IBV_WC_SUCCESS) watch_.Alive(now);
      if (one.status != IBV_WC_SUCCESS) {
        OnError(one, now);
      } else if (one.wr_id == Queues::kIncoming) {
        OnPosted(be32toh(one.imm_data));
      } else {
        OnSent(one.wr_id, now);
      }
    }
  }
}

void RdmaSender::OnSent(std::uint64_t number, Nanoseconds now) noexcept {
  Pair& pair = pairs_[number];
  const Pair::Work& work = pair.work[pair.head];
  pair.head = (pair.head + 1) % kDepth;
  pair.size--;
  pair.bytes -= work.bytes;
  under_way_ -= work.bytes;
  pair.done += work.bytes;
  if (pair.moved_at != watch_.Watched(now)) pair.polls++;
  pair.moved_at = watch_.Watched(now);
  const Nanoseconds took = now - work.handed_at;
  if (work.bytes > 0 && (pair.quickest == 0 || took < pair.quickest)) pair.quickest = took;
  if (now - pair.looked_at > options_.window_time) Adapt(&pair, now);
  Send* send = work.send;
  send->open--;
  send->done = send->closed && send->open == 0;
}

/// What gets done while the window is full is what the queue pair can do. An owner that polls rarely sees everything
/// late, so the time between its polls counts as well. An idle queue pair says nothing, and its window stays.
void RdmaSender::Adapt(Pair* pair, Nanoseconds now) noexcept {
  const Nanoseconds elapsed = now - pair->looked_at;
  if (pair->filled && pair->polls > 0) {
    const auto time = 2 * (pair->quickest + elapsed / pair->polls) + options_.window_time;
    const double window = static_cast<double>(pair->done) / static_cast<double>(elapsed) * static_cast<double>(time);
    pair->window =
        std::clamp(static_cast<Bytes>(window), std::min(kWindowMin, options_.window_bytes), options_.window_bytes);
  }
  pair->filled = false;
  pair->looked_at = now;
  pair->done = 0;
  pair->polls = 0;
}

void RdmaSender::OnPosted(std::uint32_t entry) noexcept {
  Open& open = open_[(open_head_ + open_size_) % open_.size()];
  if (entry >= open_.size() || open_size_ == open_.size() ||
      !DecodePosted(std::span<const std::byte, kPostedStride>(ring_->data() + entry * kPostedStride, kPostedStride),
                    &open.posted) ||
      open.posted.count > slots_ || open.posted.number != next_posted_) {
    return Fail(StatusCode::kProtocol, "what the peer wrote is no receive, or not the next");
  }
  next_posted_++;
  open.entry = entry;
  open.taken = 0;
  open.taken_mask = 0;
  open_size_++;
  if (!queues_->Replenish()) Fail(StatusCode::kUnavailable, "the device takes no more work");
}

/// With a single slot: the oldest receive, when there is one. With several, that was done when the message was posted.
bool RdmaSender::Match(Send* send) noexcept {
  return open_size_ > 0 && Take(&open_[open_head_], 0, send);
}

bool RdmaSender::Take(Open* open, std::uint32_t slot, Send* send) noexcept {
  if (send->total > open->posted.rooms[slot].capacity) {
    Fail(StatusCode::kInvalidArgument, "a message is larger than the room that was posted for it");
    return false;
  }
  send->room = open->posted.rooms[slot];
  send->mark = {Mark::Kind::kWhole, open->posted.number, open->entry, slot};
  send->matched = true;
  open->taken_mask |= 1u << slot;
  if (++open->taken == open->posted.count) {
    open_head_ = (open_head_ + 1) % open_.size();
    open_size_--;
  }
  return true;
}

Outcome RdmaSender::TakeSlot(Send* send, std::int32_t tag) noexcept {
  if (open_size_ == 0) Progress();
  if (!failure_.ok()) return Outcome::kFailed;
  if (open_size_ == 0) return Outcome::kAgain;
  Open& head = open_[open_head_];
  for (std::uint32_t i = 0; i < head.posted.count; ++i) {
    if ((head.taken_mask & (1u << i)) != 0 || (head.posted.rooms[i].tag != tag && head.posted.count > 1)) continue;
    return Take(&head, i, send) ? Outcome::kDone : Outcome::kFailed;
  }
  Progress();  // Nothing else may be calling it, and the receive is completed by what is under way.
  return failure_.ok() ? Outcome::kAgain : Outcome::kFailed;
}

void RdmaSender::OnError(const ibv_wc& completion, Nanoseconds now) noexcept {
  Heed(watch_.Look(now));  // A peer or a link that is gone is the reason, and what the device says its consequence.
  CheckBounds(now);
  Fail(StatusCode::kUnavailable, std::string("the device gave up: ") + port_.verbs().wc_status_str(completion.status));
}

void RdmaSender::Heed(Watch::State state) noexcept {
  if (state == Watch::State::kClosed) Fail(StatusCode::kUnavailable, "the peer closed the channel");
  if (state == Watch::State::kBroken) Fail(StatusCode::kUnavailable, watch_.why());
}

void RdmaSender::CheckBounds(Nanoseconds now) noexcept {
  if (!failure_.ok()) return;
  if (const char* why = watch_.Dead(now); why != nullptr) return Fail(StatusCode::kUnavailable, why);
  for (const Pair& pair : pairs_) {
    if (pair.size == 0 || !watch_.Overdue(pair.moved_at, now)) continue;
    return Fail(StatusCode::kUnavailable, "the link is dead: the device got nothing done within the bound");
  }
}

}  // namespace weir::transport::rdma
