#include "transport/dpdk/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weir::transport::dpdk {
namespace {

constexpr std::uint16_t kTypeV4 = 0x0800;
constexpr std::uint16_t kTypeV6 = 0x86dd;
constexpr std::uint8_t kUdp = 17;
constexpr std::uint8_t kHops = 64;

void Put16(std::byte* at, std::size_t value) noexcept {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}

std::uint16_t Get16(const std::byte* at) noexcept {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(at[0]) << 8 | std::to_integer<unsigned>(at[1]));
}

/// 0 .. 0xffff; the sum was taken in the order of this host, and the result is in it too.
std::uint16_t Fold(std::uint64_t sum) noexcept {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

/// Addresses, protocol and length, which UDP's checksum covers as well.
std::uint64_t PseudoHeader(std::span<const std::byte> addresses, std::size_t udp_bytes) noexcept {
  std::byte rest[4] = {std::byte{0}, std::byte{kUdp}, std::byte{0}, std::byte{0}};
  Put16(rest + 2, udp_bytes);
  return ChecksumAdd(rest, ChecksumAdd(addresses, 0));
}

void PutChecksum(std::byte* at, std::uint64_t sum, bool zero_means_none) noexcept {
  std::uint16_t value = static_cast<std::uint16_t>(~Fold(sum));
  if (value == 0 && zero_means_none) value = 0xffff;
  std::memcpy(at, &value, 2);
}

void EncodeIp(const FramePath& path, std::span<std::byte> ip) noexcept {
  const std::size_t traffic = static_cast<std::size_t>(path.dscp) << 2 | static_cast<std::size_t>(path.ecn);
  std::byte* at = ip.data();
  if (path.source.is_v4()) {
    std::fill_n(at, 20, std::byte{0});
    at[0] = std::byte{0x45};
    at[1] = static_cast<std::byte>(traffic);
    Put16(at + 2, ip.size());
    Put16(at + 6, 0x4000);  // Never cut into fragments.
    at[8] = std::byte{kHops};
    at[9] = std::byte{kUdp};
    std::memcpy(at + 12, path.source.bytes().data(), 4);
    std::memcpy(at + 16, path.destination.bytes().data(), 4);
    PutChecksum(at + 10, ChecksumAdd(ip.first(20), 0), false);
    return;
  }
  Put16(at, 0x6000 | traffic << 4);
  Put16(at + 2, 0);
  Put16(at + 4, ip.size() - 40);
  at[6] = std::byte{kUdp};
  at[7] = std::byte{kHops};
  std::memcpy(at + 8, path.source.bytes().data(), 16);
  std::memcpy(at + 24, path.destination.bytes().data(), 16);
}

/// The header's bytes, or 0 with the verdict.
std::size_t DecodeV4(std::span<const std::byte>* ip, Datagram* datagram, FrameVerdict* verdict) noexcept {
  const std::byte* at = ip->data();
  *verdict = FrameVerdict::kMalformed;
  if (ip->size() < 20) return 0;
  const std::size_t length = Get16(at + 2);
  if (length < 20 + kUdpBytes || length > ip->size()) return 0;
  *verdict = FrameVerdict::kOther;
  // Options, fragments and other protocols.
  if (at[0] != std::byte{0x45} || (Get16(at + 6) & 0x3fff) != 0 || at[9] != std::byte{kUdp}) return 0;
  *verdict = FrameVerdict::kBadChecksum;
  if (Fold(ChecksumAdd(ip->first(20), 0)) != 0xffff) return 0;
  *ip = ip->first(length);
  std::array<std::uint8_t, 4> source{};
  std::array<std::uint8_t, 4> destination{};
  std::memcpy(source.data(), at + 12, 4);
  std::memcpy(destination.data(), at + 16, 4);
  datagram->path.source = IpAddress::V4(source);
  datagram->path.destination = IpAddress::V4(destination);
  datagram->path.dscp = static_cast<std::uint8_t>(std::to_integer<unsigned>(at[1]) >> 2);
  datagram->path.ecn = static_cast<Ecn>(std::to_integer<unsigned>(at[1]) & 3);
  return 20;
}

std::size_t DecodeV6(std::span<const std::byte>* ip, Datagram* datagram, FrameVerdict* verdict) noexcept {
  const std::byte* at = ip->data();
  *verdict = FrameVerdict::kMalformed;
  if (ip->size() < 40 + kUdpBytes || Get16(at + 4) < kUdpBytes || std::size_t{40} + Get16(at + 4) > ip->size())
    return 0;
  *verdict = FrameVerdict::kOther;
  if ((Get16(at) >> 12) != 6 || at[6] != std::byte{kUdp}) return 0;
  *ip = ip->first(std::size_t{40} + Get16(at + 4));
  std::array<std::uint8_t, 16> source{};
  std::array<std::uint8_t, 16> destination{};
  std::memcpy(source.data(), at + 8, 16);
  std::memcpy(destination.data(), at + 24, 16);
  datagram->path.source = IpAddress::V6(source);
  datagram->path.destination = IpAddress::V6(destination);
  const unsigned traffic = static_cast<unsigned>(Get16(at)) >> 4 & 0xff;
  datagram->path.dscp = static_cast<std::uint8_t>(traffic >> 2);
  datagram->path.ecn = static_cast<Ecn>(traffic & 3);
  return 40;
}

/// The part of an IP header that has both addresses.
std::span<const std::byte> Addresses(std::span<const std::byte> ip, bool v4) noexcept {
  return v4 ? ip.subspan(12, 8) : ip.subspan(8, 32);
}

}  // namespace

