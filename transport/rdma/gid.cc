#include "transport/rdma/gid.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <tuple>

namespace weir::transport::rdma {
namespace {

const char* TypeName(GidType type) {
  switch (type) {
    case GidType::kInfiniband:
      return "InfiniBand";
    case GidType::kRoceV1:
      return "RoCE v1";
    case GidType::kRoceV2:
      return "RoCE v2";
  }
  return "";
}

bool IsZero(const Gid& gid) {
  return std::all_of(gid.begin(), gid.end(), [](std::uint8_t byte) { return byte == 0; });
}

/// Lower is better.
auto Rank(const GidEntry& entry, const GidRule& rule) {
  const IpAddress address = AddressOf(entry.gid);
  // A peer of the other family cannot be reached from it.
  const bool reaches = !rule.peer || address.is_v4() == rule.peer->is_v4();
  const int family = address.is_link_local() ? 2 : address.is_v4() == rule.prefers_ipv6 ? 1 : 0;
  const int apart = rule.peer ? 128 - CommonBits(address, *rule.peer) : 0;
  return std::tuple(entry.type == (rule.prefers_v1 ? GidType::kRoceV1 : GidType::kRoceV2) ? 0 : 1, reaches ? 0 : 1,
                    family, apart, entry.index);
}

std::string Describe(const GidEntry& entry) {
  return fmt::format("{} ({}, entry {})", AddressOf(entry.gid).ToString(), TypeName(entry.type), entry.index);
}

}  // namespace

Result<Subnet> Subnet::Parse(const std::string& text) {
  if (text.empty()) return Subnet{};
  const std::size_t slash = text.find('/');
  Subnet subnet;
  if (const auto address = IpAddress::Parse(text.substr(0, slash)); address && slash != std::string::npos) {
    subnet.address = *address;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + slash + 1, last, subnet.bits);
    if (error == std::errc() && end == last && subnet.bits >= 0 && subnet.bits <= (address->is_v4() ? 32 : 128)) {
      return subnet;
    }
  }
  return Error(StatusCode::kInvalidArgument,
               fmt::format("network of addresses: found \"{}\", allowed: an address and a number of bits, as in "
                           "10.0.0.0/8",
                           text));
}

bool Subnet::Has(const IpAddress& other) const {
  if (bits < 0) return true;
  return address.is_v4() == other.is_v4() && CommonBits(address, other) >= bits;
}

IpAddress AddressOf(const Gid& gid) {
  return IpAddress::V6(gid);
}

int CommonBits(const IpAddress& a, const IpAddress& b) {
  if (a.is_v4() != b.is_v4()) return 0;
  const std::size_t size = a.is_v4() ? 4 : 16;
  for (std::size_t i = 0; i < size; ++i) {
    const auto differ = static_cast<std::uint8_t>(a.bytes()[i] ^ b.bytes()[i]);
    if (differ != 0) return static_cast<int>(8 * i) + std::countl_zero(differ);
  }
  return static_cast<int>(8 * size);
}

Result<GidChoice> ChooseGid(std::span<const GidEntry> entries, const GidRule& rule) {
  const GidEntry* best = nullptr;
  std::string there;
  for (const GidEntry& entry : entries) {
    if (IsZero(entry.gid)) continue;
    there += (there.empty() ? "" : ", ") + Describe(entry);
    if (rule.index >= 0 ? static_cast<int>(entry.index) != rule.index : !rule.subnet.Has(AddressOf(entry.gid)))
      continue;
    if (best == nullptr || Rank(entry, rule) < Rank(*best, rule)) best = &entry;
  }
  if (best != nullptr) return GidChoice{*best, fmt::format("{} of {}", Describe(*best), there)};
  const std::string wanted = rule.index >= 0 ? fmt::format("entry {}", rule.index)
                             : rule.subnet.bits >= 0
                                 ? fmt::format("one in {}/{}", rule.subnet.address.ToString(), rule.subnet.bits)
                                 : "any";
  return Error(StatusCode::kNotFound, fmt::format("no address of the port fits: wanted {}, there are: {}", wanted,
                                                  there.empty() ? "none" : there));
}

}  // namespace weir::transport::rdma
