// What congestion control makes of acknowledgements, one at a time.
#include "transport/dpdk/congestion.h"

#include <gtest/gtest.h>

namespace weir::transport::dpdk {
namespace {

constexpr Bytes kSegment = 1400;
constexpr Nanoseconds kRound = 100 * kMicrosecond;

class Delay : public testing::Test {
 protected:
  /// One window is acknowledged, a round trip after the last one.
  void Round(Nanoseconds round_trip, bool late = false, Bytes lost = 0, double marked = 0, bool limited = true) {
    now_ += round_trip;
    CongestionControl::Sample sample;
    sample.now = now_;
    sample.round_trip = round_trip;
    sample.late = late;
    sample.bytes = control_->window();
    sample.lost = lost;
    sample.limited = limited;
    sample.marked = marked;
    control_->OnAck(sample);
  }

  std::unique_ptr<CongestionControl> control_ = std::move(MakeCongestionControl(EndpointOptions{}, kSegment).value());
  Nanoseconds now_ = 0;
};

TEST_F(Delay, TheWindowDoublesUntilThereIsAQueueAndThenShrinks) {
  const Bytes first = control_->window();
  Round(kRound);
  EXPECT_EQ(control_->window(), 2 * first);
  for (int i = 0; i < 20; ++i) Round(kRound + 2 * kMillisecond);
  EXPECT_LT(control_->window(), first);
}

TEST_F(Delay, RoundTripsInWhichAnEndHadNoCoreAreNoQueue) {
  Round(kRound);
  const Bytes before = control_->window();
  for (int i = 0; i < 5; ++i) Round(kRound + 30 * kMillisecond, true);
  EXPECT_GE(control_->window(), 16 * before) << "it goes on growing";
}

TEST_F(Delay, AQueueThatWasSeenBeforeIsNotHeldAgainstRoundTripsThatSayNothing) {
  Round(kRound);
  for (int i = 0; i < 20; ++i) Round(kRound + 2 * kMillisecond);
  const Bytes before = control_->window();
  for (int i = 0; i < 20; ++i) Round(kRound + 30 * kMillisecond, true);
  EXPECT_GT(control_->window(), 2 * before);
}

TEST_F(Delay, AWindowThatNobodyFilledDoesNotGrow) {
  Round(kRound);
  const Bytes before = control_->window();
  for (int i = 0; i < 20; ++i) Round(kRound, false, 0, 0, false);
  EXPECT_EQ(control_->window(), before);
}

TEST_F(Delay, AQueueAsLongAsTheEndsWereAwayIsKeptForAWhile) {
  Round(kRound);
  for (int i = 0; i < 20; ++i) Round(kRound + kMillisecond);
  const Bytes before = control_->window();
  Round(kRound + 30 * kMillisecond, true);
  for (int i = 0; i < 5; ++i) Round(kRound + 2 * kMillisecond);
  EXPECT_GE(control_->window(), before);
  for (int i = 0; i < 1000; ++i) Round(kRound + 2 * kMillisecond);
  EXPECT_LT(control_->window(), before);
  Round(kRound + 30 * kMillisecond, true);
  for (int i = 0; i < 20; ++i) Round(kRound + 9 * kMillisecond);
  EXPECT_LT(control_->window(), before) << "3 ms at most";
}

TEST_F(Delay, ATimeoutThatWasOnlySlownessIsUndone) {
  for (int i = 0; i < 4; ++i) Round(kRound);
  const Bytes before = control_->window();
  control_->OnTimeout();
  control_->OnTimeout();
  EXPECT_LT(control_->window(), before / 4);
  control_->OnTimeoutUndone();
  EXPECT_EQ(control_->window(), before);
}

TEST_F(Delay, ATimeoutThatARoundTripFollowedIsNotUndone) {
  for (int i = 0; i < 4; ++i) Round(kRound);
  const Bytes before = control_->window();
  control_->OnTimeout();
  Round(kRound);
  control_->OnTimeoutUndone();
  EXPECT_LT(control_->window(), before / 2);
}

TEST_F(Delay, ALittleDamageCostsNothingAndMuchLossDoes) {
  for (int i = 0; i < 4; ++i) Round(kRound);
  const Bytes before = control_->window();
  Round(kRound, false, before / 100);
  EXPECT_GE(control_->window(), before);
  Round(kRound, false, before);
  EXPECT_LE(control_->window(), before * 3 / 2) << "halved, and then grown by what came";
}

TEST_F(Delay, MarksOfRoutersMakeItShrink) {
  for (int i = 0; i < 4; ++i) Round(kRound);
  const Bytes before = control_->window();
  for (int i = 0; i < 20; ++i) Round(kRound, false, 0, 1);
  EXPECT_LT(control_->window(), before / 4);
}

}  // namespace
}  // namespace weir::transport::dpdk
