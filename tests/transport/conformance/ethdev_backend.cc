// The DPDK backend on real ports: two of memif in this process, joined by shared memory. Needs no privilege.
#include <unistd.h>

#include <cstdio>
#include <random>
#include <stdexcept>
#include <thread>

#include "tests/transport/conformance/backend.h"
#include "transport/clock.h"
#include "transport/dpdk/ethdev/ethdev.h"
#include "transport/dpdk/packet_transport.h"

namespace weir::transport {
namespace {

/// Opened once for all tests, as two ports take a while to meet, and still open when the program ends.
class Ports {
 public:
  static Ports& Get() {
    static auto* ports = new Ports;
    return *ports;
  }

  std::unique_ptr<dpdk::EthdevPort> right;
  std::unique_ptr<dpdk::EthdevPort> left;

 private:
  Ports() {
    const std::string folder = testing::TempDir();
    const std::string name = "weir-memif-" + std::to_string(getpid()) + ".sock";
    // The driver has one socket for each spelling of a path, and that is either a server's or a client's.
    right = Open("net_memif0,role=server,socket=" + folder + name);
    left = Open("net_memif1,role=client,socket=" + folder + "./" + name);
    const Nanoseconds deadline = SteadyClock().Now() + 20 * kSecond;
    while (!left->link_up() || !right->link_up()) {
      if (SteadyClock().Now() > deadline) throw std::runtime_error("the two ports of memif do not meet");
      std::this_thread::yield();
    }
    std::remove((folder + name).c_str());  // They have met.
  }

  static std::unique_ptr<dpdk::EthdevPort> Open(const std::string& device) {
    dpdk::EthdevSettings settings;
    settings.device = device + ",socket-abstract=no";
    auto port = dpdk::OpenEthdev(settings);
    if (!port) throw std::runtime_error(port.error().ToString());
    return std::move(*port);
  }
};

class EthdevBackend final : public Backend {
 public:
  explicit EthdevBackend(std::uint32_t requests) {
    right_ = Make(Ports::Get().right.get(), "10.9.0.2", "right/2", requests);
    left_ = Make(Ports::Get().left.get(), "10.9.0.1", "left/1", requests);
  }
  Transport& left() override { return *left_; }
  Transport& right() override { return *right_; }

 private:
  std::unique_ptr<PacketTransport> Make(dpdk::PacketPort* port, const char* address, const char* identity,
                                        std::uint32_t requests) {
    dpdk::EndpointOptions options;
    options.identity = identity;
    options.address = IpAddress::Parse(address).value();
    options.requests = requests;
    // The thread that answers for a busy owner lives in real time, and these tests do not: nobody is dead here.
    options.dead_after = 3600 * kSecond;
    auto made = MakePacketTransport(options, "memif", port, &clock(), [this] { return random_(); });
    if (!made) throw std::runtime_error(made.error().ToString());
    return std::move(*made);
  }

  std::mt19937_64 random_{std::random_device{}()};  // Each transport on the ports has other numbers of channels.
  std::unique_ptr<PacketTransport> right_;
  std::unique_ptr<PacketTransport> left_;
};

INSTANTIATE_TEST_SUITE_P(Ethdev, Conformance,
                         testing::Values(BackendKind{
                             "memif", [](std::uint32_t requests) { return std::make_unique<EthdevBackend>(requests); },
                             8u << 20}),
                         [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace weir::transport
