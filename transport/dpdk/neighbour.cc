#include "transport/dpdk/neighbour.h"

#include <algorithm>
#include <cstring>

#include "transport/dpdk/frame.h"

namespace weir::transport::dpdk {
namespace {

constexpr std::size_t kArpBytes = 60;  ///< The shortest frame that Ethernet knows.
constexpr std::uint8_t kIcmp6 = 58;
constexpr std::uint8_t kSolicitation = 135;
constexpr std::uint8_t kAdvertisement = 136;
constexpr std::size_t kIcmpBytes = 32;  ///< With the one option that we write.

void Put16(std::byte* at, std::size_t value) noexcept {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}

std::size_t Get16(const std::byte* at) noexcept {
  return std::to_integer<std::size_t>(at[0]) << 8 | std::to_integer<std::size_t>(at[1]);
}

IpAddress AddressAt(const std::byte* at, bool v4) noexcept {
  std::array<std::uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), at, v4 ? 4 : 16);
  return v4 ? IpAddress::V4(std::span(bytes).first<4>()) : IpAddress::V6(bytes);
}

MacAddress MacAt(const std::byte* at) noexcept {
  MacAddress mac;
  std::memcpy(mac.data(), at, mac.size());
  return mac;
}

bool DecodeArp(std::span<const std::byte> frame, NeighbourMessage* message) noexcept {
  if (frame.size() < kEthernetBytes + 28) return false;
  const std::byte* at = frame.data() + kEthernetBytes;
  // Ethernet, IPv4, and the lengths of their addresses.
  constexpr std::array<std::byte, 6> kForm{std::byte{0}, std::byte{1}, std::byte{8},
                                           std::byte{0}, std::byte{6}, std::byte{4}};
  if (!std::equal(kForm.begin(), kForm.end(), at)) return false;
  const std::size_t operation = Get16(at + 6);
  if (operation != 1 && operation != 2) return false;
  *message = {operation == 1, AddressAt(at + 14, true), MacAt(at + 8), AddressAt(at + 24, true)};
  return true;
}

std::size_t EncodeArp(const NeighbourMessage& message, const MacAddress& to, std::byte* out) noexcept {
  std::fill_n(out, kArpBytes, std::byte{0});
  if (message.asks) {
    std::fill_n(out, 6, std::byte{0xff});
  } else {
    std::memcpy(out, to.data(), 6);
    std::memcpy(out + kEthernetBytes + 18, to.data(), 6);
  }
  std::memcpy(out + 6, message.sender_mac.data(), 6);
  Put16(out + 12, 0x0806);
  std::byte* at = out + kEthernetBytes;
  Put16(at, 1);
  Put16(at + 2, 0x0800);
  Put16(at + 4, 0x0604);
  Put16(at + 6, message.asks ? 1 : 2);
  std::memcpy(at + 8, message.sender_mac.data(), 6);
  std::memcpy(at + 14, message.sender.bytes().data(), 4);
  std::memcpy(at + 24, message.target.bytes().data(), 4);
  return kArpBytes;
}

std::uint64_t IcmpSum(std::span<const std::byte> ip, std::size_t size) noexcept {
  std::byte rest[8]{};
  Put16(rest + 2, size);
  rest[7] = std::byte{kIcmp6};
  return ChecksumAdd(ip.subspan(40, size), ChecksumAdd(rest, ChecksumAdd(ip.subspan(8, 32), 0)));
}

