#include "scheduler/sim/coflowsim/repeated_subtraction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "scheduler/sim/coflowsim/java_random.h"

namespace weir::scheduler::coflowsim {
namespace {

double InALoop(double value, const std::vector<double>& amounts, std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) {
    for (const double amount : amounts) {
      value -= amount;
    }
  }
  return value;
}

TEST(RepeatedSubtraction, LeavesTheBitsThatALoopLeaves) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> amounts(1 + random() % 11);
    double sum = 0;
    for (double& amount : amounts) {
      // Thirds and the like are rounded each time; short fractions fall halfway between two doubles often.
      const double whole = std::ldexp(1.0 + static_cast<double>(random() % 64), -static_cast<int>(random() % 40));
      amount = random() % 2 == 0 ? 1'048'576.0 / static_cast<double>(1 + random() % 300) : whole;
      sum += amount;
    }
    const auto times = static_cast<std::int64_t>(random() % 3000);
    const double value = sum * (static_cast<double>(times) + 3) * (1 + static_cast<double>(random() % 1000) / 100);
    ASSERT_EQ(SubtractRepeatedly(value, amounts, times), InALoop(value, amounts, times)) << "seed " << seed;
  }
}

TEST(RepeatedSubtraction, OfOneAmountLeavesTheBitsThatALoopLeaves) {
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    std::mt19937_64 random(seed);
    const double amount = random() % 2 == 0 ? 1'048'576.0 / static_cast<double>(1 + random() % 300)
                                            : std::ldexp(1.0 + static_cast<double>(random() % 64), -20);
    const auto times = static_cast<std::int64_t>(2 + random() % 300);
    // Down to anywhere: far from a power of two, near one, and through several.
    const double value = amount * (static_cast<double>(times) + static_cast<double>(1 + random() % 4000) / 1000);
    ASSERT_EQ(SubtractOneRepeatedly(value, amount, times), InALoop(value, {amount}, times)) << "seed " << seed;
  }
}

TEST(RepeatedSubtraction, TiesGoToEvenAsInALoop) {
  // The difference falls halfway between two doubles every time; whether the last bit was set matters once.
  for (const double last_bit : {0.0, 1.0}) {
    const double value = 0x1p52 + 1000 + last_bit;
    for (const std::int64_t times : {1, 2, 3, 100}) {
      EXPECT_EQ(SubtractRepeatedly(value, {{0.5}}, times), InALoop(value, {0.5}, times));
      EXPECT_EQ(SubtractRepeatedly(value, {{1.5, 0.5}}, times), InALoop(value, {1.5, 0.5}, times));
    }
  }
}

TEST(RepeatedSubtraction, WhatIsTooSmallToMatterTakesNothing) {
  EXPECT_EQ(SubtractRepeatedly(0x1p60, {{1.0}}, 1'000'000'000'000), 0x1p60);
}

TEST(JavaRandom, DrawsWhatTheJavaClassLibraryDraws) {
  JavaRandom seventeen(17);
  EXPECT_EQ(seventeen.NextDouble(), 0.7323115139597316);
  EXPECT_EQ(seventeen.NextDouble(), 0.6973704783607497);
  EXPECT_EQ(JavaRandom(42).NextDouble(), 0.7275636800328681);
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
