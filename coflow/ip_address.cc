#include "coflow/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace weir {
namespace {

constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

Result<IpAddress> IpAddress::Parse(std::string_view text) {
  // inet_pton stops at a NUL, and what stands behind it would be ignored.
  const std::string owned(text.substr(0, text.find('\0')));
  const bool whole = owned.size() == text.size();
  std::array<std::uint8_t, 4> v4{};
  if (whole && inet_pton(AF_INET, owned.c_str(), v4.data()) == 1) return V4(v4);
  std::array<std::uint8_t, 16> v6{};
  if (whole && inet_pton(AF_INET6, owned.c_str(), v6.data()) == 1) return V6(v6);
  return Error(StatusCode::kInvalidArgument,
               "\"" + owned + "\" is not an IPv4 or IPv6 address (expected for example 10.0.0.1 or fd00::1)");
}

IpAddress IpAddress::V4(std::span<const std::uint8_t, 4> network_order) {
  IpAddress address;
  std::copy(network_order.begin(), network_order.end(), address.bytes_.begin());
  return address;
}

IpAddress IpAddress::V6(std::span<const std::uint8_t, 16> network_order) {
  if (std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), network_order.begin())) {
    return V4(network_order.subspan<12, 4>());
  }
  IpAddress address;
  address.v4_ = false;
  std::copy(network_order.begin(), network_order.end(), address.bytes_.begin());
  return address;
}

bool IpAddress::is_loopback() const {
  if (v4_) return bytes_[0] == 127;
  return std::all_of(bytes_.begin(), bytes_.end() - 1, [](std::uint8_t b) { return b == 0; }) && bytes_[15] == 1;
}

bool IpAddress::is_link_local() const {
  return !v4_ && bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80;
}

std::string IpAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(v4_ ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
  return text.data();
}

}  // namespace weir
