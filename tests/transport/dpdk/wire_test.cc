#include "transport/dpdk/wire.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::transport::dpdk {
namespace {

constexpr std::uint64_t kTo = 0x0123456789abcdef;

TEST(Handle, ComesBackAsItWas) {
  Place place;
  place.mac = {std::byte{2}, {}, {}, {}, {}, std::byte{9}};
  place.address = IpAddress::Parse("fd00::7").value();
  place.port = 47'800;
  place.nonce[15] = std::byte{3};
  place.identity = "right/2";
  const auto again = DecodeHandle(EncodeHandle(place));
  ASSERT_TRUE(again.has_value()) << again.error().ToString();
  EXPECT_EQ(again->mac, place.mac);
  EXPECT_EQ(again->address, place.address);
  EXPECT_EQ(again->port, place.port);
  EXPECT_EQ(again->nonce, place.nonce);
  EXPECT_EQ(again->identity, place.identity);
  EXPECT_EQ(EncodeHandle(place).bytes[kPlaceBytes + 5], std::byte{9}) << "the port's address comes last";
}

TEST(Handle, AnotherVersionFamilyOrKindIsRefusedByName) {
  Place place;
  place.port = 1;
  const Handle good = EncodeHandle(place);
  Handle handle = good;
  handle.bytes[4] = std::byte{9};
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kProtocol);
  EXPECT_NE(DecodeHandle(handle).error().message().find("version 9"), std::string::npos);
  handle = good;
  handle.bytes[5] = std::byte{0};  // As a handle of TCP.
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kInvalidArgument);
  handle = good;
  handle.bytes[6] = std::byte{5};
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kInvalidArgument);
  handle = good;
  handle.bytes[8] = std::byte{0};
  EXPECT_EQ(DecodeHandle(handle).error().code(), StatusCode::kInvalidArgument) << "port 0";
}

TEST(Header, MagicComesBeforeVersionAndVersionBeforeLength) {
  std::vector<std::byte> packet(kPingBytes);
  EncodePing(kTo, Header::kAnswer, {7}, packet.data());
  Header header;
  ASSERT_EQ(DecodeHeader(packet, &header), HeaderVerdict::kOk);
  EXPECT_EQ(header.kind, Kind::kPing);
  EXPECT_EQ(header.to, kTo);
  EXPECT_EQ(header.flags, Header::kAnswer);
  auto bad = packet;
  bad[4] = std::byte{1};  // Length,
  EXPECT_EQ(DecodeHeader(bad, &header), HeaderVerdict::kMalformed);
  bad[2] = std::byte{9};  // version,
  EXPECT_EQ(DecodeHeader(bad, &header), HeaderVerdict::kOtherVersion);
  EXPECT_EQ(header.to, kTo) << "readable whatever the version";
  bad[0] = std::byte{0};  // magic.
  EXPECT_EQ(DecodeHeader(bad, &header), HeaderVerdict::kNotOurs);
  bad = packet;
  bad[3] = std::byte{0};
  EXPECT_EQ(DecodeHeader(bad, &header), HeaderVerdict::kMalformed);
  bad[3] = std::byte{7};
  EXPECT_EQ(DecodeHeader(bad, &header), HeaderVerdict::kMalformed);
  EXPECT_EQ(DecodeHeader(std::span(packet).first(15), &header), HeaderVerdict::kNotOurs);
}

TEST(Greeting, ComesBackAsItWasAndRefusesNonsense) {
  Greeting greeting;
  greeting.listener[0] = std::byte{1};
  greeting.channel[1] = std::byte{2};
  greeting.from = 77;
  greeting.packet_max = 1472;
  greeting.slots = 4;
  greeting.identity = "left/1";
  std::vector<std::byte> packet(kGreetingBytes);
  ASSERT_EQ(EncodeGreeting(Kind::kHello, kTo, greeting, packet.data()), packet.size());
  const auto again = DecodeGreeting(packet);
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->listener, greeting.listener);
  EXPECT_EQ(again->channel, greeting.channel);
  EXPECT_EQ(again->from, 77u);
  EXPECT_EQ(again->packet_max, 1472);
  EXPECT_EQ(again->slots, 4);
  EXPECT_EQ(again->identity, "left/1");
  const auto with = [&](std::size_t at, int value) {
    auto bad = packet;
    bad[at] = static_cast<std::byte>(value);
    return DecodeGreeting(bad).has_value();
  };
  EXPECT_FALSE(with(kHeaderBytes + 32, 0)) << "no number of the channel";
  EXPECT_FALSE(with(kHeaderBytes + 41, 0)) << "packets of 192 bytes";
  EXPECT_FALSE(with(kHeaderBytes + 42, 5)) << "an unknown verdict";
  EXPECT_FALSE(with(kHeaderBytes + 43, 0)) << "no slots";
  EXPECT_FALSE(with(kHeaderBytes + 43, 9)) << "too many slots";
  packet.pop_back();
  EXPECT_EQ(DecodeGreeting(packet).error().code(), StatusCode::kProtocol);
}

