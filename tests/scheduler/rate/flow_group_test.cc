#include "scheduler/rate/flow_group.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/scheduler/rate/random_rates.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

TEST(FlowGroup, WithoutRatesNothingEverEnds) {
  const Fabric fabric = Fabric::BigSwitch(2);
  std::vector<std::uint32_t> scratch(4, UINT32_MAX);
  FlowGroup group;
  group.Open(fabric, std::vector<MatchFlow>{{0, 1, 100}}, 5, &scratch);
  EXPECT_EQ(group.NextEnd(), kNoEnd);
  group.Settle(1'000'000);
  EXPECT_EQ(group.Left(0), 100);
  EXPECT_EQ(group.Load(0), 100);
}

TEST(FlowGroup, EqualFlowsOnOneLinkEndTogetherAtTheirShare) {
  const Fabric fabric = Fabric::BigSwitch(3);
  std::vector<std::uint32_t> scratch(6, UINT32_MAX);
  FlowGroup group;
  group.Open(fabric, std::vector<MatchFlow>{{0, 2, 100}, {1, 2, 100}}, 0, &scratch);
  const RankedGroup ranked[] = {{&group}};
  NewRate("maxmin")->Allocate(ranked, fabric.capacity());
  EXPECT_DOUBLE_EQ(group.Rate(0), 0.5);
  EXPECT_EQ(group.NextEnd(), 200);
  std::vector<EndedFlow> ended;
  group.Settle(200);
  group.TakeEnded(7, &ended);
  ASSERT_EQ(ended.size(), 2u);
  EXPECT_EQ(ended[0].group, 7u);
  EXPECT_EQ(ended[0].bytes, 100);
  EXPECT_EQ(group.live(), 0u);
  EXPECT_EQ(group.NextEnd(), kNoEnd);
}

/// Between two allocations a flow moves in a straight line, whatever its rate is made of.
TEST(FlowGroup, MovesExactlyRateTimesTime) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    for (const char* name : {"maxmin", "greedy", "madd"}) {
      RandomCase c(seed);
      NewRate(name)->Allocate(c.order, c.capacity);
      for (const auto& group : c.groups) {
        std::vector<double> left;
        std::vector<double> rate;
        for (std::size_t f = 0; f < group->flows(); ++f) {
          left.push_back(group->Left(f));
          rate.push_back(group->Rate(f));
        }
        const std::int64_t end = group->NextEnd();
        if (end == kNoEnd || end < 2) {
          continue;
        }
        group->Settle(end / 2);
        group->Settle(end - 1);
        for (std::size_t f = 0; f < group->flows(); ++f) {
          const double expected = left[f] - rate[f] * static_cast<double>(end - 1);
          ASSERT_NEAR(group->Left(f), expected, 1e-6 * left[f] + 1e-6) << name << " seed " << seed << " flow " << f;
          ASSERT_NEAR(group->Rate(f), rate[f], 1e-6) << name << " seed " << seed << " flow " << f;
          ASSERT_GT(group->Left(f), 0) << name << " seed " << seed << " flow " << f;
        }
        std::vector<EndedFlow> ended;
        group->Settle(end);
        group->TakeEnded(0, &ended);
        ASSERT_FALSE(ended.empty()) << name << " seed " << seed;
      }
    }
  }
}

double LargestSentOf(const FlowGroup& group) {
  double largest = 0;
  for (std::size_t f = 0; f < group.flows(); ++f) {
    largest = std::max(largest, group.Ended(f) ? 0 : static_cast<double>(group.flow(f).bytes) - group.Left(f));
  }
  return largest;
}

/// What is kept of the foremost flows is what a look at all flows finds, whatever happens between: new rates, ends of
/// flows, changes of capacity, everything that is left scaled down. Some groups are asked at every step, some later on
/// for the first time, some hardly ever.
TEST(FlowGroup, WhatTheForemostFlowHasSentIsWhatALookAtAllOfThemFinds) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    for (const char* name : {"maxmin", "greedy", "madd", "fair"}) {
      RandomCase c(seed);
      const auto rate = NewRate(name);
      std::int64_t now = 0;
      for (int step = 0; step < 12; ++step) {
        rate->Allocate(c.order, c.capacity);
        now += static_cast<std::int64_t>(1 + c.random() % 20'000);
        std::vector<EndedFlow> ended;
        for (const auto& group : c.groups) {
          for (std::int64_t end = group->NextEnd(); end <= now; end = group->NextEnd()) {
            group->Settle(end);
            group->TakeEnded(0, &ended);
            if (c.random() % 4 == 0) {
              ASSERT_NEAR(group->LargestSent(), LargestSentOf(*group), 1e-4) << name << " seed " << seed;
            }
          }
          group->Settle(now);
          if (c.random() % 2 == 0) {
            ASSERT_NEAR(group->LargestSent(), LargestSentOf(*group), 1e-4) << name << " seed " << seed;
          }
        }
        c.capacity[c.random() % c.capacity.size()] = 0.25 * static_cast<double>(c.random() % 5);
      }
    }
  }
}

/// Under max-min, to the tick. Where flows have proportional parts it may take several looks, and never too long.
TEST(FlowGroup, WhenOneFlowHasSentSoMuchIsKnownBefore) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    for (const char* name : {"maxmin", "greedy", "madd", "fair"}) {
      RandomCase c(seed);
      NewRate(name)->Allocate(c.order, c.capacity);
      for (const auto& group : c.groups) {
        const double bytes = static_cast<double>(1 + c.random() % 30'000);
        const bool exact = group->proportional() <= 0;
        int looks = 0;
        std::int64_t now = 0;
        for (; LargestSentOf(*group) < bytes - 1e-3; ++looks) {
          const std::int64_t when = group->WhenOneSent(bytes);
          ASSERT_GT(when, now) << name << " seed " << seed;
          ASSERT_EQ(group->WhenOneSent(bytes), when) << name << " seed " << seed;
          if (when >= group->NextEnd()) {
            break;
          }
          group->Settle(when - 1);
          ASSERT_LT(LargestSentOf(*group), bytes * (exact ? 1 : 1.001) + 1e-3) << name << " seed " << seed;
          group->Settle(now = when);
        }
        ASSERT_LE(looks, exact ? 1 : 3000) << name << " seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
