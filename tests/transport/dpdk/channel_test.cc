// What only this protocol promises: liveness without a kernel, congestion control, marks on the wire, and strangers.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/transport/dpdk/simulated_wire.h"
#include "transport/dpdk/packet_transport.h"
#include "transport/dpdk/wire.h"
#include "transport/fake/manual_clock.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"

namespace weir::transport::dpdk {
namespace {

constexpr Nanoseconds kStep = 5 * kMicrosecond;

/// Two endpoints on a wire, a channel from left to right, and messages over it.
class Channels : public testing::Test {
 protected:
  void Start(const WireOptions& wire, EndpointOptions options = {}) {
    wire_ = std::make_unique<SimulatedWire>(wire, &clock_);
    for (std::size_t end = 0; end < 2; ++end) {
      options.identity = end == 0 ? "left/1" : "right/2";
      options.address = IpAddress::Parse(end == 0 ? "10.9.0.1" : "10.9.0.2").value();
      transports_[end] = std::move(
          MakePacketTransport(options, "wire0", wire_->port(end), &clock_, [this] { return random_(); }).value());
      wire_->Keep(end, [this, end] { transports_[end]->Serve(); });
    }
  }

  void TearDown() override {
    if (wire_ != nullptr) wire_->tap = nullptr;  // It knows the test's own variables, and channels say farewell.
  }

  void Connect(Lane* lane = nullptr) {
    auto listener = std::move(transports_[1]->Listen(0, 1).value());
    auto connector = std::move(transports_[0]->Connect(0, listener->handle(), lane).value());
    ASSERT_TRUE(Until(kSecond, [&] {
      if (sender_ == nullptr) sender_ = std::move(connector->Poll().value());
      if (receiver_ == nullptr) receiver_ = std::move(listener->Accept().value());
      return sender_ != nullptr && receiver_ != nullptr;
    }));
  }

  bool Until(Nanoseconds most, const std::function<bool()>& done) {
    for (const Nanoseconds end = clock_.Now() + most; clock_.Now() < end; clock_.Advance(kStep)) {
      if (done()) return true;
    }
    return false;
  }

