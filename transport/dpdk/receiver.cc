#include "transport/dpdk/receiver.h"

#include <bit>
#include <utility>

namespace weir::transport::dpdk {

PacketReceiver::PacketReceiver(Endpoint* endpoint, Peer peer, std::uint32_t slots, const Nonce& listener,
                               const Nonce& nonce)
    : ChannelEnd(endpoint, std::move(peer), "receiving from", endpoint->NewChannel()),
      slots_(slots),
      listener_(listener),
      nonce_(nonce) {
  const std::uint32_t requests = endpoint_.options().requests;
  receives_.assign(requests, Receive(this));
  for (Receive& receive : receives_) free_.push_back(&receive);
  posted_.resize(std::bit_ceil(requests));
}

PacketReceiver::~PacketReceiver() {
  if (guarded_) return;
  const Endpoint::Guard guard(&endpoint_);
  endpoint_.Serve(endpoint_.clock().Now());
  if (failure_.ok()) Leave();
  Ack last;
  last.cumulative = cumulative_;
  FillMap(&last);
  endpoint_.Bury(ChannelEnd::channel(), ChannelEnd::peer(), last);
  Unregister();
  endpoint_.Flush();
}

bool PacketReceiver::OnHello(const Greeting& hello) noexcept {
  if (hello.listener != listener_ || hello.channel != nonce_) return false;
  std::byte* packet = endpoint_.Reserve(peer_.path);
  if (packet == nullptr) return true;
  Greeting welcome;
  welcome.listener = listener_;
  welcome.channel = nonce_;
  welcome.from = ChannelEnd::channel();
  welcome.packet_max = static_cast<std::uint16_t>(peer_.packet_max);
  welcome.slots = static_cast<std::uint8_t>(slots_);
  welcome.identity = endpoint_.options().identity;
  endpoint_.Send(peer_.path, EncodeGreeting(Kind::kWelcome, peer_.channel, welcome, packet));
  return true;
}

}  // namespace weir::transport::dpdk
