// Who has which address: the messages, byte by byte, and what an endpoint makes of them.
#include "transport/dpdk/neighbour.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "tests/transport/dpdk/simulated_wire.h"
#include "transport/dpdk/packet_transport.h"
#include "transport/fake/manual_clock.h"

namespace weir::transport::dpdk {
namespace {

IpAddress Ip(const char* text) {
  return IpAddress::Parse(text).value();
}

constexpr MacAddress kOurs{std::byte{2}, {}, {}, {}, {}, std::byte{1}};
constexpr MacAddress kTheirs{std::byte{2}, {}, {}, {}, {}, std::byte{2}};

std::vector<std::uint8_t> Bytes8(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> all;
  for (const std::byte one : bytes) all.push_back(std::to_integer<std::uint8_t>(one));
  return all;
}

TEST(Neighbour, AQuestionInIpv4IsTheOneOfTheStandard) {
  std::array<std::byte, kNeighbourFrameBytes> frame{};
  ASSERT_EQ(EncodeNeighbour({true, Ip("10.0.0.1"), kOurs, Ip("10.0.0.2")}, {}, frame.data()), 60u);
  const std::vector<std::uint8_t> expected{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  0, 0, 0, 0, 1, 8, 6,  // Ethernet,
                                           0,    1,    8,    0,    6,    4,    0,  1,                    // the form,
                                           2,    0,    0,    0,    0,    1,    10, 0, 0, 1,              // we,
                                           0,    0,    0,    0,    0,    0,    10, 0, 0, 2};             // and they.
  EXPECT_EQ(Bytes8(std::span(frame).first(42)), expected);
}

TEST(Neighbour, AQuestionInIpv6GoesToTheGroupOfTheAddress) {
  std::array<std::byte, kNeighbourFrameBytes> frame{};
  ASSERT_EQ(EncodeNeighbour({true, Ip("fd00::1"), kOurs, Ip("fd00::12:3456")}, {}, frame.data()), 86u);
  const auto all = Bytes8(frame);
  EXPECT_EQ(std::vector<std::uint8_t>(all.begin(), all.begin() + 6),
            (std::vector<std::uint8_t>{0x33, 0x33, 0xff, 0x12, 0x34, 0x56}));
  EXPECT_EQ(std::vector<std::uint8_t>(all.begin() + 38, all.begin() + 54),
            (std::vector<std::uint8_t>{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 0x56}));
  EXPECT_EQ(all[21], 255) << "no router passes it on";
}

class Families : public testing::TestWithParam<bool> {
 protected:
  IpAddress a_ = Ip(GetParam() ? "10.0.0.1" : "fd00::1");
  IpAddress b_ = Ip(GetParam() ? "10.0.0.2" : "fd00::2");
};

TEST_P(Families, WhatWasSaidIsUnderstood) {
  for (const bool asks : {true, false}) {
    std::array<std::byte, kNeighbourFrameBytes> frame{};
    const std::size_t size = EncodeNeighbour({asks, a_, kOurs, b_}, kTheirs, frame.data());
    NeighbourMessage heard;
    ASSERT_TRUE(DecodeNeighbour(std::span(frame).first(size), &heard));
    EXPECT_EQ(heard.asks, asks);
    EXPECT_EQ(heard.sender, a_);
    EXPECT_EQ(heard.sender_mac, kOurs);
    EXPECT_EQ(heard.target, b_);
  }
}

TEST_P(Families, WhatIsTooShortIsRefused) {
  std::array<std::byte, kNeighbourFrameBytes> frame{};
  EncodeNeighbour({true, a_, kOurs, b_}, {}, frame.data());
  NeighbourMessage heard;
  for (std::size_t size = 0; size < (GetParam() ? 42u : 86u); ++size) {
    EXPECT_FALSE(DecodeNeighbour(std::span(frame).first(size), &heard)) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Neighbours, Families, testing::Values(true, false),
                         [](const auto& param) { return param.param ? "ipv4" : "ipv6"; });

TEST(Neighbour, DamageAndRoutersAreNoticedInIpv6) {
  std::array<std::byte, kNeighbourFrameBytes> frame{};
  EncodeNeighbour({false, Ip("fd00::1"), kOurs, Ip("fd00::2")}, kTheirs, frame.data());
  NeighbourMessage heard;
  frame[21] = std::byte{254};
  EXPECT_FALSE(DecodeNeighbour(frame, &heard)) << "it has come over a router";
  frame[21] = std::byte{255};
  frame[70] ^= std::byte{1};
  EXPECT_FALSE(DecodeNeighbour(frame, &heard));
}

TEST(Neighbour, PrefixesAreComparedBitByBit) {
  EXPECT_TRUE(SamePrefix(Ip("10.9.1.1"), Ip("10.9.1.200"), 24));
  EXPECT_FALSE(SamePrefix(Ip("10.9.1.1"), Ip("10.9.1.200"), 25));
  EXPECT_TRUE(SamePrefix(Ip("fd00::1"), Ip("fd00::ffff"), 112));
  EXPECT_FALSE(SamePrefix(Ip("fd00::1"), Ip("10.9.1.1"), 0));
}

TEST(NeighbourTable, OnlyThoseWhoWereAskedForAreRemembered) {
  NeighbourTable table;
  EXPECT_FALSE(table.Learn(Ip("10.0.0.1"), kOurs));
  ASSERT_TRUE(table.Want(Ip("10.0.0.1")));
  EXPECT_EQ(table.Find(Ip("10.0.0.1")), nullptr);
  EXPECT_TRUE(table.Learn(Ip("10.0.0.1"), kOurs));
  EXPECT_FALSE(table.Learn(Ip("10.0.0.1"), kOurs)) << "no news";
  EXPECT_TRUE(table.Learn(Ip("10.0.0.1"), kTheirs));
  EXPECT_EQ(*table.Find(Ip("10.0.0.1")), kTheirs);
}

/// Two endpoints on a wire, and somebody who answers for a router.
class Segment : public Families {
 protected:
  void Start(EndpointOptions options) {
    for (std::size_t end = 0; end < 2; ++end) {
      options.identity = end == 0 ? "left/1" : "right/2";
      options.address = end == 0 ? a_ : b_;
      transports_[end] = std::move(
          MakePacketTransport(options, "wire0", wire_.port(end), &clock_, [this] { return random_(); }).value());
      wire_.Keep(end, [this, end] { transports_[end]->Serve(); });
    }
    listener_ = std::move(transports_[1]->Listen(0, 1).value());
    connector_ = std::move(transports_[0]->Connect(0, listener_->handle(), nullptr).value());
  }
  void TearDown() override { wire_.tap = nullptr; }

  /// How connecting ends.
  Status Outcome() {
    for (const Nanoseconds end = clock_.Now() + 10 * kSecond; clock_.Now() < end; clock_.Advance(kMillisecond)) {
      if (receiver_ == nullptr) receiver_ = std::move(listener_->Accept().value());
      auto sender = connector_->Poll();
      if (!sender) return sender.error();
      if (*sender == nullptr) continue;
      sender_ = std::move(*sender);
      return Status::Ok();
    }
    return Status(StatusCode::kInternal, "it does not end");
  }

  ManualClock clock_;
  std::mt19937_64 random_{7};
  SimulatedWire wire_{{}, &clock_};
  std::array<std::unique_ptr<PacketTransport>, 2> transports_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connector> connector_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
};

TEST_P(Segment, APeerThatIsAskedForAnswers) {
  EndpointOptions options;
  options.ask_neighbours = true;
  Start(options);
  const Status status = Outcome();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(transports_[1]->counters().neighbours_answered, 1u);
}

TEST_P(Segment, AGatewayIsAskedForUntilItAnswersAndFollowedWhenItMoves) {
  const IpAddress router = Ip(GetParam() ? "10.0.0.254" : "fd00::fe");
  MacAddress router_mac{std::byte{2}, {}, {}, {}, {}, std::byte{9}};
  int asked = 0;
  std::vector<MacAddress> destinations;
  wire_.tap = [&](std::span<const std::byte> frame) {
    NeighbourMessage heard;
    if (DecodeNeighbour(frame, &heard)) {
      if (!heard.asks || heard.target != router || ++asked < 3) return;  // It is slow to begin with.
      std::array<std::byte, kNeighbourFrameBytes> answer{};
      const std::size_t size =
          EncodeNeighbour({false, router, router_mac, heard.sender}, heard.sender_mac, answer.data());
      wire_.Inject(0, std::span(answer).first(size));
      return;
    }
    Datagram datagram;
    ASSERT_EQ(DecodeFrame(frame, &datagram), FrameVerdict::kOk);
    if (datagram.path.source == a_) destinations.push_back(datagram.path.destination_mac);
  };
  EndpointOptions options;
  options.gateway_address = router;
  options.dead_after = 400 * kMillisecond;
  Start(options);
  const Status status = Outcome();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(asked, 3);
  ASSERT_FALSE(destinations.empty());
  for (const MacAddress& mac : destinations) EXPECT_EQ(mac, router_mac);

  // The router is another one now, and says so to those who ask, which they do when nothing comes back.
  router_mac[5] = std::byte{10};
  wire_.Cut(true);
  Request* request = nullptr;
  std::byte byte{};
  const Slot slot{&byte, 1, 0, {}};
  ASSERT_EQ(receiver_->Irecv(std::span(&slot, 1), &request), transport::Outcome::kDone);
  for (int i = 0; i < 200; ++i) {
    static_cast<void>(transports_[0]->Serve());
    clock_.Advance(kMillisecond);
  }
  ASSERT_FALSE(destinations.empty());
  EXPECT_EQ(destinations.back(), router_mac);
}

TEST_P(Segment, ANextHopThatIsNotThereIsNamed) {
  EndpointOptions options;
  options.gateway_address = Ip(GetParam() ? "10.0.0.254" : "fd00::fe");
  Start(options);
  const Status status = Outcome();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("nobody on the segment says that it has " + options.gateway_address.ToString()),
            std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("times within 3.0 s"), std::string::npos) << status.message();
}

TEST_P(Segment, APeerWithinThePrefixNeedsNoGateway) {
  EndpointOptions options;
  options.gateway_address = Ip(GetParam() ? "10.0.0.254" : "fd00::fe");
  options.prefix_bits = 24;
  Start(options);
  EXPECT_TRUE(Outcome().ok());
}

INSTANTIATE_TEST_SUITE_P(Neighbours, Segment, testing::Values(true, false),
                         [](const auto& param) { return param.param ? "ipv4" : "ipv6"; });

}  // namespace
}  // namespace weir::transport::dpdk
