// Max-min that guesses the order in which ports get full from the last time, against max-min flow by flow from the
// start (scheduler/share), on thousands of small random cases. A failure prints its seed: Case(seed) is the case.
#include "scheduler/rate/ordered_filling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "scheduler/share/max_min.h"

namespace weir::scheduler {
namespace {

constexpr std::uint64_t kSeeds = 4000;
constexpr int kSteps = 12;
constexpr double kTolerance = 1e-8;  // of a room of about 1: shares that are 1e-10 apart are the same

/// A group of flows on a big switch, with some room for it on every link.
struct Case {
  explicit Case(std::uint64_t seed, std::uint32_t ports_max = 10)
      : random(seed), fabric(Fabric::BigSwitch(2 + Pick(ports_max - 1))), scratch(fabric.links(), UINT32_MAX) {
    const std::uint64_t sparse = 1 + Pick(3);
    std::vector<MatchFlow> flows = {{0, 0, 1 + Pick(100'000)}};
    for (std::uint32_t s = 0; s < fabric.ports(); ++s) {
      for (std::uint32_t d = s == 0 ? 1 : 0; d < fabric.ports(); ++d) {
        if (Pick(sparse) == 0) {
          flows.push_back({s, d, 1 + Pick(100'000)});
        }
      }
    }
    group.Open(fabric, flows, 0, &scratch);
    if (Pick(2) == 0) {
      group.SetProportional(1e-8);
    }
    NewRoom();
  }

  std::uint32_t Pick(std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); }

  /// Often the same on several links, or none.
  void NewRoom() {
    room.resize(group.links().size());
    for (double& each : room) {
      each = 0.25 * Pick(9);
    }
  }
  /// A little more or less, on all links or on one; rarely much.
  void ChangeRoom() {
    switch (Pick(6)) {
      case 0:
        NewRoom();
        break;
      case 1:
        room[Pick(room.size())] = 0.25 * Pick(9);
        break;
      default:
        for (double& each : room) {
          each *= 1 + 0.002 * (Pick(101) - 50.0);
        }
    }
  }
  void EndSomeFlows() {
    const std::int64_t next = group.NextEnd();
    if (next < std::numeric_limits<std::int64_t>::max() && Pick(2) == 0) {
      std::vector<EndedFlow> ended;
      group.Settle(next);
      group.TakeEnded(0, &ended);
    }
  }

  /// Rates above the proportional part, of the flows that have not ended.
  std::vector<double> Rates() const {
    std::vector<double> rates;
    for (std::size_t f = 0; f < group.flows(); ++f) {
      if (!group.Ended(f)) {
        rates.push_back(group.Rate(f) - group.proportional() * group.Left(f));
      }
    }
    return rates;
  }
  std::vector<double> Expected() const {
    std::vector<ShareFlow> flows;
    for (std::size_t f = 0; f < group.flows(); ++f) {
      if (!group.Ended(f)) {
        flows.push_back({group.PathOf(f), 1, std::numeric_limits<double>::infinity()});
      }
    }
    std::vector<double> left = room;
    std::vector<double> rates;
    MaxMin().Fill(flows, left, rates);
    return rates;
  }

  std::mt19937_64 random;
  Fabric fabric;
  std::vector<std::uint32_t> scratch;
  FlowGroup group;
  std::vector<double> room;
};

void ExpectEqual(const std::vector<double>& values, const std::vector<double>& expected, std::uint64_t seed, int step) {
  ASSERT_EQ(values.size(), expected.size()) << "seed " << seed << " step " << step;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], kTolerance) << "seed " << seed << " step " << step << " at " << i;
  }
}

TEST(OrderedFilling, AfterAnyChangesEqualsMaxMinFlowByFlow) {
  OrderedFilling filling;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case c(seed);
    for (int step = 0; step < kSteps && c.group.live() > 0; ++step) {
      filling.Fill(&c.group, c.room);
      ExpectEqual(c.Rates(), c.Expected(), seed, step);
      std::vector<double> use(c.group.links().size(), 0);
      std::vector<double> sums;
      for (std::size_t f = 0; f < c.group.flows(); ++f) {
        for (const std::uint32_t local : c.group.PathOf(f)) {
          use[local] += c.group.Rate(f);
        }
      }
      for (std::size_t local = 0; local < use.size(); ++local) {
        sums.push_back(c.group.Use(local));
      }
      ExpectEqual(sums, use, seed, step);
      if (HasFatalFailure()) {
        return;
      }
      c.EndSomeFlows();
      c.ChangeRoom();
    }
  }
  EXPECT_GT(filling.taken_back(), 0U);
}

TEST(OrderedFilling, WithNothingNewNoRateChangesAndNothingIsTakenBack) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Case c(seed);
    OrderedFilling filling;
    filling.Fill(&c.group, c.room);
    const std::uint64_t steps = filling.taken_back();
    const std::vector<double> before = c.Rates();
    ASSERT_EQ(filling.Fill(&c.group, c.room), 0U) << "seed " << seed;
    ASSERT_EQ(c.Rates(), before) << "seed " << seed;
    ASSERT_EQ(filling.taken_back(), steps) << "seed " << seed;
  }
}

// As at the start of a large coflow: the order is as bad as it can be, and is looked for; then small changes need no
// such look.
TEST(OrderedFilling, LooksForTheOrderOnceAndFollowsItThen) {
  constexpr std::uint32_t kPorts = 100;
  const Fabric fabric = Fabric::BigSwitch(kPorts);
  std::vector<std::uint32_t> scratch(fabric.links(), UINT32_MAX);
  std::vector<MatchFlow> flows;
  for (std::uint32_t s = 0; s < kPorts; ++s) {
    for (std::uint32_t d = 0; d < kPorts; ++d) {
      flows.push_back({s, d, 1'000'000});
    }
  }
  FlowGroup group;
  group.Open(fabric, flows, 0, &scratch);
  std::vector<double> room(fabric.links());
  for (std::size_t local = 0; local < room.size(); ++local) {
    room[local] = 2.0 - 0.005 * static_cast<double>(local);
  }
  OrderedFilling filling;
  filling.Fill(&group, room);
  EXPECT_EQ(filling.searches(), 1U);
  std::mt19937_64 random(1);
  for (int step = 0; step < 20; ++step) {
    for (double& each : room) {
      each *= 1 + 1e-6 * static_cast<double>(random() % 1000);
    }
    filling.Fill(&group, room);
  }
  EXPECT_EQ(filling.searches(), 1U);
}

TEST(OrderedFilling, AllKernelsAddUpTheSame) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::size_t words = 1 + random() % 4;
    const std::size_t size = words * 64 - random() % 64;
    std::vector<double> values(size);
    std::vector<std::uint64_t> bits(words);
    double expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = static_cast<double>(random() % 1000);  // Whole numbers: the order of sums makes no difference.
      if (random() % 3 > 0) {
        bits[i / 64] |= std::uint64_t{1} << (i % 64);
        expected += values[i];
      }
    }
    for (const OrderedFilling::SumKernel kernel : OrderedFilling::SumKernels()) {
      ASSERT_EQ(kernel(values.data(), bits.data(), words), expected) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
