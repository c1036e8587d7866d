#include "transport/pacer/token_bucket.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::transport {
namespace {

/// Takes pieces whenever they are ready, for `span`; returns the bytes.
Bytes Drain(TokenBucket* bucket, Bytes piece, Nanoseconds from, Nanoseconds span) {
  Bytes total = 0;
  Nanoseconds now = from;
  while (true) {
    const Bytes got = bucket->Take(piece, piece, now);
    total += got;
    if (got != 0) continue;
    now = bucket->ReadyAt(piece);
    if (now > from + span) return total;
  }
}

class TokenBucketRates : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TokenBucketRates, AnHourAtOneRateIsExactToThePiece) {
  const std::uint64_t rate = GetParam() / 8;
  // So many pieces that rounding any of them would show, so few that the test is quick.
  const Bytes piece = std::max<Bytes>(1024, rate * 3600 / 1'000'000);
  const Nanoseconds hour = 3600 * kSecond;
  TokenBucket bucket;
  bucket.Set(rate, 2 * piece, 0);
  const Bytes total = Drain(&bucket, piece, 0, hour);
  EXPECT_LE(total, rate * 3600 + 2 * piece);
  EXPECT_GT(total + piece, rate * 3600);
}

INSTANTIATE_TEST_SUITE_P(OneMegabitToHundredGigabit, TokenBucketRates,
                         testing::Values(1'000'000, 7'654'321, 100'000'000, 999'999'937, 10'000'000'000,
                                         100'000'000'000));

TEST(TokenBucket, NoSpanSeesMoreThanBurstAndRate) {
  constexpr std::uint32_t kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  const std::uint64_t rate = 1'234'567'891;
  const Bytes burst = 200'000;
  TokenBucket bucket;
  bucket.Set(rate, burst, 0);
  std::vector<std::pair<Nanoseconds, Bytes>> taken;
  Nanoseconds now = 0;
  for (int i = 0; i < 2000; ++i) {
    now += static_cast<Nanoseconds>(random() % 200'000);
    taken.emplace_back(now, bucket.Take(random() % 150'000, 1 + random() % 1000, now));
  }
  for (std::size_t from = 0; from < taken.size(); from += 7) {
    Bytes sum = 0;
    for (std::size_t to = from; to < taken.size(); ++to) {
      sum += taken[to].second;
      const double allowed =
          static_cast<double>(burst) + static_cast<double>(rate) * ToSeconds(taken[to].first - taken[from].first);
      ASSERT_LE(static_cast<double>(sum), allowed + 1) << from << ".." << to;
    }
  }
}

TEST(TokenBucket, ReadyAtIsTheFirstNanosecondThatSucceeds) {
  TokenBucket bucket;
  bucket.Set(3, 10, 0);  // A rate that divides no second.
  ASSERT_EQ(bucket.Take(10, 10, 0), 10u);
  const Nanoseconds ready = bucket.ReadyAt(7);
  EXPECT_EQ(bucket.Take(7, 7, ready - 1), 0u);
  EXPECT_EQ(bucket.Take(7, 7, ready), 7u);
}

TEST(TokenBucket, ANewRateHoldsFromThenOn) {
  TokenBucket bucket;
  bucket.Set(1'000'000, 1000, 0);
  ASSERT_EQ(bucket.Take(1000, 1000, 0), 1000u);
  bucket.Set(100'000'000, 1000, 0);
  EXPECT_EQ(bucket.ReadyAt(1000), 10 * kMicrosecond);
  bucket.Set(1'000'000, 1000, 5 * kMicrosecond);  // 500 bytes were earned at the higher rate.
  EXPECT_EQ(bucket.ReadyAt(1000), 505 * kMicrosecond);
}

TEST(TokenBucket, ASmallerBurstCutsWhatWasSaved) {
  TokenBucket bucket;
  bucket.Set(1000, 5000, 0);
  bucket.Set(1000, 100, 0);
  EXPECT_EQ(bucket.Take(5000, 1, 0), 100u);
}

TEST(TokenBucket, WhoHadMoreToSendIsKeptMoreForWhenItComesLate) {
  TokenBucket bucket;
  bucket.Set(1000, 100, 0, 400);
  EXPECT_EQ(bucket.Take(1000, 1, 0), 100u);
  EXPECT_EQ(bucket.Take(1000, 1, kSecond), 100u);
  bucket.Want();
  EXPECT_EQ(bucket.Take(1000, 1, kSecond + 300 * kMillisecond), 300u);
  EXPECT_EQ(bucket.Take(1000, 1, 2 * kSecond), 400u);
  EXPECT_FALSE(bucket.Has(301, 2 * kSecond + 300 * kMillisecond));
  bucket.Rest();
  EXPECT_EQ(bucket.Take(1000, 1, 2 * kSecond + 300 * kMillisecond), 100u);
}

TEST(TokenBucket, WhatAnOwnerThatIsLateHasSavedIsWorthANewBurstAtANewRate) {
  TokenBucket bucket;
  bucket.Set(1000, 100, 0, 400);
  bucket.Want();
  bucket.Set(1000, 100, kSecond, 400);  // The same again costs nothing.
  ASSERT_TRUE(bucket.Has(400, kSecond));
  bucket.Set(500, 50, kSecond, 200);
  EXPECT_EQ(bucket.Take(1000, 1, kSecond), 50u);
}

TEST(TokenBucket, ReturnedBytesMayBeTakenAgainButNeverFillBeyondTheBurst) {
  TokenBucket bucket;
  bucket.Set(1000, 100, 0);
  ASSERT_EQ(bucket.Take(60, 60, 0), 60u);
  bucket.Return(20);
  EXPECT_EQ(bucket.Take(1000, 1, 0), 60u);
  bucket.Return(1'000'000);
  EXPECT_EQ(bucket.Take(1000, 1, 0), 100u);
}

TEST(TokenBucket, AClockThatJumpsBackBringsNothing) {
  TokenBucket bucket;
  bucket.Set(1000, 100, kSecond);
  ASSERT_EQ(bucket.Take(100, 100, kSecond), 100u);
  EXPECT_EQ(bucket.Take(1, 1, 0), 0u);
  EXPECT_EQ(bucket.Take(1, 1, kSecond + kMillisecond), 1u);
}

TEST(TokenBucket, ValuesOutOfRangeAreCut) {
  TokenBucket bucket;
  bucket.Set(~0ull, ~0ull, 0);
  EXPECT_EQ(bucket.Take(~0ull, 1, 0), TokenBucket::kBurstMax);
  bucket.Set(0, 0, 0);
  EXPECT_EQ(bucket.Take(~0ull, 1, 1000 * kSecond), 1u);
}

}  // namespace
}  // namespace weir::transport