std::uint16_t Folded(std::uint64_t sum) noexcept {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// The link-layer address in the option of that type, or null.
const std::byte* LinkAddress(std::span<const std::byte> options, std::uint8_t type) noexcept {
  while (options.size() >= 8) {
    const std::size_t size = 8 * std::to_integer<std::size_t>(options[1]);
    if (size == 0 || size > options.size()) return nullptr;
    if (std::to_integer<std::uint8_t>(options[0]) == type && size == 8) return options.data() + 2;
    options = options.subspan(size);
  }
  return nullptr;
}

bool DecodeDiscovery(std::span<const std::byte> frame, NeighbourMessage* message) noexcept {
  const std::span<const std::byte> ip = frame.subspan(kEthernetBytes);
  if (ip.size() < 64 || std::to_integer<unsigned>(ip[0]) >> 4 != 6) return false;
  const std::size_t size = Get16(ip.data() + 4);
  // A hop limit of 255 says that no router has passed it on.
  if (ip[6] != std::byte{kIcmp6} || ip[7] != std::byte{255} || size < 24 || 40 + size > ip.size()) return false;
  const std::span<const std::byte> icmp = ip.subspan(40, size);
  const auto type = std::to_integer<std::uint8_t>(icmp[0]);
  if ((type != kSolicitation && type != kAdvertisement) || icmp[1] != std::byte{0}) return false;
  if (Folded(IcmpSum(ip, size)) != 0xffff) return false;
  const bool asks = type == kSolicitation;
  const std::byte* link = LinkAddress(icmp.subspan(24), asks ? 1 : 2);
  const IpAddress source = AddressAt(ip.data() + 8, false);
  const IpAddress target = AddressAt(icmp.data() + 8, false);
  *message = {asks, asks ? source : target, link != nullptr ? MacAt(link) : MacAt(frame.data() + 6),
              asks ? target : AddressAt(ip.data() + 24, false)};
  return true;
}

std::size_t EncodeDiscovery(const NeighbourMessage& message, const MacAddress& to, std::byte* out) noexcept {
  std::fill_n(out, kNeighbourFrameBytes, std::byte{0});
  Put16(out + 12, 0x86dd);
  std::byte* ip = out + kEthernetBytes;
  ip[0] = std::byte{0x60};
  Put16(ip + 4, kIcmpBytes);
  ip[6] = std::byte{kIcmp6};
  ip[7] = std::byte{255};
  std::memcpy(ip + 8, message.sender.bytes().data(), 16);
  const std::byte* target = reinterpret_cast<const std::byte*>(message.target.bytes().data());
  const bool to_all = !message.asks && std::all_of(target, target + 16, [](std::byte b) { return b == std::byte{0}; });
  if (message.asks || to_all) {
    // The group of those whose address ends like this one (RFC 4291, section 2.7.1), or of all nodes: ff02::1.
    constexpr std::array<std::byte, 13> kGroup{std::byte{0xff}, std::byte{2},   {}, {}, {}, {}, {}, {}, {}, {}, {},
                                               std::byte{1},    std::byte{0xff}};
    if (message.asks) {
      std::copy(kGroup.begin(), kGroup.end(), ip + 24);
      std::memcpy(ip + 37, target + 13, 3);
    } else {
      ip[24] = std::byte{0xff};
      ip[25] = std::byte{2};
      ip[39] = std::byte{1};
    }
    Put16(out, 0x3333);
    std::memcpy(out + 2, ip + 36, 4);
  } else {
    std::memcpy(ip + 24, target, 16);
    std::memcpy(out, to.data(), 6);
  }
  std::memcpy(out + 6, message.sender_mac.data(), 6);
  std::byte* icmp = ip + 40;
  icmp[0] = std::byte{message.asks ? kSolicitation : kAdvertisement};
  if (!message.asks) icmp[4] = to_all ? std::byte{0x20} : std::byte{0x60};  // Overrides; and it was asked for.
  std::memcpy(icmp + 8, message.asks ? target : ip + 8, 16);
  icmp[24] = std::byte{message.asks ? std::uint8_t{1} : std::uint8_t{2}};
  icmp[25] = std::byte{1};
  std::memcpy(icmp + 26, message.sender_mac.data(), 6);
  const auto sum = static_cast<std::uint16_t>(~Folded(IcmpSum(std::span(ip, 72), kIcmpBytes)));
  std::memcpy(icmp + 2, &sum, 2);
  return kNeighbourFrameBytes;
}

}  // namespace

bool DecodeNeighbour(std::span<const std::byte> frame, NeighbourMessage* message) noexcept {
  if (frame.size() < kEthernetBytes) return false;
  const std::size_t type = Get16(frame.data() + 12);
  if (type == 0x0806) return DecodeArp(frame, message);
  return type == 0x86dd && DecodeDiscovery(frame, message);
}

std::size_t EncodeNeighbour(const NeighbourMessage& message, const MacAddress& to, std::byte* out) noexcept {
  return message.sender.is_v4() ? EncodeArp(message, to, out) : EncodeDiscovery(message, to, out);
}

bool NeighbourTable::Want(const IpAddress& address) {
  if (at_.size() >= kMax && !wanted(address)) return false;
  at_.try_emplace(address);
  return true;
}

const MacAddress* NeighbourTable::Find(const IpAddress& address) const noexcept {
  const auto at = at_.find(address);
  return at == at_.end() || !at->second.known ? nullptr : &at->second.mac;
}

bool NeighbourTable::Learn(const IpAddress& address, const MacAddress& mac) noexcept {
  const auto at = at_.find(address);
  if (at == at_.end() || (at->second.known && at->second.mac == mac)) return false;
  at->second = {true, mac};
  return true;
}

bool SamePrefix(const IpAddress& a, const IpAddress& b, std::uint32_t bits) noexcept {
  if (a.is_v4() != b.is_v4()) return false;
  for (std::uint32_t bit = 0; bit < bits; ++bit) {
    const unsigned mask = 0x80u >> (bit % 8);
    if ((a.bytes()[bit / 8] & mask) != (b.bytes()[bit / 8] & mask)) return false;
  }
  return true;
}

}  // namespace weir::transport::dpdk
