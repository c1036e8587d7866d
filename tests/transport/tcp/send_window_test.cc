#include "transport/tcp/send_window.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::transport::tcp {
namespace {

constexpr Bytes kSegment = 1448;

SendWindow Window(Nanoseconds round_trip) {
  SendWindow window({256 * 1024, 3 * kMillisecond});
  window.OnPath(round_trip, kSegment);
  return window;
}

/// A path that takes `rate` bytes a second, but never more in a round trip than the window has, for `span` from *now.
void Drive(BytesPerSecond rate, Nanoseconds round_trip, Nanoseconds span, SendWindow* window, Nanoseconds* now,
           Bytes* acknowledged) {
  for (const Nanoseconds end = *now + span; *now < end; *now += kMillisecond) {
    const double window_rate = static_cast<double>(window->limit()) / ToSeconds(std::max(round_trip, kMicrosecond));
    *acknowledged += static_cast<Bytes>(std::min(rate, window_rate) * 1e-3);
    window->OnAcknowledged(*now, *acknowledged);
  }
}

TEST(SendWindow, BeginsWithTheMost) {
  EXPECT_EQ(Window(20 * kMicrosecond).limit(), Bytes{25'000'000'000} * 20 / 1'000'000);
  EXPECT_EQ(Window(0).limit(), 256u * 1024);
}

TEST(SendWindow, OnAShortPathLeavesNoMoreInTheKernelThanTheMessage) {
  const SendWindow window = Window(0);
  EXPECT_EQ(window.LimitFor(1), 64u * 1024);
  EXPECT_EQ(window.LimitFor(100'000), 100'000u);
  EXPECT_EQ(window.LimitFor(Bytes{1} << 30), 256u * 1024);
}

TEST(SendWindow, OnALongPathFillsItWithSmallMessagesToo) {
  const SendWindow window = Window(50 * kMillisecond);
  EXPECT_EQ(window.LimitFor(1), window.limit());
}

TEST(SendWindow, OnASlowPathHoldsWhatPassesInTheQueueTimeAndTwoRoundTrips) {
  SendWindow window = Window(kMillisecond);
  Nanoseconds now = kSecond;
  Bytes acknowledged = 0;
  Drive(10e6, kMillisecond, kSecond, &window, &now, &acknowledged);
  EXPECT_NEAR(static_cast<double>(window.limit()), 10e6 * 5e-3 + 8192, 1000);
}

TEST(SendWindow, NeverHoldsLessThanAReceiverAcknowledgesAtOnce) {
  SendWindow window = Window(kMicrosecond);
  Nanoseconds now = kSecond;
  Bytes acknowledged = 0;
  Drive(1e4, kMicrosecond, kSecond, &window, &now, &acknowledged);
  EXPECT_EQ(window.limit(), 16u * 1024);
  window.OnPath(kMicrosecond, 65483);
  EXPECT_EQ(window.limit(), 4u * 65483);
  EXPECT_EQ(window.least(), 4u * 65483);
}

TEST(SendWindow, GrowsUntilALongPathIsFull) {
  constexpr Nanoseconds kRoundTrip = 50 * kMillisecond;
  SendWindow window = Window(kRoundTrip);
  Nanoseconds now = kSecond;
  Bytes acknowledged = 0;
  Drive(1e5, kRoundTrip, 2 * kSecond, &window, &now, &acknowledged);  // It was slow before.
  EXPECT_LT(window.limit(), 64u * 1024);
  Drive(1.25e9, kRoundTrip, 2 * kSecond, &window, &now, &acknowledged);
  EXPECT_GE(window.limit(), static_cast<Bytes>(1.25e9 * ToSeconds(kRoundTrip)));
  EXPECT_NEAR(window.rate(), 1.25e9, 1.25e7);
}

TEST(SendWindow, ChannelsThatShareAPathComeToShareItEvenly) {
  constexpr double kRate = 100e6;
  std::vector<SendWindow> windows(4, Window(kMicrosecond));
  std::vector<double> acknowledged(4, 0);
  Nanoseconds now = kSecond;
  windows[0].OnAcknowledged(now, 0);
  windows[0].OnAcknowledged(now += 10 * kMillisecond, 500'000);  // It was here before, and has half of the path.
  for (int i = 0; i < 2000; ++i) {
    double waiting = 0;
    for (const SendWindow& window : windows) waiting += static_cast<double>(window.limit());
    now += kMillisecond;
    for (std::size_t c = 0; c < windows.size(); ++c) {
      acknowledged[c] += kRate * 1e-3 * static_cast<double>(windows[c].limit()) / waiting;
      windows[c].OnAcknowledged(now, static_cast<Bytes>(acknowledged[c]));
    }
  }
  double waiting = 0;
  for (const SendWindow& window : windows) {
    EXPECT_NEAR(window.rate(), kRate / 4, kRate / 40);
    waiting += static_cast<double>(window.limit());
  }
  EXPECT_LT(waiting / kRate, 5e-3) << "seconds that a newcomer waits";
}

TEST(SendWindow, APauseSaysNothingAboutThePath) {
  SendWindow window = Window(kMillisecond);
  Nanoseconds now = kSecond;
  Bytes acknowledged = 0;
  Drive(30e6, kMillisecond, kSecond, &window, &now, &acknowledged);
  const Bytes before = window.limit();
  for (int i = 0; i < 1000; ++i) {
    window.OnPause();
    window.OnAcknowledged(now += kMillisecond, acknowledged);
  }
  EXPECT_EQ(window.limit(), before);
  Drive(3e6, kMillisecond, kSecond, &window, &now, &acknowledged);
  EXPECT_LT(window.limit(), before / 3);
}

TEST(SendWindow, FollowsARateThatFallsWithinAFewDozenMilliseconds) {
  SendWindow window = Window(kMillisecond);
  Nanoseconds now = kSecond;
  Bytes acknowledged = 0;
  Drive(30e6, kMillisecond, kSecond, &window, &now, &acknowledged);
  Drive(4e6, kMillisecond, 60 * kMillisecond, &window, &now, &acknowledged);
  EXPECT_LT(window.rate(), 8e6);
}

}  // namespace
}  // namespace weir::transport::tcp
