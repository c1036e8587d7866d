#include "scheduler/sim/time_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

TEST(TimeHistogram, IsEmptyAtFirst) {
  const TimeHistogram empty;
  EXPECT_EQ(empty.count(), 0u);
  EXPECT_EQ(empty.Quantile(0.5), 0u);
  EXPECT_EQ(empty.mean(), 0);
}

TEST(TimeHistogram, SmallTimesAreExactAndNegativeOnesAreZero) {
  TimeHistogram times;
  for (const std::int64_t ns : {-5, 3, 31}) {
    times.Add(ns);
  }
  EXPECT_EQ(times.Quantile(0.3), 0u);
  EXPECT_EQ(times.Quantile(0.5), 3u);
  EXPECT_EQ(times.Quantile(1), 31u);
  EXPECT_EQ(times.largest(), 31u);
}

TEST(TimeHistogram, QuantilesAreAtMostASixteenthTooLarge) {
  std::mt19937_64 random(3);
  TimeHistogram times;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(random() >> (1 + random() % 63));
    times.Add(static_cast<std::int64_t>(all.back()));
  }
  std::ranges::sort(all);
  for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 1.0}) {
    const std::uint64_t exact = all[static_cast<std::size_t>(share * 20'000) - 1];
    EXPECT_GE(times.Quantile(share), exact) << share;
    EXPECT_LE(times.Quantile(share), exact + exact / 16) << share;
  }
}

}  // namespace
}  // namespace weir::scheduler
