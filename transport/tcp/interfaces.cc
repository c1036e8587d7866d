#include "transport/tcp/interfaces.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::transport {
namespace {

/// The rule of NCCL_SOCKET_IFNAME, taken apart.
struct Rule {
  bool exclude = false;
  bool whole = false;
  std::vector<std::string_view> names;

  explicit Rule(std::string_view text) {
    if (text.starts_with('^')) {
      exclude = true;
      text.remove_prefix(1);
    }
    if (text.starts_with('=')) {
      whole = true;
      text.remove_prefix(1);
    }
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(','), text.size());
      if (end > 0) names.push_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  bool Takes(std::string_view name) const {
    const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view entry) {
      return whole ? name == entry : name.starts_with(entry);
    });
    return named != exclude;
  }
};

/// Lower is better.
int Rank(const IpAddress& address) {
  return address.is_v4() ? 0 : address.is_link_local() ? 2 : 1;
}

std::vector<Interface> Matching(const std::vector<Interface>& found, const Rule& rule) {
  std::vector<Interface> taken;
  for (const Interface& candidate : found) {
    if (!rule.Takes(candidate.name)) continue;
    const auto same =
        std::find_if(taken.begin(), taken.end(), [&](const Interface& other) { return other.name == candidate.name; });
    if (same == taken.end()) {
      taken.push_back(candidate);
    } else if (Rank(candidate.address) < Rank(same->address)) {
      *same = candidate;
    }
  }
  if (taken.size() > kMaxInterfaces) taken.resize(kMaxInterfaces);
  return taken;
}

std::string Names(const std::vector<Interface>& interfaces) {
  std::string text;
  for (const Interface& one : interfaces) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, one.address.ToString());
  }
  return text.empty() ? "none" : text;
}

}  // namespace

Result<std::vector<Interface>> ListInterfaces() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return Error(StatusCode::kUnsupported, fmt::format("cannot list network interfaces: {}", std::strerror(errno)));
  }
  std::vector<Interface> found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    IpAddress address;
    if (at->ifa_addr->sa_family == AF_INET) {
      sockaddr_in in{};
      std::memcpy(&in, at->ifa_addr, sizeof(in));
      std::array<std::uint8_t, 4> bytes{};
      std::memcpy(bytes.data(), &in.sin_addr, bytes.size());
      address = IpAddress::V4(bytes);
    } else if (at->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 in{};
      std::memcpy(&in, at->ifa_addr, sizeof(in));
      std::array<std::uint8_t, 16> bytes{};
      std::memcpy(bytes.data(), &in.sin6_addr, bytes.size());
      address = IpAddress::V6(bytes);
    } else {
      continue;
    }
    found.push_back({at->ifa_name, if_nametoindex(at->ifa_name), address});
  }
  freeifaddrs(list);
  return found;
}

bool IsWithinHost(const std::vector<Interface>& found, const IpAddress& address) {
  if (address.is_loopback()) return true;
  // A link-local address is its link's own: another host may have the same on another link.
  if (address.is_link_local()) return false;
  return std::any_of(found.begin(), found.end(), [&](const Interface& one) { return one.address == address; });
}

Result<std::vector<Interface>> SelectInterfaces(const std::vector<Interface>& found, std::string_view rule,
                                                std::string_view family) {
  if (!family.empty() && family != "AF_INET" && family != "AF_INET6") {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("address family: found \"{}\", allowed: AF_INET, AF_INET6, or nothing for both", family));
  }
  std::vector<Interface> usable;
  std::copy_if(found.begin(), found.end(), std::back_inserter(usable),
               [&](const Interface& one) { return family.empty() || one.address.is_v4() == (family == "AF_INET"); });
  if (!rule.empty()) {
    auto taken = Matching(usable, Rule(rule));
    if (!taken.empty()) return taken;
    return Error(StatusCode::kNotFound, fmt::format("no network interface matches \"{}\"{}{}; there are: {}", rule,
                                                    family.empty() ? "" : " with ", family, Names(found)));
  }
  for (const char* fallback : {"ib", "^docker,lo", "docker", "lo"}) {
    auto taken = Matching(usable, Rule(fallback));
    if (!taken.empty()) return taken;
  }
  return Error(StatusCode::kNotFound, fmt::format("no network interface is up{}{}; there are: {}",
                                                  family.empty() ? "" : " with ", family, Names(found)));
}

}  // namespace weir::transport
