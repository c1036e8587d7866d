#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "coflow/ip_address.h"
#include "coflow/status.h"

/// Which address of a port is used. Pure: the table is given.
namespace weir::transport::rdma {

using Gid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { kInfiniband, kRoceV1, kRoceV2 };

struct GidEntry {
  std::uint32_t index = 0;
  Gid gid{};
  GidType type = GidType::kInfiniband;
  unsigned interface_index = 0;  ///< Of the network interface that it belongs to; 0: none.
};

/// A network, "10.0.0.0/8". The default has every address.
struct Subnet {
  IpAddress address;
  int bits = -1;  ///< Below 0: every address.

  /// Empty: every address. Error kInvalidArgument with the text found.
  static Result<Subnet> Parse(const std::string& text);
  bool Has(const IpAddress& other) const;
};

struct GidRule {
  int index = -1;  ///< This one and no other; below 0: choose.
  Subnet subnet;
  std::optional<IpAddress> peer;  ///< Whom it is to reach, if that is known.
  bool prefers_v1 = false;        ///< RoCE v1 goes before v2,
  bool prefers_ipv6 = false;      ///< and IPv6 before IPv4.
};

struct GidChoice {
  GidEntry entry;
  std::string why;  ///< For people: "10.0.0.1, RoCE v2, entry 3 of 4".
};

/// The IP address that the 16 bytes stand for; what they are on RoCE.
IpAddress AddressOf(const Gid& gid);
/// How many of the first bits are the same; 0 for addresses of different families.
int CommonBits(const IpAddress& a, const IpAddress& b);

/// Of `entries`, those that are not zero: the one that the rule names; else RoCE v2 before the rest, then IPv4 before
/// IPv6 before link-local (or as the rule prefers), then the one that is closest to the peer, then the first. Error
/// kNotFound with the entries that there are, when none fits the rule.
Result<GidChoice> ChooseGid(std::span<const GidEntry> entries, const GidRule& rule);

}  // namespace weir::transport::rdma
