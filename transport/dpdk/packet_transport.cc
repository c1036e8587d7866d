#include "transport/dpdk/packet_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "transport/dpdk/congestion.h"
#include "transport/dpdk/connector.h"
#include "transport/dpdk/listener.h"

namespace weir::transport {
namespace {

using dpdk::Endpoint;
using dpdk::EndpointOptions;

Status CheckOptions(const EndpointOptions& options, std::size_t frame_bytes) {
  const auto wrong = [](const char* what, const auto& found, const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: {}", what, found, allowed));
  };
  if (options.identity.empty() || options.identity.size() >= kIdentityBytes ||
      std::any_of(options.identity.begin(), options.identity.end(), [](char c) { return c <= ' ' || c >= 127; })) {
    return wrong("identity", '"' + options.identity + '"', "1 to 31 printable characters, no blanks");
  }
  if (options.address == IpAddress{}) return wrong("address", options.address.ToString(), "one of this host");
  const std::uint32_t bits = options.address.is_v4() ? 32 : 128;
  if (options.prefix_bits > bits) return wrong("prefix", options.prefix_bits, fmt::format("0 to {}", bits));
  if (options.gateway_address != IpAddress{} && options.gateway_address.is_v4() != options.address.is_v4()) {
    return wrong("gateway", options.gateway_address.ToString(), "an address of the family of ours");
  }
  if (options.port == 0) return wrong("port", options.port, "1 to 65535");
  if (options.paths < 1 || options.paths > dpdk::kPathsMax || options.port + options.paths > 65'536) {
    return wrong("paths", options.paths,
                 fmt::format("1 to {}, within the ports from {} on", dpdk::kPathsMax, options.port));
  }
  for (const std::uint8_t dscp : options.dscp) {
    if (dscp > 63) return wrong("dscp", dscp, "0 to 63");
  }
  if (options.requests < 1 || options.requests > dpdk::kRequestsMax) {
    return wrong("requests", options.requests, fmt::format("1 to {}", dpdk::kRequestsMax));
  }
  if (options.dead_after < 10 * kMillisecond || options.dead_after > 3600 * kSecond) {
    return wrong("bound on a dead link in ms", options.dead_after / kMillisecond, "10 to 3600000");
  }
  if (frame_bytes < dpdk::kFrameBytesMin || frame_bytes > dpdk::kFrameBytesMax) {
    return wrong("frame size of the port", frame_bytes,
                 fmt::format("{} to {}", dpdk::kFrameBytesMin, dpdk::kFrameBytesMax));
  }
  const auto congestion = dpdk::MakeCongestionControl(options, frame_bytes);
  return congestion ? Status::Ok() : congestion.error();
}

class OverPort final : public PacketTransport {
 public:
  OverPort(const EndpointOptions& options, std::string port_name, dpdk::PacketPort* port, const Clock* clock,
           std::function<std::uint64_t()> random)
      : endpoint_(options, port, clock, std::move(random)) {
    Device device;
    device.name = std::move(port_name);
    device.address = options.address.ToString();
    device.requests = options.requests;
    device.slots = kMaxSlots;
    devices_.push_back(std::move(device));
  }

  const char* name() const override { return "dpdk"; }
  const std::vector<Device>& devices() const override { return devices_; }

  Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    if (slots < 1 || slots > kMaxSlots) {
      return Error(StatusCode::kInvalidArgument, fmt::format("slots: found {}, allowed: 1 to {}", slots, kMaxSlots));
    }
    return std::make_unique<dpdk::PacketListener>(&endpoint_, slots);
  }

  Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    const auto place = dpdk::DecodeHandle(handle);
    if (!place) return tl::unexpected(place.error());
    if (place->address.is_v4() != endpoint_.options().address.is_v4()) {
      return Error(StatusCode::kInvalidArgument, fmt::format("the listener is at {}, we are at {}: not of one family",
                                                             place->address.ToString(), devices_[0].address));
    }
    const Endpoint::Guard guard(&endpoint_);
    if (endpoint_.channels() >= Endpoint::kChannelsMax) {
      return Error(StatusCode::kResourceExhausted, fmt::format("{} channels are open on {}, more are not allowed",
                                                               endpoint_.channels(), devices_[0].name));
    }
    return std::make_unique<dpdk::PacketConnector>(&endpoint_, *place, lane);
  }

  void Serve() override {
    const Endpoint::Guard guard(&endpoint_);
    endpoint_.Serve(endpoint_.clock().Now());
  }

  dpdk::EndpointCounters counters() override {
    const Endpoint::Guard guard(&endpoint_);
    return endpoint_.counters();
  }

 private:
  Status CheckDevice(std::size_t device) const {
    if (device == 0) return Status::Ok();
    return Status(StatusCode::kNotFound, fmt::format("device {} does not exist; there is one", device));
  }

  Endpoint endpoint_;
  std::vector<Device> devices_;
};

}  // namespace

Result<std::unique_ptr<PacketTransport>> MakePacketTransport(const EndpointOptions& options, std::string port_name,
                                                             dpdk::PacketPort* port, const Clock* clock,
                                                             std::function<std::uint64_t()> random) {
  if (Status status = CheckOptions(options, port->frame_bytes()); !status.ok()) return tl::unexpected(status);
  return std::make_unique<OverPort>(options, std::move(port_name), port, clock, std::move(random));
}

}  // namespace weir::transport
