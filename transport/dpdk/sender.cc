#include "transport/dpdk/sender.h"

#include <algorithm>
#include <utility>

namespace weir::transport::dpdk {

PacketSender::PacketSender(Endpoint* endpoint, Peer peer, std::uint64_t channel, std::uint32_t slots, Lane* lane,
                           std::unique_ptr<CongestionControl> congestion)
    : ChannelEnd(endpoint, std::move(peer), "sending to", channel),
      slots_(slots),
      lane_(lane),
      lane_share_(lane),
      congestion_(std::move(congestion)),
      segment_bytes_(peer_.packet_max - kDataBytes) {
  const std::uint32_t requests = endpoint_.options().requests;
  sends_.assign(requests, Send(this));
  for (Send& send : sends_) free_.push_back(&send);
  queue_.resize(requests);
  segments_.resize(kWindow);
  granted_.resize(kRequestsMax);
}

PacketSender::~PacketSender() {
  const Endpoint::Guard guard(&endpoint_);
  if (failure_.ok()) Leave();
  if (lane_ != nullptr) lane_share_.Idle();
  Unregister();
  endpoint_.Flush();
}

void PacketSender::Append(List* list, std::uint32_t sequence) noexcept {
  const std::uint32_t at = sequence % kWindow;
  segments_[at].before = list->tail;
  segments_[at].after = kNone;
  (list->tail == kNone ? list->head : segments_[list->tail].after) = at;
  list->tail = at;
}

void PacketSender::Unlink(List* list, std::uint32_t sequence) noexcept {
  const Segment& segment = At(sequence);
  (segment.before == kNone ? list->head : segments_[segment.before].after) = segment.after;
  (segment.after == kNone ? list->tail : segments_[segment.after].before) = segment.before;
}

}  // namespace weir::transport::dpdk
