// A coflow of level 0 among saturated ones of level 7 over a narrow wire, in virtual time: who has what, and how soon.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "tests/transport/dpdk/simulated_wire.h"
#include "transport/dpdk/packet_transport.h"
#include "transport/fake/manual_clock.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"

namespace weir::transport::dpdk {
namespace {

constexpr Nanoseconds kStep = 10 * kMicrosecond;
constexpr std::size_t kLow = 8;
constexpr std::size_t kPosted = 16;
constexpr Bytes kMessage = 64 * 1024;

/// Nine channels from left to right; the last one is the high one. Those that are busy always have messages posted, and
/// each has its turn once a step.
class Levels : public testing::Test {
 protected:
  struct Channel {
    std::unique_ptr<ScriptedDirectives> directives;
    std::unique_ptr<Lane> lane;  ///< Outlives the sender.
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
    std::deque<Request*> sends;
    std::deque<Request*> receives;
    bool busy = false;
    Bytes arrived = 0;
  };

  void Start(const WireOptions& wire) {
    wire_ = std::make_unique<SimulatedWire>(wire, &clock_);
    for (std::size_t end = 0; end < 2; ++end) {
      EndpointOptions options;
      options.identity = end == 0 ? "left/1" : "right/2";
      options.address = IpAddress::Parse(end == 0 ? "10.9.0.1" : "10.9.0.2").value();
      transports_[end] = std::move(
          MakePacketTransport(options, "wire0", wire_->port(end), &clock_, [this] { return random_(); }).value());
      wire_->Keep(end, [this, end] { transports_[end]->Serve(); });
    }
    for (std::size_t i = 0; i <= kLow; ++i) Connect(i < kLow ? 7 : 0);
  }

  void Connect(std::uint8_t level) {
    LaneDirective directive;
    directive.level = level;
    Connect({{0, directive}});
  }

  void Connect(std::vector<ScriptedDirectives::Step> script, Lane* shared = nullptr) {
    Channel channel;
    channel.directives = std::make_unique<ScriptedDirectives>(&clock_, std::move(script));
    channel.lane = std::make_unique<Lane>(&pacer_, channel.directives.get());
    Lane* lane = shared != nullptr ? shared : channel.lane.get();
    auto listener = std::move(transports_[1]->Listen(0, 1).value());
    auto connector = std::move(transports_[0]->Connect(0, listener->handle(), lane).value());
    for (int i = 0; i < 100'000 && (channel.sender == nullptr || channel.receiver == nullptr); ++i) {
      if (channel.sender == nullptr) channel.sender = std::move(connector->Poll().value());
      if (channel.receiver == nullptr) channel.receiver = std::move(listener->Accept().value());
      clock_.Advance(kStep);
    }
    ASSERT_NE(channel.receiver, nullptr);
    channels_.push_back(std::move(channel));
  }

