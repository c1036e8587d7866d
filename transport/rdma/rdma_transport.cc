#include "transport/rdma/rdma_transport.h"

#include <fmt/format.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <utility>

#include "transport/rdma/connector.h"
#include "transport/rdma/listener.h"
#include "transport/rdma/port.h"

namespace weir::transport {
namespace {

std::string DefaultIdentity() {
  char name[HOST_NAME_MAX + 1] = "host";
  static_cast<void>(gethostname(name, sizeof(name) - 1));
  const std::string process = fmt::format("/{}", getpid());
  return std::string(name).substr(0, kIdentityBytes - 1 - process.size()) + process;
}

Device Describe(rdma::Port* port, const RdmaOptions& options) {
  Device device;
  device.name = port->name();
  if (const auto choice = port->Choose({})) device.address = rdma::AddressOf(choice->entry.gid).ToString();
  const std::string path = "/sys/class/infiniband/" + port->name().substr(0, port->name().find(':')) + "/device";
  if (char whole[PATH_MAX]; realpath(path.c_str(), whole) != nullptr) device.pci_path = whole;
  device.speed = port->speed();
  device.requests = options.requests;
  device.slots = kMaxSlots;
  if (port->takes_dma_buf()) device.memory_kinds |= static_cast<std::uint8_t>(MemoryKind::kDmaBuf);
  return device;
}

class RdmaTransport final : public Transport {
 public:
  RdmaTransport(RdmaOptions options, const Clock& clock) : options_(std::move(options)), clock_(clock) {}

  Status Open() {
    const auto verbs = rdma::LoadVerbs();
    if (!verbs) return verbs.error();
    auto ports = rdma::OpenPorts(*verbs, &options_);
    if (!ports) return ports.error();
    ports_ = std::move(*ports);
    for (const auto& port : ports_) devices_.push_back(Describe(port.get(), options_));
    return Status::Ok();
  }

  const char* name() const override { return "rdma"; }
  const std::vector<Device>& devices() const override { return devices_; }

  Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    if (slots < 1 || slots > kMaxSlots) {
      return Error(StatusCode::kInvalidArgument, fmt::format("slots: found {}, allowed: 1 to {}", slots, kMaxSlots));
    }
    return rdma::RdmaListener::Start(options_, ports_[device].get(), slots, &clock_);
  }

  Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    const auto place = rdma::DecodeHandle(handle);
    if (!place) return tl::unexpected(place.error());
    return rdma::RdmaConnector::Start(options_, ports_[device].get(), *place, lane, &clock_);
  }

 private:
  Status CheckDevice(std::size_t device) const {
    if (device < ports_.size()) return Status::Ok();
    return Status(StatusCode::kNotFound, fmt::format("device {} does not exist; there are {}", device, ports_.size()));
  }

  RdmaOptions options_;
  const Clock& clock_;
  std::vector<std::unique_ptr<rdma::Port>> ports_;
  std::vector<Device> devices_;
};

}  // namespace

Result<std::unique_ptr<Transport>> MakeRdmaTransport(const RdmaOptions& options, const Clock& clock) {
  if (Status status = CheckRdmaOptions(options); !status.ok()) return tl::unexpected(status);
  RdmaOptions own = options;
  if (own.identity.empty()) own.identity = DefaultIdentity();
  auto transport = std::make_unique<RdmaTransport>(std::move(own), clock);
  if (Status status = transport->Open(); !status.ok()) return tl::unexpected(status);
  return transport;
}

}  // namespace weir::transport