TEST(DataHeader, ComesBackAsItWas) {
  const Data data{5, 6, 7, 3, 10, 100, 110, 999};
  std::vector<std::byte> packet(kDataBytes + 10);
  ASSERT_EQ(EncodeData(kTo, 0, data, packet.data()), kDataBytes);
  Data again;
  ASSERT_TRUE(DecodeData(packet, &again));
  EXPECT_EQ(again.sequence, 5u);
  EXPECT_EQ(again.grants_seen, 6u);
  EXPECT_EQ(again.receive, 7u);
  EXPECT_EQ(again.slot, 3);
  EXPECT_EQ(again.size, 10);
  EXPECT_EQ(again.offset, 100u);
  EXPECT_EQ(again.total, 110u);
  EXPECT_EQ(again.sent_at, 999u);
  EXPECT_FALSE(DecodeData(std::span(packet).first(kDataBytes + 9), &again)) << "less data than it says";
}

TEST(DataHeader, WhatLiesBeyondItsMessageIsRefused) {
  const auto refused = [](const Data& data) {
    std::vector<std::byte> packet(kDataBytes + data.size);
    EncodeData(kTo, 0, data, packet.data());
    Data again;
    return !DecodeData(packet, &again);
  };
  EXPECT_TRUE(refused({0, 0, 0, 0, 10, 101, 110, 0}));
  EXPECT_TRUE(refused({0, 0, 0, 0, 10, ~Bytes{0} - 5, 110, 0}));
  EXPECT_TRUE(refused({0, 0, 0, 0, 10, 0, kMaxMessageBytes + 1, 0}));
  EXPECT_TRUE(refused({0, 0, 0, 8, 10, 0, 10, 0})) << "slot 8";
  EXPECT_TRUE(refused({0, 0, 0, 0, 0, 0, 10, 0})) << "nothing of a message of something";
  EXPECT_FALSE(refused({0, 0, 0, 0, 0, 0, 0, 0})) << "a message of nothing";
}

Ack FullAck() {
  Ack ack{1, 0, 3, 4, 5, 6, 7, kWordsMax, kGrantsMax, {}, {}};
  for (std::size_t i = 0; i < kWordsMax; ++i) ack.map[i] = i + 1;
  for (std::size_t i = 0; i < kGrantsMax; ++i) {
    ack.grant[i].count = static_cast<std::uint8_t>(1 + i % kMaxSlots);
    ack.grant[i].rooms[0] = {-3, 1000 + i};
  }
  return ack;
}

TEST(AckPacket, ComesBackAsItWasAndLeavesOutGrantsThatDoNotFit) {
  const Ack ack = FullAck();
  std::vector<std::byte> packet(9000);
  std::size_t grants = 0;
  const std::size_t size = EncodeAck(Kind::kAck, kTo, 0, ack, packet.size(), packet.data(), &grants);
  EXPECT_EQ(grants, kGrantsMax);
  Ack again;
  ASSERT_TRUE(DecodeAck(std::span(packet).first(size), &again));
  EXPECT_EQ(again.cumulative, 1u);
  EXPECT_EQ(again.arrived, 4u);
  EXPECT_EQ(again.echo, 5u);
  EXPECT_EQ(again.delay, 6u);
  EXPECT_EQ(again.first_grant, 7u);
  EXPECT_EQ(again.map, ack.map);
  EXPECT_EQ(again.grant[31].rooms[0].capacity, 1031u);
  EXPECT_EQ(again.grant[31].rooms[0].tag, -3);
  const std::size_t little = EncodeAck(Kind::kAck, kTo, 0, ack, 200, packet.data(), &grants);
  EXPECT_LE(little, 200u);
  EXPECT_LT(grants, kGrantsMax);
  ASSERT_TRUE(DecodeAck(std::span(packet).first(little), &again));
  EXPECT_EQ(again.grants, grants);
}

TEST(AckPacket, EveryOtherLengthIsRefused) {
  std::vector<std::byte> packet(9000);
  std::size_t grants = 0;
  packet.resize(EncodeAck(Kind::kAck, kTo, 0, FullAck(), packet.size(), packet.data(), &grants));
  Ack again;
  for (std::size_t size = kHeaderBytes; size < packet.size(); ++size) {
    EXPECT_FALSE(DecodeAck(std::span(packet).first(size), &again)) << size;
  }
  packet.push_back({});
  EXPECT_FALSE(DecodeAck(packet, &again));
  packet.pop_back();
  packet[48] = std::byte{kWordsMax + 1};
  EXPECT_FALSE(DecodeAck(packet, &again));
}

TEST(Sequence, NumbersWrapAround) {
  EXPECT_TRUE(Before(0xffff'fff0, 3));
  EXPECT_FALSE(Before(3, 0xffff'fff0));
  EXPECT_FALSE(Before(3, 3));
}

}  // namespace
}  // namespace weir::transport::dpdk
