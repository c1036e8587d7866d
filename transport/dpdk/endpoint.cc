// Setting up an endpoint: channels and listeners come and go. What happens for each packet: endpoint_datapath.cc.
#include "transport/dpdk/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "coflow/check.h"
#include "transport/dpdk/listener.h"

namespace weir::transport::dpdk {

ChannelEnd::ChannelEnd(Endpoint* endpoint, Peer peer, const char* doing, std::uint64_t channel)
    : endpoint_(*endpoint), peer_(std::move(peer)), doing_(doing), channel_(channel) {
  heard_at_ = beat_at_ = endpoint_.clock().Now();
  heard_served_ = endpoint_.served();
  endpoint_.Add(this);
  endpoint_.WakeAt(this, heard_at_ + endpoint_.beat());
}

ChannelEnd::~ChannelEnd() {
  if (registered_) Unregister();
}

void ChannelEnd::Unregister() noexcept {
  registered_ = false;
  tick_.Unlink();
  pace_.Unlink();
  endpoint_.Remove(this);
}

Nanoseconds ChannelEnd::CheckLife(Nanoseconds now) noexcept {
  if (!failure_.ok()) return Endpoint::kNever;
  const Nanoseconds beat = endpoint_.beat();
  // The last beat is for looks that are late: it is told within the bound.
  const Nanoseconds left = beat * (Endpoint::kBeats - 1) - (endpoint_.served() - heard_served_);
  if (left <= 0) {
    Fail(StatusCode::kUnavailable, "the link is dead: nothing came back within the bound");
    return Endpoint::kNever;
  }
  if (now - std::max(heard_at_, beat_at_) >= beat) {
    beat_at_ = now;
    if (endpoint_.neighbours().wanted(peer_.next_hop)) endpoint_.AskFor(peer_.next_hop);  // It may have moved.
    Beat();
  }
  return std::min(std::max(heard_at_, beat_at_) + beat, now + left);
}

void ChannelEnd::Fail(StatusCode code, const std::string& what) noexcept {
  if (!failure_.ok()) return;
  failure_ = Status(code, fmt::format("{}, {} {}: {}", endpoint_.options().identity, doing_, peer_.name, what));
  endpoint_.StopPacing(this);
  Leave();
  endpoint_.Flush();
}

Endpoint::Endpoint(EndpointOptions options, PacketPort* port, const Clock* clock, std::function<std::uint64_t()> random)
    : options_(std::move(options)),
      port_(*port),
      clock_(*clock),
      random_(std::move(random)),
      wheel_(clock->Now()),
      served_at_(clock->Now()) {
  ends_.reserve(64);
  touched_.reserve(kChannelsMax);
  graves_.resize(kGraves);
}

std::uint64_t Endpoint::NewChannel() {
  std::uint64_t number = 0;
  while (number == 0 || ends_.contains(number)) number = random_();
  return number;
}

Nonce Endpoint::NewNonce() {
  Nonce nonce;
  Writer out(nonce.data());
  out.Put(random_());
  out.Put(random_());
  return nonce;
}

void Endpoint::Add(ChannelEnd* end) {
  ends_.insert_or_assign(end->channel(), end);  // A sender takes the place of its connector.
}

void Endpoint::Remove(ChannelEnd* end) {
  const auto at = ends_.find(end->channel());
  if (at != ends_.end() && at->second == end) ends_.erase(at);
  std::erase(touched_, end);
}

void Endpoint::AddListener(const Nonce& nonce, PacketListener* listener) {
  listeners_.emplace(nonce, listener);
}

void Endpoint::RemoveListener(const Nonce& nonce) {
  listeners_.erase(nonce);
}

void Endpoint::Bury(std::uint64_t channel, const Peer& peer, const Ack& last) {
  graves_[next_grave_++ % kGraves] = {channel, peer.channel, last};
}

FramePath Endpoint::PathTo(const IpAddress& address, const MacAddress& mac, std::uint16_t port) const {
  FramePath path;
  path.source_mac = port_.mac();
  path.destination_mac = mac;
  path.source = options_.address;
  path.destination = address;
  path.source_port = options_.port;
  path.destination_port = port;
  path.ecn = options_.ecn ? Ecn::kCapable : Ecn::kNot;
  return path;
}

IpAddress Endpoint::NextHop(const IpAddress& address) const noexcept {
  const bool has_gateway = options_.gateway_address != IpAddress{} || options_.gateway != MacAddress{};
  if (!has_gateway) return address;
  const bool near = options_.prefix_bits > 0 && SamePrefix(address, options_.address, options_.prefix_bits);
  return near ? address : options_.gateway_address;
}

bool Endpoint::MustAsk(const IpAddress& next_hop, const IpAddress& address, MacAddress* mac) const noexcept {
  if (next_hop == address) return options_.ask_neighbours;
  *mac = options_.gateway;
  return options_.gateway == MacAddress{};
}

std::size_t Endpoint::PacketMax() const {
  return port_.frame_bytes() - FrameOverhead(options_.address.is_v4());
}

std::shared_ptr<RoundTripFloor> Endpoint::FloorTo(const IpAddress& peer) {
  std::erase_if(floors_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<RoundTripFloor>& place = floors_[peer];
  auto floor = place.lock();
  if (floor == nullptr) place = floor = std::make_shared<RoundTripFloor>();
  return floor;
}

}  // namespace weir::transport::dpdk