std::uint64_t ChecksumAdd(std::span<const std::byte> bytes, std::uint64_t sum) noexcept {
  // 32 bits at a time into 64: folding to 16 bits later gives the same (RFC 1071, section 2), in either byte order.
  // Four of them at once, two in the low and two in the high half of a pair of words; two pairs, so that no addition
  // waits for the one before. A frame is 1500 bytes of this twice, so it counts.
  using Pair = std::uint64_t __attribute__((vector_size(16)));
  constexpr Pair kLow{0xffff'ffff, 0xffff'ffff};
  Pair even{};
  Pair odd{};
  std::size_t i = 0;
  for (; i + 32 <= bytes.size(); i += 32) {
    Pair first;
    Pair second;
    std::memcpy(&first, bytes.data() + i, 16);
    std::memcpy(&second, bytes.data() + i + 16, 16);
    even += (first & kLow) + (second & kLow);
    odd += (first >> 32) + (second >> 32);
  }
  sum += even[0] + even[1] + odd[0] + odd[1];
  for (; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data() + i, 4);
    sum += word;
  }
  std::byte tail[4]{};
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(i), bytes.end(), tail);
  std::uint32_t word;
  std::memcpy(&word, tail, 4);
  return sum + word;
}

void EncodeFrame(const FramePath& path, std::span<std::byte> frame) noexcept {
  std::byte* at = frame.data();
  std::copy(path.destination_mac.begin(), path.destination_mac.end(), at);
  std::copy(path.source_mac.begin(), path.source_mac.end(), at + 6);
  const bool v4 = path.source.is_v4();
  Put16(at + 12, v4 ? kTypeV4 : kTypeV6);
  const std::span<std::byte> ip = frame.subspan(kEthernetBytes);
  EncodeIp(path, ip);
  const std::span<std::byte> udp = ip.subspan(v4 ? 20 : 40);
  Put16(udp.data(), path.source_port);
  Put16(udp.data() + 2, path.destination_port);
  Put16(udp.data() + 4, udp.size());
  Put16(udp.data() + 6, 0);
  PutChecksum(udp.data() + 6, ChecksumAdd(udp, PseudoHeader(Addresses(ip, v4), udp.size())), true);
}

FrameVerdict DecodeFrame(std::span<const std::byte> frame, Datagram* datagram) noexcept {
  if (frame.size() < kEthernetBytes) return FrameVerdict::kMalformed;
  const std::uint16_t type = Get16(frame.data() + 12);
  if (type != kTypeV4 && type != kTypeV6) return FrameVerdict::kOther;
  std::copy_n(frame.begin(), 6, datagram->path.destination_mac.begin());
  std::copy_n(frame.begin() + 6, 6, datagram->path.source_mac.begin());
  std::span<const std::byte> ip = frame.subspan(kEthernetBytes);
  FrameVerdict verdict = FrameVerdict::kOk;
  const std::size_t header = type == kTypeV4 ? DecodeV4(&ip, datagram, &verdict) : DecodeV6(&ip, datagram, &verdict);
  if (header == 0) return verdict;
  const std::span<const std::byte> udp = ip.subspan(header);
  if (Get16(udp.data() + 4) != udp.size()) return FrameVerdict::kMalformed;
  // A checksum of 0 says that there is none. Our peers always have one.
  const std::uint64_t sum = ChecksumAdd(udp, PseudoHeader(Addresses(ip, type == kTypeV4), udp.size()));
  if (Get16(udp.data() + 6) == 0 || Fold(sum) != 0xffff) return FrameVerdict::kBadChecksum;
  datagram->path.source_port = Get16(udp.data());
  datagram->path.destination_port = Get16(udp.data() + 2);
  datagram->payload = udp.subspan(kUdpBytes);
  return FrameVerdict::kOk;
}

}  // namespace weir::transport::dpdk
