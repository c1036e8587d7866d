// DPDK: our own protocol over a device that DPDK drives; how it is made, and what the doctor looks at.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "tools/weir-perf/backends.h"
#include "transport/dpdk/dpdk_transport.h"

namespace weir::tools {
namespace {

using Weight = Finding::Weight;
using transport::dpdk::MacAddress;

constexpr std::array<std::string_view, 13> kKeys{"device",
                                                 "address",
                                                 "mac",
                                                 "gateway",
                                                 "mtu",
                                                 "port",
                                                 "congestion",
                                                 "memory_mb",
                                                 "lose_permille",
                                                 "double_permille",
                                                 "reorder_permille",
                                                 "seed",
                                                 "neighbours"};

std::string TextOption(const BackendSettings& settings, const std::string& key) {
  const auto at = settings.options.find(key);
  return at == settings.options.end() ? "" : at->second;
}

/// "10.9.0.1" or "10.9.0.1/24".
bool ParseAddress(const std::string& text, transport::dpdk::EndpointOptions* options) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto address = IpAddress::Parse(text.substr(0, slash));
  if (!address) return false;
  options->address = *address;
  if (slash == text.size()) return true;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data() + slash + 1, end, options->prefix_bits);
  return error == std::errc() && at == end && options->prefix_bits > 0;
}

/// "02:00:00:00:00:01", or zeros where the key is not there.
Result<MacAddress> MacOption(const BackendSettings& settings, const std::string& key) {
  const std::string text = TextOption(settings, key);
  MacAddress mac{};
  if (text.empty()) return mac;
  bool good = text.size() == 17;
  for (std::size_t i = 0; good && i < mac.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + 3 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    good = error == std::errc() && end == digits + 2 && (i == 5 || *end == ':');
    mac[i] = static_cast<std::byte>(value);
  }
  if (good) return mac;
  return Error(StatusCode::kInvalidArgument,
               fmt::format("--options: {}: found \"{}\", allowed: {}six bytes as in 02:00:00:00:00:01", key, text,
                           key == "gateway" ? "an address, or " : ""));
}

/// An address, which is asked for, or a MAC address.
Status Gateway(const BackendSettings& settings, transport::dpdk::EndpointOptions* options) {
  if (const auto address = IpAddress::Parse(TextOption(settings, "gateway"))) {
    options->gateway_address = *address;
    return Status::Ok();
  }
  const auto mac = MacOption(settings, "gateway");
  if (!mac) return mac.error();
  options->gateway = *mac;
  return Status::Ok();
}

Status Numbers(const BackendSettings& settings, transport::DpdkOptions* options) {
  const auto mtu = NumberOption(settings, "mtu", 0, 562, 9000);
  const auto port = NumberOption(settings, "port", options->endpoint.port, 1, 65'535);
  const auto memory_mb = NumberOption(settings, "memory_mb", options->port.memory_mb, 16, 65'536);
  const auto lose = NumberOption(settings, "lose_permille", 0, 0, 500);
  const auto twice = NumberOption(settings, "double_permille", 0, 0, 500);
  const auto reorder = NumberOption(settings, "reorder_permille", 0, 0, 500);
  const auto seed = NumberOption(settings, "seed", 1, 0, UINT64_MAX);
  for (const auto* one : {&mtu, &port, &memory_mb, &lose, &twice, &reorder, &seed}) {
    if (!*one) return one->error();
  }
  options->impairment = {static_cast<std::uint32_t>(*lose), static_cast<std::uint32_t>(*twice),
                         static_cast<std::uint32_t>(*reorder), *seed};
  options->port.mtu = *mtu;
  options->port.memory_mb = static_cast<std::uint32_t>(*memory_mb);
  options->endpoint.port = static_cast<std::uint16_t>(*port);
  return Status::Ok();
}

Result<transport::DpdkOptions> Options(const BackendSettings& settings) {
  if (Status status = CheckKeys(settings, kKeys); !status.ok()) return tl::unexpected(status);
  transport::DpdkOptions options;
  options.port.device = TextOption(settings, "device");
  std::replace(options.port.device.begin(), options.port.device.end(), ';', ',');
  if (options.port.device.empty() || !ParseAddress(TextOption(settings, "address"), &options.endpoint)) {
    return Error(StatusCode::kInvalidArgument,
                 "--options: dpdk needs device=NAME;ARGUMENT=VALUE and address=IP or IP/PREFIX, for example "
                 "device=net_af_packet0;iface=eth1,address=10.9.0.1/24");
  }
  if (Status status = Numbers(settings, &options); !status.ok()) return tl::unexpected(status);
  const auto mac = MacOption(settings, "mac");
  if (!mac) return tl::unexpected(mac.error());
  options.port.mac = *mac;
  if (Status status = Gateway(settings, &options.endpoint); !status.ok()) return tl::unexpected(status);
  if (const std::string name = TextOption(settings, "congestion"); !name.empty()) options.endpoint.congestion = name;
  if (const std::string how = TextOption(settings, "neighbours"); how == "ask") {
    options.endpoint.ask_neighbours = true;
  } else if (!how.empty() && how != "handle") {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--options: neighbours: found \"{}\", allowed: ask, handle", how));
  }
  if (settings.streams != 0) options.endpoint.paths = settings.streams;
  if (settings.dead_after != 0) options.endpoint.dead_after = settings.dead_after;
  return options;
}

Result<std::unique_ptr<transport::Transport>> Make(const BackendSettings& settings) {
  if (settings.loopback) {
    return Error(StatusCode::kInvalidArgument,
                 "dpdk has one device a process, so both ends cannot be in this one: run weir-perf serve elsewhere and "
                 "name it with --server");
  }
  const auto options = Options(settings);
  if (!options) return tl::unexpected(options.error());
  return transport::MakeDpdkTransport(*options);
}

/// Whether a raw socket can be had; it is closed again.
Finding RawSockets() {
  const int socket_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_fd >= 0) {
    close(socket_fd);
    return {Weight::kGood, "raw sockets", "allowed: net_af_packet can be used", ""};
  }
  return {Weight::kAdvice, "raw sockets", std::strerror(errno),
          "net_af_packet needs CAP_NET_RAW and CAP_NET_ADMIN; net_memif needs no privilege"};
}

Finding XdpSockets() {
  const int socket_fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_fd >= 0) {
    close(socket_fd);
    return {Weight::kGood, "sockets of AF_XDP", "allowed: net_af_xdp can be used", ""};
  }
  return {Weight::kAdvice, "sockets of AF_XDP", std::strerror(errno),
          errno == EAFNOSUPPORT ? "this kernel is built without CONFIG_XDP_SOCKETS; use net_af_packet"
                                : "net_af_xdp needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; net_af_packet is slower "
                                  "and does without the last"};
}

std::vector<Finding> Examine(const BackendSettings&) {
  std::vector<Finding> findings;
  const Status there = transport::dpdk::EthdevAvailable();
  if (!there.ok()) {
    return {{Weight::kMissing, "libweir-ethdev.so", there.message(),
             "install libdpdk-dev where Weir is built, and build again"}};
  }
  findings.push_back({Weight::kGood, "libweir-ethdev.so", "loaded", ""});
  findings.push_back(RawSockets());
  findings.push_back(XdpSockets());
  return findings;
}

}  // namespace

Backend DpdkBackend() {
  return {"dpdk", "our own protocol over a device that DPDK drives; set it with --options", Make, Examine};
}

}  // namespace weir::tools
