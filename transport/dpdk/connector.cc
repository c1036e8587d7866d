#include "transport/dpdk/connector.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/dpdk/sender.h"

namespace weir::transport::dpdk {
namespace {

constexpr Nanoseconds kHelloAgain = 5 * kMillisecond;
constexpr Nanoseconds kHelloAgainMax = 500 * kMillisecond;
constexpr Nanoseconds kAskAgain = 20 * kMillisecond;

Peer PeerOf(const Endpoint& endpoint, const Place& place) {
  Peer peer;
  peer.path = endpoint.PathTo(place.address, place.mac, place.port);
  peer.next_hop = endpoint.NextHop(place.address);
  peer.packet_max = endpoint.PacketMax();
  peer.name = fmt::format("{} ({})", place.identity, place.address.ToString());
  return peer;
}

}  // namespace

PacketConnector::PacketConnector(Endpoint* endpoint, const Place& place, Lane* lane)
    : ChannelEnd(endpoint, PeerOf(*endpoint, place), "connecting to", endpoint->NewChannel()),
      place_(place),
      lane_(lane),
      nonce_(endpoint->NewNonce()),
      deadline_(endpoint->clock().Now() + endpoint->options().connect_within),
      wait_(kHelloAgain) {
  asks_ = endpoint->MustAsk(peer_.next_hop, place.address, &peer_.path.destination_mac);
  if (!asks_) return;
  if (!endpoint->neighbours().Want(peer_.next_hop)) {
    verdict_ = Status(StatusCode::kResourceExhausted,
                      fmt::format("{} neighbours are known, more are not allowed", NeighbourTable::kMax));
  }
  asks_until_ = endpoint->clock().Now() + endpoint->options().neighbour_within;
  wait_ = kAskAgain;
}

PacketConnector::~PacketConnector() {
  const Endpoint::Guard guard(&endpoint_);
  Unregister();
}

Result<std::unique_ptr<Sender>> PacketConnector::Poll() {
  const Endpoint::Guard guard(&endpoint_);
  const Nanoseconds now = endpoint_.clock().Now();
  endpoint_.Serve(now);
  if (!verdict_.ok()) return Problem(verdict_);
  if (answered_) {
    peer_.channel = welcome_.from;
    peer_.packet_max = std::min<std::size_t>(peer_.packet_max, welcome_.packet_max);
    auto congestion = MakeCongestionControl(endpoint_.options(), peer_.packet_max - kDataBytes,
                                            endpoint_.FloorTo(peer_.path.destination));
    if (!congestion) return Problem(congestion.error());
    return std::make_unique<PacketSender>(&endpoint_, peer_, channel(), welcome_.slots, lane_, std::move(*congestion));
  }
  if (asks_ && !FindNextHop(now)) {
    if (now < asks_until_) return nullptr;
    return Problem(
        Status(StatusCode::kUnavailable,
               fmt::format("nobody on the segment says that it has {}, the next hop, although it was asked for "
                           "{} times within {:.1f} s; is that address right, and the device on its segment?",
                           peer_.next_hop.ToString(), asked_, ToSeconds(endpoint_.options().neighbour_within))));
  }
  if (now >= deadline_) {
    return Problem(Status(StatusCode::kUnavailable,
                          fmt::format("no answer within {:.1f} s", ToSeconds(endpoint_.options().connect_within))));
  }
  if (now >= again_at_) {
    again_at_ = now + wait_;
    wait_ = std::min(2 * wait_, kHelloAgainMax);
    SayHello();
    endpoint_.Flush();
  }
  return nullptr;
}

bool PacketConnector::FindNextHop(Nanoseconds now) noexcept {
  if (const MacAddress* mac = endpoint_.neighbours().Find(peer_.next_hop)) {
    peer_.path.destination_mac = *mac;
    asks_ = false;
    again_at_ = 0;
    wait_ = kHelloAgain;
    return true;
  }
  if (now < again_at_) return false;
  again_at_ = now + wait_;
  wait_ = std::min(2 * wait_, kHelloAgainMax);
  asked_++;
  endpoint_.AskFor(peer_.next_hop);
  endpoint_.Flush();
  return false;
}

tl::unexpected<Status> PacketConnector::Problem(const Status& status) const {
  return Error(status.code(),
               fmt::format("{}, connecting to {}: {}", endpoint_.options().identity, peer_.name, status.message()));
}

void PacketConnector::OnPacket(const Header& header, const Datagram& datagram, Nanoseconds) noexcept {
  if (answered_ || !verdict_.ok() || header.kind != Kind::kWelcome) return;
  auto welcome = DecodeGreeting(datagram.payload);
  if (!welcome) {
    verdict_ = welcome.error();
    return;
  }
  verdict_ = Judge(*welcome);
  welcome_ = std::move(*welcome);
  answered_ = verdict_.ok();
}

void PacketConnector::OnOtherVersion() noexcept {
  verdict_ = Status(StatusCode::kProtocol, fmt::format("it does not speak our version, which is {}; run the same Weir "
                                                       "on both hosts",
                                                       kVersion));
}

Status PacketConnector::Judge(const Greeting& welcome) const {
  switch (welcome.verdict) {
    case Verdict::kWelcome:
      break;
    case Verdict::kOtherVersion:
      return Status(StatusCode::kProtocol, fmt::format("{} there does not speak our version, which is {}; run the same "
                                                       "Weir on both hosts",
                                                       welcome.identity, kVersion));
    case Verdict::kOtherListener:
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("{} is there now, and has no listener of this handle", welcome.identity));
    case Verdict::kTaken:
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("{} has been connected to by another already", welcome.identity));
    case Verdict::kMalformed:
      return Status(StatusCode::kProtocol, fmt::format("{} did not understand our greeting", welcome.identity));
  }
  if (welcome.channel != nonce_ || welcome.listener != place_.nonce || welcome.identity != place_.identity) {
    return Status(StatusCode::kPermissionDenied, fmt::format("{} answers there", welcome.identity));
  }
  return Status::Ok();
}

void PacketConnector::SayHello() noexcept {
  std::byte* packet = endpoint_.Reserve(peer_.path);
  if (packet == nullptr) return;
  Greeting hello;
  hello.listener = place_.nonce;
  hello.channel = nonce_;
  hello.from = channel();
  hello.packet_max = static_cast<std::uint16_t>(endpoint_.PacketMax());
  hello.identity = endpoint_.options().identity;
  endpoint_.Send(peer_.path, EncodeGreeting(Kind::kHello, channel(), hello, packet));
}

}  // namespace weir::transport::dpdk