  /// How long a message of `size` zeros takes; the test fails when it does not arrive within `most`.
  Nanoseconds Move(Bytes size, Nanoseconds most) {
    data_.resize(size);
    room_.resize(size);
    const Part part{data_.data(), size, {}};
    const Slot slot{room_.data(), size, 0, {}};
    Request* send = nullptr;
    Request* receive = nullptr;
    const Nanoseconds begin = clock_.Now();
    EXPECT_EQ(receiver_->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
    EXPECT_EQ(sender_->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
    bool sent = false;
    bool received = false;
    EXPECT_TRUE(Until(most,
                      [&] {
                        sent = sent || sender_->Test(send, {}) == Outcome::kDone;
                        received = received || receiver_->Test(receive, {}) == Outcome::kDone;
                        return sent && received;
                      }))
        << sender_->failure().ToString() << receiver_->failure().ToString();
    return clock_.Now() - begin;
  }

  ManualClock clock_;
  std::mt19937_64 random_{7};
  std::unique_ptr<SimulatedWire> wire_;
  std::array<std::unique_ptr<PacketTransport>, 2> transports_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<std::byte> data_;
  std::vector<std::byte> room_;
};

TEST_F(Channels, ASilentCutIsNoticedAtBothEndsWithinTheBoundAndAFlapIsNot) {
  EndpointOptions options;
  options.dead_after = 200 * kMillisecond;
  Start({}, options);
  Connect();
  Request* send = nullptr;
  Request* receive = nullptr;
  std::byte byte{};
  const Part part{&byte, 1, {}};
  const Slot slot{&byte, 1, 0, {}};
  wire_->Cut(true);
  ASSERT_EQ(receiver_->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
  ASSERT_EQ(sender_->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  EXPECT_FALSE(Until(150 * kMillisecond, [&] { return sender_->Test(send, {}) != Outcome::kAgain; }));
  wire_->Cut(false);
  EXPECT_TRUE(Until(150 * kMillisecond, [&] {
    return sender_->Test(send, {}) == Outcome::kDone && receiver_->Test(receive, {}) == Outcome::kDone;
  }));
  wire_->Cut(true);
  const Nanoseconds cut = clock_.Now();
  ASSERT_EQ(receiver_->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
  ASSERT_EQ(sender_->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  EXPECT_TRUE(Until(400 * kMillisecond, [&] {
    const bool one = sender_->Test(send, {}) == Outcome::kFailed;
    return receiver_->Test(receive, {}) == Outcome::kFailed && one;
  }));
  EXPECT_LE(clock_.Now() - cut, options.dead_after);
  EXPECT_NE(sender_->failure().message().find("the link is dead"), std::string::npos) << sender_->failure().message();
  EXPECT_NE(sender_->failure().message().find("left/1, sending to right/2 (10.9.0.2)"), std::string::npos)
      << sender_->failure().message();
}

TEST_F(Channels, TimeInWhichNobodyServedUsIsNotHeldAgainstThePeer) {
  EndpointOptions options;
  options.dead_after = 200 * kMillisecond;
  Start({}, options);
  Connect();
  wire_->Keep(0, nullptr);
  wire_->Keep(1, nullptr);
  clock_.Advance(5 * kSecond);
  Move(100'000, kSecond);
}

TEST_F(Channels, ASilentCutIsJudgedByTheTimeInWhichWeLooked) {
  EndpointOptions options;
  options.dead_after = 200 * kMillisecond;
  Start({}, options);
  Connect();
  wire_->Keep(0, nullptr);
  wire_->Keep(1, nullptr);
  wire_->Cut(true);
  Request* send = nullptr;
  std::byte byte{};
  const Part part{&byte, 1, {}};
  ASSERT_EQ(sender_->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  // A process that gets to look once in 100 ms: after 2 s it has looked 20 times.
  int looks = 0;
  for (; sender_->Test(send, {}) != Outcome::kFailed; ++looks) {
    ASSERT_LT(looks, 100);
    clock_.Advance(100 * kMillisecond);
  }
  EXPECT_GE(looks, 20);
}

TEST_F(Channels, APeerThatLooksSeldomIsSlowAndNotMore) {
  Start({});
  Connect();
  wire_->Keep(1, nullptr);
  Move(1'000'000, kSecond);
  std::vector<std::byte> room(4'000'000);
  const Part part{room.data(), room.size(), {}};
  std::vector<std::byte> into(room.size());
  const Slot slot{into.data(), into.size(), 0, {}};
  Request* send = nullptr;
  Request* receive = nullptr;
  ASSERT_EQ(receiver_->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
  ASSERT_EQ(sender_->Isend(std::span(&part, 1), 0, &send), Outcome::kDone);
  Nanoseconds looks_at = clock_.Now();
  const Nanoseconds begin = clock_.Now();
  bool received = false;
  EXPECT_TRUE(Until(10 * kSecond, [&] {
    if (!received && clock_.Now() >= looks_at) {  // Once in 20 ms, until nothing is left to see.
      for (int i = 0; i < 32 && !received; ++i) received = receiver_->Test(receive, {}) == Outcome::kDone;
      looks_at = clock_.Now() + 20 * kMillisecond;
    }
    return sender_->Test(send, {}) == Outcome::kDone;
  }));
  // 4 MB in windows that grow from about a quarter of that: each look takes all that is on the way.
  EXPECT_LE(clock_.Now() - begin, 500 * kMillisecond);
}

TEST_F(Channels, AWireThatIsFullIsUsedWithoutFillingItsQueue) {
  // 1 Gbit/s and 100 us, with room for 20 ms in front of it: 4 MB take 32 ms and the headers.
  WireOptions wire;
  wire.rate = 125e6;
  wire.queue = 2'500'000;
  wire.delay_min = wire.delay_max = 50 * kMicrosecond;
  Start(wire);
  Connect();
  Move(1'000'000, kSecond);
  const Nanoseconds took = Move(4'000'000, kSecond);
  EXPECT_LE(took, 40 * kMillisecond);
  EXPECT_EQ(transports_[0]->counters().repeated, 0u) << "nothing was dropped";
}

TEST_F(Channels, ALongFatPathWithDamageIsFilled) {
  // 1 Gbit/s, 20 ms round trip, one frame in 1000 lost: the product is 2.5 MB in flight.
  WireOptions wire;
  wire.rate = 125e6;
  wire.queue = 2'500'000;
  wire.loss = 0.001;
  wire.delay_min = wire.delay_max = 10 * kMillisecond;
  EndpointOptions options;
  options.queue_target = 5 * kMillisecond;
  Start(wire, options);
  Connect();
  Move(8'000'000, 5 * kSecond);
  const Nanoseconds took = Move(24'000'000, 5 * kSecond);
  EXPECT_LE(took, 2 * 24 * 8 * kMillisecond) << "half of the rate at least";
}

TEST_F(Channels, MarksOfRoutersMakeItSendLess) {
  WireOptions wire;
  wire.rate = 125e6;
  wire.queue = 2'500'000;
  wire.mark_above = 30'000;
  wire.delay_min = wire.delay_max = 50 * kMicrosecond;
  EndpointOptions options;
  options.queue_target = kSecond;  // So that only marks count.
  for (const bool ecn : {false, true}) {
    options.ecn = ecn;
    sender_.reset();
    receiver_.reset();
    Start(wire, options);
    Connect();
    Move(2'000'000, kSecond);
    const std::uint64_t before = transports_[0]->counters().repeated;
    Move(8'000'000, kSecond);
    const std::uint64_t repeated = transports_[0]->counters().repeated - before;
    if (ecn) {
      EXPECT_EQ(repeated, 0u);
    } else {
      EXPECT_GT(repeated, 100u) << "the queue overflows";
    }
  }
}

TEST_F(Channels, TheLevelIsOnTheWireAndSegmentsTakeAllPaths) {
  EndpointOptions options;
  options.paths = 4;
  Start({}, options);
  ScriptedDirectives directives(&clock_, {{0, LaneDirective{3, 0, {}, 0}}});
  Pacer pacer;
  Lane lane(&pacer, &directives);
  Connect(&lane);
  std::set<std::uint8_t> dscps;
  std::set<std::uint16_t> ports;
  wire_->tap = [&](std::span<const std::byte> frame) {
    Datagram datagram;
    ASSERT_EQ(DecodeFrame(frame, &datagram), FrameVerdict::kOk);
    if (datagram.payload.size() < 1000) return;
    dscps.insert(datagram.path.dscp);
    ports.insert(datagram.path.source_port);
    EXPECT_EQ(datagram.path.destination_port, options.port);
  };
  Move(1'000'000, kSecond);
  EXPECT_EQ(dscps, std::set<std::uint8_t>{18});
  EXPECT_EQ(ports, (std::set<std::uint16_t>{47'800, 47'801, 47'802, 47'803}));
}

TEST_F(Channels, DamagedFramesAreCountedAndNeverDelivered) {
  WireOptions wire;
  wire.damage = 0.2;
  Start(wire);
  Connect();
  Move(500'000, 5 * kSecond);
  EXPECT_GT(transports_[1]->counters().bad_checksum, 20u);
}

TEST_F(Channels, NoiseFromStrangersDoesNotDisturb) {
  Start({});
  Connect();
  // Frames of the right form with random contents behind the magic, to both ends, while a message moves.
  std::mt19937_64 random(9);
  FramePath path;
  path.destination_port = path.source_port = 47'800;
  std::uint64_t injected = 0;
  wire_->tap = [&](std::span<const std::byte> seen) {
    if (injected >= 2000) return;
    std::vector<std::byte> frame(seen.begin(), seen.end());
    Datagram datagram;
    ASSERT_EQ(DecodeFrame(frame, &datagram), FrameVerdict::kOk);
    const std::size_t overhead = FrameOverhead(true);
    for (int i = 0; i < 3; ++i)
      frame[overhead + 2 + random() % (datagram.payload.size() - 2)] = static_cast<std::byte>(random());
    if (std::equal(frame.begin(), frame.end(), seen.begin()) || datagram.payload.size() > 1000) return;
    // Another channel's number, so that it is not taken for the peer's word.
    frame[overhead + 8] ^= std::byte{0x55};
    EncodeFrame(datagram.path, frame);
    injected++;
    wire_->Inject(injected % 2, frame);
  };
  for (int i = 0; i < 20; ++i) Move(200'000, kSecond);
  EXPECT_GT(injected, 100u);
}

TEST_F(Channels, AWrongListenerAnotherVersionAndASecondPeerAreRefusedByName) {
  Start({});
  auto listener = std::move(transports_[1]->Listen(0, 1).value());
  const auto outcome = [&](const Handle& handle) {
    auto connector = std::move(transports_[0]->Connect(0, handle, nullptr).value());
    Status status;
    EXPECT_TRUE(Until(kSecond, [&] {
      static_cast<void>(listener->Accept().has_value());
      auto sender = connector->Poll();
      if (!sender) status = sender.error();
      return !sender.has_value();
    }));
    return status;
  };
  auto place = DecodeHandle(listener->handle()).value();
  place.nonce[0] ^= std::byte{1};
  Status status = outcome(EncodeHandle(place));
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(status.message().find("left/1, connecting to right/2"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("has no listener of this handle"), std::string::npos) << status.message();

  wire_->tap = [&](std::span<const std::byte> seen) {  // A copy of each hello as the next version would say it.
    Datagram datagram;
    ASSERT_EQ(DecodeFrame(seen, &datagram), FrameVerdict::kOk);
    if (datagram.payload.size() != kGreetingBytes || datagram.path.source == place.address) return;
    std::vector<std::byte> frame(seen.begin(), seen.end());
    frame[FrameOverhead(true) + 2] = std::byte{2};
    EncodeFrame(datagram.path, frame);
    wire_->Inject(1, frame);
  };
  place = DecodeHandle(listener->handle()).value();
  place.identity = "somebody/3";
  status = outcome(EncodeHandle(place));
  EXPECT_EQ(status.code(), StatusCode::kProtocol) << status.ToString();
  EXPECT_NE(status.message().find("does not speak our version"), std::string::npos) << status.message();
  wire_->tap = nullptr;

  status = outcome(listener->handle());
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << "the channel before was taken for the one that is meant";
  EXPECT_NE(status.message().find("by another already"), std::string::npos) << status.message();
  EXPECT_GE(transports_[1]->counters().refused, 3u);
  EXPECT_EQ(transports_[1]->counters().other_version, 1u);
}

TEST_F(Channels, NobodyThereIsUnavailableInTime) {
  EndpointOptions options;
  options.connect_within = 100 * kMillisecond;
  Start({}, options);
  auto listener = std::move(transports_[1]->Listen(0, 1).value());
  wire_->Cut(true);
  auto connector = std::move(transports_[0]->Connect(0, listener->handle(), nullptr).value());
  Status status;
  ASSERT_TRUE(Until(200 * kMillisecond, [&] {
    auto sender = connector->Poll();
    if (!sender) status = sender.error();
    return !sender.has_value();
  }));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("no answer within 0.1 s"), std::string::npos) << status.message();
}

TEST_F(Channels, OptionsOutOfRangeAreRefusedByName) {
  SimulatedWire good({}, &clock_);
  const auto refusal = [&](const std::function<void(EndpointOptions*)>& spoil, PacketPort* port) {
    EndpointOptions options;
    options.identity = "left/1";
    options.address = IpAddress::Parse("10.9.0.1").value();
    spoil(&options);
    const auto made = MakePacketTransport(options, "wire0", port, &clock_, [] { return 1; });
    return made ? std::string() : made.error().message();
  };
  using Options = EndpointOptions;
  EXPECT_EQ(refusal([](Options*) {}, good.port(0)), "");
  EXPECT_EQ(refusal([](Options* o) { o->identity = ""; }, good.port(0)),
            "identity: found \"\", allowed: 1 to 31 printable characters, no blanks");
  EXPECT_EQ(refusal([](Options* o) { o->address = {}; }, good.port(0)),
            "address: found 0.0.0.0, allowed: one of this host");
  EXPECT_EQ(refusal([](Options* o) { o->paths = 65; }, good.port(0)),
            "paths: found 65, allowed: 1 to 64, within the ports from 47800 on");
  EXPECT_EQ(refusal([](Options* o) { o->dscp[2] = 64; }, good.port(0)), "dscp: found 64, allowed: 0 to 63");
  EXPECT_EQ(refusal([](Options* o) { o->requests = 0; }, good.port(0)), "requests: found 0, allowed: 1 to 4096");
  EXPECT_EQ(refusal([](Options* o) { o->port = 0; }, good.port(0)), "port: found 0, allowed: 1 to 65535");
  EXPECT_EQ(refusal([](Options* o) { o->dead_after = 1; }, good.port(0)),
            "bound on a dead link in ms: found 0, allowed: 10 to 3600000");
  EXPECT_EQ(refusal([](Options* o) { o->congestion = "hope"; }, good.port(0)),
            "congestion control: found \"hope\", allowed: delay, fixed");
  WireOptions tiny;
  tiny.frame_bytes = 500;
  SimulatedWire small(tiny, &clock_);
  EXPECT_EQ(refusal([](Options*) {}, small.port(0)), "frame size of the port: found 500, allowed: 576 to 9216");
}

}  // namespace
}  // namespace weir::transport::dpdk
