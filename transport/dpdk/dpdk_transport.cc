#include "transport/dpdk/dpdk_transport.h"

#include <fmt/format.h>
#include <limits.h>
#include <sys/random.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace weir::transport {
namespace {

/// Eight heartbeats fit into the shortest bound that is allowed.
constexpr auto kKeepEvery = std::chrono::milliseconds(1);

std::string DefaultIdentity() {
  char name[HOST_NAME_MAX + 1] = "host";
  static_cast<void>(gethostname(name, sizeof(name) - 1));
  const std::string process = fmt::format("/{}", getpid());
  return std::string(name).substr(0, kIdentityBytes - 1 - process.size()) + process;
}

std::uint64_t Random() {
  std::uint64_t value = 0;
  // Never short for so few bytes, and never interrupted, once the kernel has its randomness.
  static_cast<void>(getrandom(&value, sizeof(value), 0));
  return value;
}

/// The port, the transport on it, and the thread that answers.
class DpdkTransport final : public PacketTransport {
 public:
  DpdkTransport(std::unique_ptr<dpdk::EthdevPort> port, std::unique_ptr<dpdk::ImpairedPort> impaired,
                std::unique_ptr<PacketTransport> inner, bool keeper)
      : port_(std::move(port)), impaired_(std::move(impaired)), inner_(std::move(inner)) {
    if (keeper) keeper_ = std::thread([this] { Keep(); });
  }
  ~DpdkTransport() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    if (keeper_.joinable()) keeper_.join();
  }

  const char* name() const override { return inner_->name(); }
  const std::vector<Device>& devices() const override { return inner_->devices(); }
  Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) override {
    return inner_->Listen(device, slots);
  }
  Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) override {
    return inner_->Connect(device, handle, lane);
  }
  void Serve() override { inner_->Serve(); }
  dpdk::EndpointCounters counters() override { return inner_->counters(); }

 private:
  void Keep() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kKeepEvery, [this] { return ends_; })) {
      lock.unlock();
      inner_->Serve();
      lock.lock();
    }
  }

  std::unique_ptr<dpdk::EthdevPort> port_;
  std::unique_ptr<dpdk::ImpairedPort> impaired_;  ///< Null: it is as good as it is.
  std::unique_ptr<PacketTransport> inner_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;  ///< Under mutex_.
  std::thread keeper_;
};

}  // namespace

Result<std::unique_ptr<PacketTransport>> MakeDpdkTransport(const DpdkOptions& options, const Clock& clock) {
  dpdk::EndpointOptions endpoint = options.endpoint;
  if (endpoint.identity.empty()) endpoint.identity = DefaultIdentity();
  auto port = dpdk::OpenEthdev(options.port);
  if (!port) return tl::unexpected(port.error());
  const std::string name = options.port.device.substr(0, options.port.device.find(','));
  std::unique_ptr<dpdk::ImpairedPort> impaired;
  if (options.impairment.any()) impaired = std::make_unique<dpdk::ImpairedPort>(port->get(), options.impairment);
  dpdk::PacketPort* used = impaired == nullptr ? static_cast<dpdk::PacketPort*>(port->get()) : impaired.get();
  auto inner = MakePacketTransport(endpoint, name, used, &clock, Random);
  if (!inner) return tl::unexpected(inner.error());
  return std::make_unique<DpdkTransport>(std::move(*port), std::move(impaired), std::move(*inner), options.keeper);
}

}  // namespace weir::transport
