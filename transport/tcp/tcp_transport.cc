#include "transport/tcp/tcp_transport.h"

#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "transport/tcp/connector.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/silence_watch.h"
#include "transport/tcp/wire.h"

namespace weir::transport {
namespace {

std::string DefaultIdentity() {
  char name[HOST_NAME_MAX + 1] = "host";
  static_cast<void>(gethostname(name, sizeof(name) - 1));
  const std::string process = fmt::format("/{}", getpid());
  return std::string(name).substr(0, tcp::kIdentityBytes - 1 - process.size()) + process;
}

Status CheckOptions(const TcpOptions& options) {
  const auto wrong = [](const char* what, auto found, const std::string& allowed) {
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: found {}, allowed: {}", what, found, allowed));
  };
  if (options.identity.size() >= tcp::kIdentityBytes ||
      std::any_of(options.identity.begin(), options.identity.end(), [](char c) { return c <= ' ' || c >= 127; })) {
    return wrong("identity", '"' + options.identity + '"', "up to 31 printable characters, no blanks");
  }
  if (options.streams < 1 || options.streams > kMaxStreams) {
    return wrong("streams", options.streams, fmt::format("1 to {}", kMaxStreams));
  }
  if (options.stripe_bytes < 4096 || options.stripe_bytes > (Bytes{1} << 30)) {
    return wrong("stripe size in bytes", options.stripe_bytes, "4096 to 1073741824");
  }
  if (options.requests < 1 || options.requests > kMaxRequests) {
    return wrong("requests", options.requests, fmt::format("1 to {}", kMaxRequests));
  }
  if (options.dead_after < tcp::SilenceWatch::kBoundMin || options.dead_after > 3600 * kSecond) {
    return wrong("bound on a dead link in ms", options.dead_after / kMillisecond,
                 fmt::format("{} to 3600000", tcp::SilenceWatch::kBoundMin / kMillisecond));
  }
  if (options.traffic_class > 255) return wrong("traffic class", options.traffic_class, "0 to 255, or none");
  return Status::Ok();
}

Device Describe(const Interface& interface, const TcpOptions& options) {
  Device device;
  device.name = interface.name;
  device.address = interface.address.ToString();
  const std::string base = "/sys/class/net/" + interface.name;
  if (char path[PATH_MAX]; realpath((base + "/device").c_str(), path) != nullptr) device.pci_path = path;
  double megabits = 0;
  if (std::ifstream speed(base + "/speed"); speed >> megabits && megabits > 0) {
    device.speed = BitsPerSecond(megabits * 1e6);
  }
  device.requests = options.requests;
  device.slots = kMaxSlots;
  return device;
}

class TcpTransport final : public Transport {
 public:
  TcpTransport(TcpOptions options, std::vector<Interface> interfaces, const Clock& clock)
      : options_(std::move(options)), interfaces_(std::move(interfaces)), clock_(clock) {
    for (const Interface& interface : interfaces_) devices_.push_back(Describe(interface, options_));
  }

  const char* name() const override { return "tcp"; }
  const std::vector<Device>& devices() const override { return devices_; }

  Result<std::unique_ptr<Listener>> Listen(std::size_t device, std::uint32_t slots) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    if (slots < 1 || slots > kMaxSlots) {
      return Error(StatusCode::kInvalidArgument, fmt::format("slots: found {}, allowed: 1 to {}", slots, kMaxSlots));
    }
    return tcp::TcpListener::Start(options_, interfaces_[device], slots, &clock_);
  }

  Result<std::unique_ptr<Connector>> Connect(std::size_t device, const Handle& handle, Lane* lane) override {
    if (Status status = CheckDevice(device); !status.ok()) return tl::unexpected(status);
    const auto place = tcp::DecodeHandle(handle);
    if (!place) return tl::unexpected(place.error());
    return tcp::TcpConnector::Start(options_, interfaces_[device], *place, lane, &clock_);
  }

 private:
  Status CheckDevice(std::size_t device) const {
    if (device < interfaces_.size()) return Status::Ok();
    return Status(StatusCode::kNotFound,
                  fmt::format("device {} does not exist; there are {}", device, interfaces_.size()));
  }

  TcpOptions options_;
  std::vector<Interface> interfaces_;
  const Clock& clock_;
  std::vector<Device> devices_;
};

}  // namespace

TcpOptions TcpOptionsFromEnvironment() {
  TcpOptions options;
  if (const char* rule = std::getenv("NCCL_SOCKET_IFNAME")) options.interfaces = rule;
  if (const char* family = std::getenv("NCCL_SOCKET_FAMILY")) options.family = family;
  return options;
}

Result<std::unique_ptr<Transport>> MakeTcpTransport(const TcpOptions& options, const Clock& clock) {
  if (Status status = CheckOptions(options); !status.ok()) return tl::unexpected(status);
  auto found = ListInterfaces();
  if (!found) return tl::unexpected(found.error());
  auto selected = SelectInterfaces(*found, options.interfaces, options.family);
  if (!selected) return tl::unexpected(selected.error());
  TcpOptions own = options;
  if (own.identity.empty()) own.identity = DefaultIdentity();
  return std::make_unique<TcpTransport>(std::move(own), std::move(*selected), clock);
}

}  // namespace weir::transport
