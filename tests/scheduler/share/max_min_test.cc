#include "scheduler/share/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace weir::scheduler {
namespace {

constexpr double kUncapped = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-6;  // Relative: sums of a few dozen rates, and 1e-9 where a link counts as full.

/// Flows with their own memory for the links, which ShareFlow only points to.
struct Problem {
  std::vector<std::vector<LinkIndex>> paths;
  std::vector<ShareFlow> flows;
  std::vector<BytesPerSecond> capacity;

  void Add(std::vector<LinkIndex> links, double weight = 1, BytesPerSecond cap = kUncapped) {
    paths.push_back(std::move(links));
    flows.push_back({{}, weight, cap});
    for (std::size_t i = 0; i < flows.size(); ++i) flows[i].links = paths[i];
  }
};

std::vector<BytesPerSecond> Solve(MaxMin& max_min, const Problem& problem) {
  std::vector<BytesPerSecond> room = problem.capacity;
  std::vector<BytesPerSecond> rates;
  max_min.Fill(problem.flows, room, rates);
  return rates;
}

std::vector<BytesPerSecond> Solve(const Problem& problem) {
  MaxMin max_min;
  return Solve(max_min, problem);
}

Problem RandomProblem(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  const std::size_t links = 1 + random() % 8;
  for (std::size_t i = 0; i < links; ++i) problem.capacity.push_back(static_cast<double>(random() % 1000) + 0.5);
  if (random() % 8 == 0) problem.capacity[0] = 0;  // Nothing left on one link.
  const std::size_t flows = random() % 13;
  for (std::size_t i = 0; i < flows; ++i) {
    std::vector<LinkIndex> all(links);
    std::iota(all.begin(), all.end(), 0u);
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % std::min<std::size_t>(links, 4));
    const double weight = 0.25 * static_cast<double>(1 + random() % 16);
    const double cap = random() % 3 == 0 ? static_cast<double>(random() % 300) : kUncapped;
    problem.Add(std::move(all), weight, cap);
  }
  return problem;
}

std::vector<double> UsedOf(const Problem& problem, const std::vector<BytesPerSecond>& rates) {
  std::vector<double> used(problem.capacity.size(), 0.0);
  for (std::size_t f = 0; f < rates.size(); ++f) {
    for (const LinkIndex link : problem.paths[f]) used[link] += rates[f];
  }
  return used;
}

/// On a full link nobody has more for its weight than `flow`.
bool IsBottleneck(const Problem& problem, const std::vector<BytesPerSecond>& rates, std::size_t flow, LinkIndex link) {
  const double mine = rates[flow] / problem.flows[flow].weight;
  for (std::size_t f = 0; f < rates.size(); ++f) {
    const bool here = std::ranges::find(problem.paths[f], link) != problem.paths[f].end();
    if (here && rates[f] / problem.flows[f].weight > mine * (1 + kTolerance) + kTolerance) return false;
  }
  return true;
}

/// Empty if the rates are the max-min fair ones, else what is wrong.
std::string Fault(const Problem& problem, const std::vector<BytesPerSecond>& rates) {
  const std::vector<double> used = UsedOf(problem, rates);
  for (std::size_t link = 0; link < used.size(); ++link) {
    if (used[link] > problem.capacity[link] * (1 + kTolerance)) return "link " + std::to_string(link) + " is overfull";
  }
  for (std::size_t f = 0; f < rates.size(); ++f) {
    const ShareFlow& flow = problem.flows[f];
    if (rates[f] < 0 || rates[f] > flow.cap) return "flow " + std::to_string(f) + " is beyond its cap";
    if (rates[f] >= flow.cap * (1 - kTolerance)) continue;
    const bool stopped = std::ranges::any_of(flow.links, [&](LinkIndex link) {
      return used[link] >= problem.capacity[link] * (1 - kTolerance) && IsBottleneck(problem, rates, f, link);
    });
    if (!stopped) return "flow " + std::to_string(f) + " could have more";
  }
  return {};
}

TEST(MaxMin, NoFlowsGiveNoRates) {
  Problem problem;
  problem.capacity = {10};
  EXPECT_TRUE(Solve(problem).empty());
}

TEST(MaxMin, OneFlowGetsItsNarrowestLink) {
  Problem problem;
  problem.capacity = {10, 4, 7};
  problem.Add({0, 1, 2});
  EXPECT_EQ(Solve(problem), std::vector<double>({4}));
}

TEST(MaxMin, EqualFlowsShareEqually) {
  Problem problem;
  problem.capacity = {12};
  for (int i = 0; i < 3; ++i) problem.Add({0});
  EXPECT_EQ(Solve(problem), std::vector<double>({4, 4, 4}));
}

TEST(MaxMin, WeightsDivideALink) {
  Problem problem;
  problem.capacity = {12};
  problem.Add({0}, 1);
  problem.Add({0}, 3);
  EXPECT_EQ(Solve(problem), std::vector<double>({3, 9}));
}

TEST(MaxMin, WhatACapLeavesGoesToTheOthers) {
  Problem problem;
  problem.capacity = {12};
  problem.Add({0}, 1, 2);
  problem.Add({0});
  EXPECT_EQ(Solve(problem), std::vector<double>({2, 10}));
}

// The long flow crosses both links; the one that shares its wider link takes what it cannot use.
TEST(MaxMin, ALongFlowIsLimitedByItsWorstLink) {
  Problem problem;
  problem.capacity = {10, 4};
  problem.Add({0, 1});
  problem.Add({0});
  problem.Add({1});
  EXPECT_EQ(Solve(problem), std::vector<double>({2, 8, 2}));
}

TEST(MaxMin, AFlowOnAFullLinkGetsNothingAndHindersNobody) {
  Problem problem;
  problem.capacity = {0, 10};
  problem.Add({0, 1});
  problem.Add({1});
  EXPECT_EQ(Solve(problem), std::vector<double>({0, 10}));
}

TEST(MaxMin, AFlowWithoutLinksGetsItsCap) {
  Problem problem;
  problem.capacity = {10};
  problem.Add({}, 1, 5);
  problem.Add({0});
  EXPECT_EQ(Solve(problem), std::vector<double>({5, 10}));
}

TEST(MaxMin, RoomIsLoweredByWhatWasGiven) {
  Problem problem;
  problem.capacity = {10, 4};
  problem.Add({0, 1});
  MaxMin max_min;
  std::vector<BytesPerSecond> room = problem.capacity;
  std::vector<BytesPerSecond> rates;
  max_min.Fill(problem.flows, room, rates);
  EXPECT_EQ(room, std::vector<double>({6, 0}));
}

TEST(MaxMin, ResultsAreExactOnRandomProblems) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Problem problem = RandomProblem(seed);
    ASSERT_EQ(Fault(problem, Solve(problem)), "") << "RandomProblem(" << seed << ")";
  }
}

TEST(MaxMin, RepeatedUseLeavesNothingBehind) {
  MaxMin used;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Problem problem = RandomProblem(seed);
    ASSERT_EQ(Solve(used, problem), Solve(problem)) << "RandomProblem(" << seed << ")";
  }
}

}  // namespace
}  // namespace weir::scheduler
