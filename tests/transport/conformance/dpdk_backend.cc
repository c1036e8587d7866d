// The protocol of the DPDK backend on a simulated wire: clean, lossy to three degrees, and hostile in every way at
// once.
#include <random>

#include "tests/transport/conformance/backend.h"
#include "tests/transport/dpdk/simulated_wire.h"
#include "transport/dpdk/packet_transport.h"

namespace weir::transport {
namespace {

class DpdkBackend final : public Backend {
 public:
  DpdkBackend(const dpdk::WireOptions& wire, const std::string& network, std::uint32_t requests)
      : wire_(wire, &clock()), random_(wire.seed) {
    left_ = Make(0, network + "1", "left/1", requests);
    right_ = Make(1, network + "2", "right/2", requests);
    wire_.Keep(0, [this] { left_->Serve(); });
    wire_.Keep(1, [this] { right_->Serve(); });
  }
  Transport& left() override { return *left_; }
  Transport& right() override { return *right_; }

 private:
  std::unique_ptr<PacketTransport> Make(std::size_t end, const std::string& address, const char* identity,
                                        std::uint32_t requests) {
    dpdk::EndpointOptions options;
    options.identity = identity;
    options.address = IpAddress::Parse(address).value();
    options.requests = requests;
    options.paths = 4;
    return std::move(
        MakePacketTransport(options, "wire0", wire_.port(end), &clock(), [this] { return random_(); }).value());
  }

  dpdk::SimulatedWire wire_;
  std::mt19937_64 random_;
  std::unique_ptr<PacketTransport> left_;
  std::unique_ptr<PacketTransport> right_;
};

BackendKind Kind(const char* name, const dpdk::WireOptions& wire, const char* network = "10.9.0.") {
  return {name,
          [wire, network](std::uint32_t requests) { return std::make_unique<DpdkBackend>(wire, network, requests); },
          8u << 20};
}

dpdk::WireOptions Jumbo() {
  dpdk::WireOptions wire;
  wire.frame_bytes = 9014;
  return wire;
}

dpdk::WireOptions Losing(double loss) {
  dpdk::WireOptions wire;
  wire.seed = 12;
  wire.loss = loss;
  return wire;
}

dpdk::WireOptions Hostile() {
  dpdk::WireOptions wire = Losing(0.05);
  wire.duplication = 0.05;
  wire.damage = 0.01;
  wire.delay_min = 5 * kMicrosecond;
  wire.delay_max = 300 * kMicrosecond;
  return wire;
}

INSTANTIATE_TEST_SUITE_P(Dpdk, Conformance,
                         testing::Values(Kind("clean", {}), Kind("jumbo_ipv6", Jumbo(), "fd00::"),
                                         Kind("loses_one_in_1000", Losing(0.001)),
                                         Kind("loses_1_percent", Losing(0.01)), Kind("hostile", Hostile())),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weir::transport
