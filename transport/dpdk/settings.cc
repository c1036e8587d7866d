#include "transport/dpdk/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::transport {
namespace {

using dpdk::MacAddress;

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

/// "10.9.0.1" or "10.9.0.1/24".
bool ParseAddress(const std::string& text, dpdk::EndpointOptions* options) {
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
Result<MacAddress> MacOption(const KeyValues& settings, const std::string& key) {
  const std::string text = settings.Text(key);
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
  return tl::unexpected(settings.Wrong(
      key, text,
      key == "gateway" ? "an address, or six bytes as in 02:00:00:00:00:01" : "six bytes as in 02:00:00:00:00:01"));
}

/// An address, which is asked for, or a MAC address.
Status Gateway(const KeyValues& settings, dpdk::EndpointOptions* options) {
  if (const auto address = IpAddress::Parse(settings.Text("gateway"))) {
    options->gateway_address = *address;
    return Status::Ok();
  }
  const auto mac = MacOption(settings, "gateway");
  if (!mac) return mac.error();
  options->gateway = *mac;
  return Status::Ok();
}

Status Numbers(const KeyValues& settings, DpdkOptions* options) {
  const auto mtu = settings.Number("mtu", 0, 562, 9000);
  const auto port = settings.Number("port", options->endpoint.port, 1, 65'535);
  const auto memory_mb = settings.Number("memory_mb", options->port.memory_mb, 16, 65'536);
  const auto lose = settings.Number("lose_permille", 0, 0, 500);
  const auto twice = settings.Number("double_permille", 0, 0, 500);
  const auto reorder = settings.Number("reorder_permille", 0, 0, 500);
  const auto seed = settings.Number("seed", 1, 0, UINT64_MAX);
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

}  // namespace

Result<DpdkOptions> DpdkOptionsFrom(const KeyValues& settings) {
  if (Status status = settings.AllowOnly(kKeys); !status.ok()) return tl::unexpected(status);
  DpdkOptions options;
  options.port.device = settings.Text("device");
  std::replace(options.port.device.begin(), options.port.device.end(), ';', ',');
  if (options.port.device.empty() || !ParseAddress(settings.Text("address"), &options.endpoint)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{}: dpdk needs device=NAME;ARGUMENT=VALUE and address=IP or IP/PREFIX, for example "
                             "device=net_af_packet0;iface=eth1,address=10.9.0.1/24",
                             settings.source()));
  }
  if (Status status = Numbers(settings, &options); !status.ok()) return tl::unexpected(status);
  const auto mac = MacOption(settings, "mac");
  if (!mac) return tl::unexpected(mac.error());
  options.port.mac = *mac;
  if (Status status = Gateway(settings, &options.endpoint); !status.ok()) return tl::unexpected(status);
  if (const std::string name = settings.Text("congestion"); !name.empty()) options.endpoint.congestion = name;
  if (const std::string how = settings.Text("neighbours"); how == "ask") {
    options.endpoint.ask_neighbours = true;
  } else if (!how.empty() && how != "handle") {
    return tl::unexpected(settings.Wrong("neighbours", how, "ask, handle"));
  }
  return options;
}

}  // namespace weir::transport