  void Step(Channel* channel) {
    while (!channel->sends.empty() && channel->sender->Test(channel->sends.front(), {}) == Outcome::kDone) {
      channel->sends.pop_front();
    }
    const Part part{memory_.data(), kMessage, {}};
    while (channel->busy && channel->sends.size() < kPosted) {
      Request* send = nullptr;
      ASSERT_EQ(channel->sender->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
      channel->sends.push_back(send);
    }
    const Slot slot{room_.data(), kMessage, 0, {}};
    while (channel->receives.size() < kPosted) {
      Request* receive = nullptr;
      ASSERT_EQ(channel->receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
      channel->receives.push_back(receive);
    }
    while (channel->receiver->Test(channel->receives.front(), {}) == Outcome::kDone) {
      channel->receives.pop_front();
      channel->arrived += kMessage;
      Request* receive = nullptr;
      ASSERT_EQ(channel->receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
      channel->receives.push_back(receive);
    }
  }

  /// Bytes that came of the low ones and of the high one.
  std::array<double, 2> Run(Nanoseconds span) {
    std::array<double, 2> before{};
    std::array<double, 2> after{};
    for (std::size_t i = 0; i <= kLow; ++i) before[i / kLow] += static_cast<double>(channels_[i].arrived);
    for (const Nanoseconds end = clock_.Now() + span; clock_.Now() < end; clock_.Advance(kStep)) {
      for (Channel& channel : channels_) Step(&channel);
    }
    for (std::size_t i = 0; i <= kLow; ++i) after[i / kLow] += static_cast<double>(channels_[i].arrived);
    return {after[0] - before[0], after[1] - before[1]};
  }

  /// Bytes that the lanes of the low ones and of the high one let pass until now.
  std::array<Bytes, 2> Admitted() const {
    std::array<Bytes, 2> bytes{};
    for (std::size_t i = 0; i <= kLow; ++i) bytes[i / kLow] += channels_[i].lane->counters().bytes;
    return bytes;
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kMessage);
  std::vector<std::byte> room_ = std::vector<std::byte>(kMessage);
  ManualClock clock_;
  std::mt19937_64 random_{7};
  Pacer pacer_;
  std::unique_ptr<SimulatedWire> wire_;
  std::array<std::unique_ptr<PacketTransport>, 2> transports_;
  std::vector<Channel> channels_;
};

class LevelsByPath : public Levels, public testing::WithParamInterface<Nanoseconds> {};

TEST_P(LevelsByPath, TheHighOneHasTheWireButForTheFloorAndTheLowOnesHaveItBack) {
  WireOptions wire;
  wire.rate = BitsPerSecond(500e6);
  wire.delay_min = wire.delay_max = GetParam();
  Start(wire);
  for (std::size_t i = 0; i < kLow; ++i) channels_[i].busy = true;
  Run(400 * kMillisecond);
  const double alone = Run(100 * kMillisecond)[0] / 100;
  EXPECT_GT(alone * 1e3, 0.9 * wire.rate);
  channels_[kLow].busy = true;
  Run(20 * kMillisecond);
  const auto [low, high] = Run(100 * kMillisecond);
  EXPECT_GE(high, 95 * alone);
  EXPECT_LE(low, 3 * alone) << "a 64th, and what a message that is counted whole adds";
  channels_[kLow].busy = false;
  Run(20 * kMillisecond);
  EXPECT_GE(Run(100 * kMillisecond)[0], 95 * alone);
}

INSTANTIATE_TEST_SUITE_P(OneWay, LevelsByPath, testing::Values(10 * kMicrosecond, 500 * kMicrosecond));

TEST_F(Levels, AWindowThatComesBackLaterThanALevelIsAskedForStillHoldsTheLowOnesBack) {
  WireOptions wire;
  wire.rate = BitsPerSecond(500e6);
  wire.delay_min = wire.delay_max = 8 * kMillisecond;
  Start(wire);
  channels_[kLow].busy = true;
  Run(50 * kMillisecond);
  for (std::size_t i = 0; i < kLow; ++i) channels_[i].busy = true;
  const auto before = Admitted();
  Run(500 * kMillisecond);
  const auto after = Admitted();
  const Bytes all = after[0] + after[1] - before[0] - before[1];
  EXPECT_GT(all, 4u << 20);
  EXPECT_LE((after[0] - before[0]) * PacerOptions{}.floor_divisor, all) << "the low ones have the floor and no more";
}

TEST_F(Levels, AChannelThatWaitsForAReceiveDoesNotTakeThePlaceOfAnotherInItsLane) {
  WireOptions wire;
  wire.rate = BitsPerSecond(500e6);
  wire.delay_min = wire.delay_max = 8 * kMillisecond;
  Start(wire);
  Connect({}, channels_[kLow].lane.get());
  Channel waits = std::move(channels_.back());
  channels_.pop_back();
  const Part part{memory_.data(), kMessage, {}};
  Request* send = nullptr;
  ASSERT_EQ(waits.sender->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  channels_[kLow].busy = true;
  Run(50 * kMillisecond);
  for (std::size_t i = 0; i < kLow; ++i) channels_[i].busy = true;
  const auto before = Admitted();
  for (const Nanoseconds end = clock_.Now() + 500 * kMillisecond; clock_.Now() < end;) {
    ASSERT_EQ(waits.sender->Test(send, {}), Outcome::kAgain);
    Run(kStep);
  }
  const auto after = Admitted();
  const Bytes all = after[0] + after[1] - before[0] - before[1];
  EXPECT_GT(all, 4u << 20);
  EXPECT_LE((after[0] - before[0]) * PacerOptions{}.floor_divisor, all) << "the low ones have the floor and no more";
}

TEST_F(Levels, WhatTheLowOnesLeaveOnTheWayIsShort) {
  WireOptions wire;
  wire.rate = BitsPerSecond(100e6);
  Start(wire);
  for (std::size_t i = 0; i < kLow; ++i) channels_[i].busy = true;
  Run(500 * kMillisecond);
  for (Channel& channel : channels_) channel.busy = false;
  channels_[kLow].busy = true;
  const Nanoseconds begin = clock_.Now();
  while (channels_[kLow].arrived == 0 && clock_.Now() - begin < kSecond) Run(100 * kMicrosecond);
  // 8 channels with 4 segments each last 3.9 ms, and the first message 5.6 ms.
  EXPECT_LE(clock_.Now() - begin, 12 * kMillisecond);
}

TEST_F(Levels, TheLinkIsLeftAtOnceWhenTheLastMessageEndsWhileAnotherChannelIsServed) {
  Start({});
  Channel& high = channels_[kLow];
  const Part part{memory_.data(), kMessage, {}};
  const Slot slot{room_.data(), kMessage, 0, {}};
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(high.receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
  clock_.Advance(kMillisecond);
  ASSERT_EQ(high.sender->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  for (int i = 0; i < 1000; ++i) {  // Its owner does not ask: others do what there is to do.
    clock_.Advance(kStep);
    static_cast<void>(high.sender->Look());
    if (high.receiver->Test(receive, {}) == Outcome::kDone) break;
  }
  clock_.Advance(kMillisecond);
  transports_[0]->Serve();
  ASSERT_EQ(high.sender->Test(send, {}), Outcome::kDone);
  clock_.Advance(PacerOptions{}.linger_max);
  EXPECT_GT(channels_[0].lane->Admit(1000, clock_.Now()), 0u);
  channels_[0].lane->Idle();
}

LaneDirective Capped(double bits) {
  LaneDirective directive;
  directive.rate = BitsPerSecond(bits);
  return directive;
}

/// One channel with a message under way that its owner does not ask for, and others that are asked.
class Unasked : public Levels {
 protected:
  void Begin(std::vector<ScriptedDirectives::Step> script, Bytes size = kMessage) {
    Start({});
    Connect(std::move(script));
    const Part part{memory_.data(), size, {}};
    const Slot slot{room_.data(), kMessage, 0, {}};
    ASSERT_EQ(channels_.back().receiver->Irecv(std::span(&slot, 1), &receive_), Outcome::kDone);
    clock_.Advance(kMillisecond);
    static_cast<void>(channels_.front().sender->Look());
    ASSERT_EQ(channels_.back().sender->Isend(std::span(&part, 1), 0, &send_), Outcome::kDone);
    began_ = clock_.Now();
  }

  /// How long until the message is there, while another channel is asked.
  Nanoseconds Arrives(Nanoseconds at_most) {
    while (clock_.Now() - began_ < at_most && channels_.back().receiver->Test(receive_, {}) == Outcome::kAgain) {
      clock_.Advance(kStep);
      static_cast<void>(channels_.front().sender->Look());
    }
    return clock_.Now() - began_;
  }

  Request* send_ = nullptr;
  Request* receive_ = nullptr;
  Nanoseconds began_ = 0;
};

TEST_F(Unasked, WhatWaitsForItsRateGoesOnInTheCallsOfOtherChannels) {
  Begin({{0, Capped(8e6)}});
  const Nanoseconds took = Arrives(kSecond);
  // 64 KiB at 1 MB/s, less the 5 ms that were saved up.
  EXPECT_GE(took, 60 * kMillisecond);
  EXPECT_LE(took, 64 * kMillisecond);
}

TEST_F(Unasked, WhatWaitsForItsGateGoesOnInTheCallsOfOtherChannels) {
  LaneDirective held;
  held.hold_until = 200 * kMillisecond;
  Begin({{0, held}}, 1000);
  const Nanoseconds waits = held.hold_until - began_;
  ASSERT_GT(waits, 10 * kMillisecond);
  const Nanoseconds took = Arrives(kSecond);
  EXPECT_GE(took, waits);
  EXPECT_LE(took, waits + kMillisecond);
}

TEST_F(Unasked, ACapThatIsLiftedIsSeenWithinMilliseconds) {
  Begin({{0, Capped(8e3)}, {500 * kMillisecond, Capped(1e9)}});
  const Nanoseconds lifted = 500 * kMillisecond - began_;
  ASSERT_GT(lifted, 10 * kMillisecond);
  const Nanoseconds took = Arrives(10 * kSecond);
  EXPECT_GE(took, lifted);
  EXPECT_LE(took, lifted + 7 * kMillisecond);
}

TEST_F(Unasked, ACapThatIsLiftedIsSeenAtOnceByWhoAsks) {
  Begin({{0, Capped(8e3)}, {500 * kMillisecond, {}}});
  while (clock_.Now() < 500 * kMillisecond - kStep) {
    clock_.Advance(kStep);
    ASSERT_EQ(channels_.back().sender->Test(send_, {}), Outcome::kAgain);
  }
  clock_.Advance(2 * kStep);
  const std::uint64_t before = wire_->sent();
  ASSERT_EQ(channels_.back().sender->Test(send_, {}), Outcome::kAgain);
  EXPECT_GE(wire_->sent() - before, 4u);
}

}  // namespace
}  // namespace weir::transport::dpdk
