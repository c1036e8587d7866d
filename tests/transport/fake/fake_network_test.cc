// What only the fake can do: cut the wire and mend it, on a clock.
#include "transport/fake/fake_network.h"

#include <gtest/gtest.h>

#include "transport/fake/manual_clock.h"

namespace weir::transport {
namespace {

class FakeCut : public testing::Test {
 protected:
  FakeCut() {
    auto listener = right_->Listen(0, 1);
    auto connector = left_->Connect(0, (*listener)->handle(), nullptr);
    while (sender_ == nullptr) {
      clock_.Advance(10 * kMicrosecond);
      sender_ = std::move((*connector)->Poll().value());
    }
    receiver_ = std::move((*listener)->Accept().value());
    const Part part{data_.data(), data_.size(), {}};
    const Slot slot{room_.data(), room_.size(), 0, {}};
    EXPECT_EQ(receiver_->Irecv(std::span(&slot, 1), &receive_), Outcome::kDone);
    EXPECT_EQ(sender_->Isend(std::span(&part, 1), 0, &send_), Outcome::kDone);
  }

  static FakeOptions Options() {
    FakeOptions options;
    options.delay_max = 100 * kMicrosecond;
    return options;
  }

  /// Runs until both are done (true) or `span` is over.
  bool Run(Nanoseconds span) {
    for (const Nanoseconds end = clock_.Now() + span; clock_.Now() < end; clock_.Advance(50 * kMicrosecond)) {
      sent_ = sent_ || sender_->Test(send_, {}) == Outcome::kDone;
      received_ = received_ || receiver_->Test(receive_, {}) == Outcome::kDone;
      if (sent_ && received_) return true;
    }
    return false;
  }

  ManualClock clock_;
  FakeNetwork network_{Options(), &clock_};
  std::unique_ptr<Transport> left_ = MakeFakeTransport(&network_, "left/1");
  std::unique_ptr<Transport> right_ = MakeFakeTransport(&network_, "right/2");
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
  std::vector<std::byte> data_ = std::vector<std::byte>(2 << 20, std::byte{7});
  std::vector<std::byte> room_ = std::vector<std::byte>(2 << 20);
  Request* send_ = nullptr;
  Request* receive_ = nullptr;
  bool sent_ = false;
  bool received_ = false;
};

TEST_F(FakeCut, ShorterThanTheBoundIsSurvived) {
  ASSERT_FALSE(Run(kMillisecond));
  network_.Cut(true);
  ASSERT_FALSE(Run(9 * kSecond));
  network_.Cut(false);
  EXPECT_TRUE(Run(kSecond));
  EXPECT_EQ(room_, data_);
}

TEST_F(FakeCut, LongerThanTheBoundEndsBothEnds) {
  ASSERT_FALSE(Run(kMillisecond));
  network_.Cut(true);
  ASSERT_FALSE(Run(9 * kSecond));
  EXPECT_TRUE(sender_->failure().ok() && receiver_->failure().ok());
  ASSERT_FALSE(Run(2 * kSecond));
  for (const Channel* channel : {static_cast<Channel*>(sender_.get()), static_cast<Channel*>(receiver_.get())}) {
    EXPECT_EQ(channel->failure().code(), StatusCode::kUnavailable);
    EXPECT_NE(channel->failure().message().find("the link is dead"), std::string::npos) << channel->failure().message();
  }
}

TEST_F(FakeCut, ACloseDuringACutIsNotHeardOf) {
  ASSERT_FALSE(Run(kMillisecond));
  network_.Cut(true);
  sender_.reset();
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(kMillisecond);
    ASSERT_EQ(receiver_->Test(receive_, {}), Outcome::kAgain);
  }
}

TEST(FakeNetwork, ConnectingToOneThatIsGoneNamesBoth) {
  ManualClock clock;
  FakeNetwork network({}, &clock);
  const auto left = MakeFakeTransport(&network, "left/1");
  const Handle handle = (*left->Listen(0, 1))->handle();
  const auto connector = left->Connect(0, handle, nullptr);
  ASSERT_TRUE(connector.has_value());
  clock.Advance(kMillisecond);
  const auto sender = (*connector)->Poll();
  ASSERT_FALSE(sender.has_value());
  EXPECT_EQ(sender.error().code(), StatusCode::kUnavailable);
}

TEST(FakeNetwork, OneSeedIsOneHistory) {
  const auto history = [](std::uint64_t seed) {
    ManualClock clock;
    FakeOptions options;
    options.seed = seed;
    options.delay_max = kMillisecond;
    FakeNetwork network(options, &clock);
    std::vector<Nanoseconds> times;
    times.reserve(20);
    for (int i = 0; i < 20; ++i) times.push_back(network.ArrivesAt());
    return times;
  };
  EXPECT_EQ(history(3), history(3));
  EXPECT_NE(history(3), history(4));
}

}  // namespace
}  // namespace weir::transport
