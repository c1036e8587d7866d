#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "coflow/status.h"

namespace weir {

/// An IPv4 or IPv6 address without port or scope. An IPv4 address mapped into IPv6 (::ffff:a.b.c.d) is the IPv4
/// address. A value: copyable, ordered (IPv4 before IPv6), hashable, any thread.
class IpAddress {
 public:
  /// 0.0.0.0.
  IpAddress() = default;
  /// Error kInvalidArgument with the text found if it is not an address.
  static Result<IpAddress> Parse(std::string_view text);
  static IpAddress V4(std::span<const std::uint8_t, 4> network_order);
  static IpAddress V6(std::span<const std::uint8_t, 16> network_order);

  bool is_v4() const { return v4_; }
  bool is_loopback() const;
  /// An IPv6 address of fe80::/10 (RFC 4291, 2.5.6): another host may have the same on another link. IPv4 has none
  /// here.
  bool is_link_local() const;
  std::string ToString() const;
  /// Network order; IPv4 fills the first four bytes, the rest is zero.
  const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }

  friend std::strong_ordering operator<=>(const IpAddress& a, const IpAddress& b) {
    if (a.v4_ != b.v4_) return a.v4_ ? std::strong_ordering::less : std::strong_ordering::greater;
    return a.bytes_ <=> b.bytes_;
  }
  friend bool operator==(const IpAddress&, const IpAddress&) = default;

 private:
  bool v4_ = true;
  std::array<std::uint8_t, 16> bytes_{};
};

}  // namespace weir

template <>
struct std::hash<weir::IpAddress> {
  std::size_t operator()(const weir::IpAddress& address) const noexcept {
    return std::hash<std::string_view>{}(
        {reinterpret_cast<const char*>(address.bytes().data()), address.is_v4() ? 4u : 16u});
  }
};
