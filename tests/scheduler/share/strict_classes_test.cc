#include "scheduler/share/strict_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

constexpr double kUncapped = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-6;

/// Flows with their own memory for the links, which ShareFlow only points to.
struct Problem {
  std::vector<std::vector<LinkIndex>> paths;
  std::vector<ShareFlow> flows;
  std::vector<std::uint8_t> classes;
  std::vector<double> floors;
  std::vector<BytesPerSecond> capacity;

  Problem(std::vector<double> the_floors, std::vector<BytesPerSecond> the_capacity)
      : floors(std::move(the_floors)), capacity(std::move(the_capacity)) {}

  void Add(std::uint8_t which, std::vector<LinkIndex> links, double weight = 1, BytesPerSecond cap = kUncapped) {
    paths.push_back(std::move(links));
    flows.push_back({{}, weight, cap});
    classes.push_back(which);
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i].links = paths[i];
  }
  std::vector<BytesPerSecond> Solve() const {
    StrictClasses shares;
    std::vector<BytesPerSecond> room = capacity;
    std::vector<BytesPerSecond> rates;
    shares.Fill(flows, classes, floors, room, rates);
    return rates;
  }
};

TEST(StrictClasses, TheBestClassTakesAllButTheFloorsOfTheOthers) {
  Problem problem({0, 0.05, 0.01}, {100});
  problem.Add(0, {0});
  problem.Add(0, {0});
  problem.Add(1, {0});
  problem.Add(2, {0});
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{47, 47, 5, 1}));
}

TEST(StrictClasses, FlowsWithoutLinksOrBoundsAreSurvived) {
  Problem problem({0, 0.05}, {100});
  problem.Add(0, {});
  problem.Add(1, {0});
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{kUncapped, 100}));
}

TEST(StrictClasses, AFloorThatNobodyUsesIsNotKept) {
  Problem problem({0, 0.05, 0.01}, {100});
  problem.Add(0, {0});
  problem.Add(1, {0}, 1, 2);
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{98, 2}));
  problem.Add(2, {0}, 1, 0);
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{98, 2, 0}));
}

TEST(StrictClasses, WhatABetterClassLeavesGoesToTheNext) {
  Problem problem({0, 0.05, 0.01}, {100});
  problem.Add(0, {0}, 1, 30);
  problem.Add(1, {0}, 3);
  problem.Add(1, {0}, 1);
  problem.Add(2, {0});
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{30, 51.75, 17.25, 1}));
}

TEST(StrictClasses, WithoutFloorsTheOthersMayGetNothing) {
  Problem problem({0, 0, 0}, {100, 50});
  problem.Add(0, {0});
  problem.Add(1, {0, 1});
  problem.Add(2, {1});
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{100, 0, 50}));
}

TEST(StrictClasses, WhatWasKeptInVainIsFilledAgain) {
  // Kept for class 1 on link 0: 10. But its two links are then so full with class 0 that it is bounded by link 1.
  Problem problem({0, 0.1}, {100, 20});
  problem.Add(0, {0});
  problem.Add(1, {0, 1});
  problem.Add(1, {1});
  const auto rates = problem.Solve();
  EXPECT_NEAR(rates[0] + rates[1], 100, kTolerance);
  EXPECT_NEAR(rates[1] + rates[2], 20, kTolerance);
}

TEST(StrictClasses, NoFlowsAndNoLinks) {
  Problem problem({0, 0.05, 0.01}, {});
  EXPECT_TRUE(problem.Solve().empty());
  problem.Add(1, {}, 1, 7);
  EXPECT_EQ(problem.Solve(), (std::vector<BytesPerSecond>{7}));
}

Problem RandomProblem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem({0, 0.01 * static_cast<double>(random() % 50), 0.01 * static_cast<double>(random() % 50)}, {});
  const std::size_t links = 1 + random() % 6;
  for (std::size_t i = 0; i < links; ++i) problem.capacity.push_back(static_cast<double>(1 + random() % 1000));
  for (std::size_t left = random() % 12; left > 0; --left) {
    std::vector<LinkIndex> all(links);
    std::iota(all.begin(), all.end(), 0u);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % std::min<std::size_t>(links, 3));
    const double cap = random() % 3 == 0 ? static_cast<double>(random() % 300) : kUncapped;
    problem.Add(static_cast<std::uint8_t>(random() % 3), std::move(all), 1 + static_cast<double>(random() % 4), cap);
  }
  return problem;
}

TEST(StrictClasses, FeasibleWorkConservingAndNoWorseForTheBestClassThanWithTheFloorsTakenAway) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Problem problem = RandomProblem(seed);
    const auto rates = problem.Solve();
    std::vector<double> used(problem.capacity.size(), 0.0);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      ASSERT_GE(rates[f], 0);
      ASSERT_LE(rates[f], problem.flows[f].cap * (1 + kTolerance));
      for (const LinkIndex link : problem.paths[f]) used[link] += rates[f];
    }
    for (std::size_t link = 0; link < used.size(); ++link)
      ASSERT_LE(used[link], problem.capacity[link] * (1 + kTolerance));
    for (std::size_t f = 0; f < rates.size(); ++f) {
      const bool full = std::ranges::any_of(
          problem.paths[f], [&](LinkIndex link) { return used[link] >= problem.capacity[link] * (1 - kTolerance); });
      ASSERT_TRUE(full || rates[f] >= problem.flows[f].cap * (1 - kTolerance)) << "flow " << f;
    }
    // The smallest share of the best class is at least what the links less all floors would give it.
    Problem alone({0}, {});
    for (const double capacity : problem.capacity) {
      alone.capacity.push_back(capacity * (1 - problem.floors[1] - problem.floors[2]));
    }
    double least = kUncapped;
    for (std::size_t f = 0; f < rates.size(); ++f) {
      if (problem.classes[f] != 0) continue;
      alone.Add(0, problem.paths[f], problem.flows[f].weight, problem.flows[f].cap);
      least = std::min(least, rates[f] / problem.flows[f].weight);
    }
    double least_alone = kUncapped;
    const auto rates_alone = alone.Solve();
    for (std::size_t f = 0; f < rates_alone.size(); ++f) {
      least_alone = std::min(least_alone, rates_alone[f] / alone.flows[f].weight);
    }
    if (!rates_alone.empty()) {
      ASSERT_GE(least, least_alone * (1 - kTolerance));
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
