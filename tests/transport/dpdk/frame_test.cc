#include "transport/dpdk/frame.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weir::transport::dpdk {
namespace {

FramePath Path(bool v4) {
  FramePath path;
  path.source_mac = {std::byte{2}, {}, {}, {}, {}, std::byte{1}};
  path.destination_mac = {std::byte{2}, {}, {}, {}, {}, std::byte{2}};
  path.source = IpAddress::Parse(v4 ? "10.0.0.1" : "fd00::1").value();
  path.destination = IpAddress::Parse(v4 ? "10.0.0.2" : "fd00::2").value();
  path.source_port = 47'801;
  path.destination_port = 47'800;
  path.dscp = 46;
  path.ecn = Ecn::kCapable;
  return path;
}

std::vector<std::byte> Encode(bool v4, std::size_t payload) {
  std::vector<std::byte> frame(FrameOverhead(v4) + payload);
  for (std::size_t i = 0; i < payload; ++i) frame[FrameOverhead(v4) + i] = static_cast<std::byte>(i * 7 + 1);
  EncodeFrame(Path(v4), frame);
  return frame;
}

class Frame : public testing::TestWithParam<bool> {};

TEST_P(Frame, WhatWasEncodedIsUnderstood) {
  for (const std::size_t size : {0u, 1u, 2u, 3u, 5u, 100u, 1472u, 8952u}) {
    const auto frame = Encode(GetParam(), size);
    Datagram datagram;
    ASSERT_EQ(DecodeFrame(frame, &datagram), FrameVerdict::kOk) << size;
    EXPECT_EQ(datagram.payload.size(), size);
    EXPECT_EQ(datagram.path.source, Path(GetParam()).source);
    EXPECT_EQ(datagram.path.destination, Path(GetParam()).destination);
    EXPECT_EQ(datagram.path.source_mac, Path(GetParam()).source_mac);
    EXPECT_EQ(datagram.path.destination_mac, Path(GetParam()).destination_mac);
    EXPECT_EQ(datagram.path.source_port, 47'801);
    EXPECT_EQ(datagram.path.destination_port, 47'800);
    EXPECT_EQ(datagram.path.dscp, 46);
    EXPECT_EQ(datagram.path.ecn, Ecn::kCapable);
  }
}

TEST_P(Frame, PaddingBehindIsNotPartOfThePayload) {
  auto frame = Encode(GetParam(), 3);
  frame.resize(frame.size() + 20, std::byte{0xff});
  Datagram datagram;
  ASSERT_EQ(DecodeFrame(frame, &datagram), FrameVerdict::kOk);
  EXPECT_EQ(datagram.payload.size(), 3u);
}

TEST_P(Frame, EveryBitThatIsTurnedBehindEthernetIsNoticed) {
  const auto good = Encode(GetParam(), 33);
  const std::size_t ip = kEthernetBytes;
  for (std::size_t bit = 8 * ip; bit < 8 * good.size(); ++bit) {
    auto frame = good;
    frame[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    Datagram datagram;
    const FrameVerdict verdict = DecodeFrame(frame, &datagram);
    // IPv6 has no checksum of its own: traffic class, flow label and hop limit are for routers to change.
    const bool free_to_change = !GetParam() && (bit / 8 < ip + 4 || bit / 8 == ip + 7);
    EXPECT_TRUE(free_to_change || verdict != FrameVerdict::kOk) << "bit " << bit;
  }
}

TEST_P(Frame, EveryLengthThatIsTooShortIsRefused) {
  const auto good = Encode(GetParam(), 33);
  for (std::size_t size = 0; size < good.size(); ++size) {
    Datagram datagram;
    EXPECT_NE(DecodeFrame(std::span(good).first(size), &datagram), FrameVerdict::kOk) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Frame, testing::Values(true, false),
                         [](const auto& param) { return param.param ? "ipv4" : "ipv6"; });

TEST(Checksum, IsTheOneOfTheStandard) {
  // RFC 1071, section 3: 00 01 f2 03 f4 f5 f6 f7 adds up to ddf2.
  const std::array<std::uint8_t, 8> bytes{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  std::uint64_t sum = ChecksumAdd(std::as_bytes(std::span(bytes)), 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  EXPECT_EQ(sum, 0xf2ddu) << "in the order of a little-endian host";
}

TEST(Checksum, OfEveryLengthIsTheSumOfItsPairs) {
  std::vector<std::byte> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 131 + 250);
  const auto fold = [](std::uint64_t sum) {
    while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
    return sum;
  };
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    std::uint64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) expected += std::to_integer<std::uint64_t>(bytes[i]) << (i % 2 * 8);
    EXPECT_EQ(fold(ChecksumAdd(std::span(bytes).first(size), 0)), fold(expected)) << size;
  }
}

TEST(Frame, OptionsFragmentsAndOtherProtocolsAreForOthers) {
  const auto good = Encode(true, 20);
  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto frame = good;
    frame[at] = static_cast<std::byte>(value);
    Datagram datagram;
    return DecodeFrame(frame, &datagram);
  };
  EXPECT_EQ(with(12, 0x86), FrameVerdict::kOther);  // Another kind of frame.
  EXPECT_EQ(with(14, 0x46), FrameVerdict::kOther);  // Options.
  EXPECT_EQ(with(20, 0x20), FrameVerdict::kOther);  // More fragments.
  EXPECT_EQ(with(23, 6), FrameVerdict::kOther);     // TCP.
  EXPECT_EQ(with(40, 0), FrameVerdict::kBadChecksum);
}

}  // namespace
}  // namespace weir::transport::dpdk
