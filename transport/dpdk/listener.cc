#include "transport/dpdk/listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::transport::dpdk {

PacketListener::PacketListener(Endpoint* endpoint, std::uint32_t slots) : endpoint_(*endpoint), slots_(slots) {
  const Endpoint::Guard guard(endpoint);
  nonce_ = endpoint_.NewNonce();
  const EndpointOptions& options = endpoint_.options();
  handle_ = EncodeHandle({{options.address, options.port, nonce_, options.identity}, endpoint_.mac()});
  endpoint_.AddListener(nonce_, this);
}

PacketListener::~PacketListener() {
  {
    const Endpoint::Guard guard(&endpoint_);
    endpoint_.RemoveListener(nonce_);
  }
  receiver_.reset();  // Takes the guard itself.
}

Result<std::unique_ptr<Receiver>> PacketListener::Accept() {
  const Endpoint::Guard guard(&endpoint_);
  endpoint_.Serve(endpoint_.clock().Now());
  return std::move(receiver_);
}

void PacketListener::Greet(const Greeting& hello, const Datagram& datagram, Nanoseconds) {
  if (receiver_ != nullptr && !receiver_->failure().ok()) {
    // One that greeted and died must not keep out the one that comes after it.
    receiver_->Drop();
    receiver_.reset();
    taken_ = Nonce{};
  }
  if (taken_ == hello.channel) {
    if (receiver_ != nullptr) {
      receiver_->OnHello(hello);
    } else {
      endpoint_.Repeat(hello);
    }
    return;
  }
  if (taken_ != Nonce{}) return endpoint_.Refuse(datagram, hello.from, hello.channel, Verdict::kTaken);
  taken_ = hello.channel;
  Peer peer;
  peer.channel = hello.from;
  peer.next_hop = endpoint_.NextHop(datagram.path.source);
  MacAddress mac{};
  static_cast<void>(endpoint_.MustAsk(peer.next_hop, datagram.path.source, &mac));
  if (mac == MacAddress{}) mac = datagram.path.source_mac;  // Back where it came from: nobody needs to be asked.
  peer.path = endpoint_.PathTo(datagram.path.source, mac, endpoint_.options().port);
  peer.packet_max = std::min<std::size_t>(hello.packet_max, endpoint_.PacketMax());
  peer.name = fmt::format("{} ({})", hello.identity, datagram.path.source.ToString());
  receiver_ = std::make_unique<PacketReceiver>(&endpoint_, std::move(peer), slots_, nonce_, hello.channel);
  receiver_->OnHello(hello);
}

}  // namespace weir::transport::dpdk
