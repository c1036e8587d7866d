#include "scheduler/live/fill.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

/// One coflow with random paths and the room it finds.
struct Problem {
  LiveFabric fabric;
  std::vector<WholeRate> room;
  CoflowSlot slot = 0;
};

Problem RandomProblem(std::uint64_t seed, WholeRate largest) {
  std::mt19937_64 random(seed);
  const std::size_t links = 1 + random() % 12;
  std::vector<WholeRate> room;
  for (std::size_t i = 0; i < links; ++i) {
    room.push_back(random() % 8 == 0 ? 0 : 1 + static_cast<WholeRate>(random() % static_cast<std::uint64_t>(largest)));
  }
  Problem problem{.fabric = LiveFabric(room, {.coflows = 1, .flows = 64, .hops = 4}), .room = room};
  std::vector<std::vector<LinkIndex>> paths(1 + random() % 20, std::vector<LinkIndex>(links));
  std::vector<LiveFlow> flows;
  for (auto& path : paths) {
    std::iota(path.begin(), path.end(), 0u);
    std::ranges::shuffle(path, random);
    path.resize(1 + random() % std::min<std::size_t>(links, 4));
    flows.push_back({1, path});
  }
  problem.slot = problem.fabric.Add({CoflowId(1), 0, 0, flows});
  return problem;
}

/// The exact max-min rates, from the reference in scheduler/share.
std::vector<double> Exact(const Problem& problem) {
  std::vector<std::vector<LinkIndex>> paths;
  for (const FlowIndex flow : problem.fabric.Flows(problem.slot)) {
    paths.emplace_back();
    for (const LiveFabric::Hop& hop : problem.fabric.Path(flow)) {
      paths.back().push_back(hop.link);
    }
  }
  std::vector<ShareFlow> flows;
  for (const auto& path : paths) {
    flows.push_back({path, 1, std::numeric_limits<double>::infinity()});
  }
  std::vector<double> room(problem.room.begin(), problem.room.end());
  std::vector<double> rates;
  MaxMin().Fill(flows, room, rates);
  return rates;
}

TEST(RateFill, MaxMinDiffersFromTheExactRatesByRoundingAlone) {
  RateFill fill(12, 64, 4);
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Problem problem = RandomProblem(seed, 1'000'000'000'000);
    const std::vector<double> exact = Exact(problem);
    fill.Fill(problem.fabric, problem.fabric.Flows(problem.slot), LiveRates::kMaxMin, &problem.room);
    for (std::size_t i = 0; i < exact.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(fill.rates()[i]), exact[i], 64 + exact[i] * 1e-6)
          << "RandomProblem(" << seed << ")";
    }
  }
}

TEST(RateFill, NothingIsTakenTwiceAndNothingUsableIsLeft) {
  RateFill fill(12, 64, 4);
  for (const LiveRates how : {LiveRates::kGreedy, LiveRates::kMaxMin}) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
      Problem problem = RandomProblem(seed, 5);
      std::vector<WholeRate> left = problem.room;
      const auto flows = problem.fabric.Flows(problem.slot);
      fill.Fill(problem.fabric, flows, how, &problem.room);
      for (std::size_t i = 0; i < flows.size(); ++i) {
        bool stopped = false;
        for (const LiveFabric::Hop& hop : problem.fabric.Path(flows[i])) {
          left[hop.link] -= fill.rates()[i];
          stopped |= problem.room[hop.link] == 0;
        }
        ASSERT_TRUE(stopped) << "RandomProblem(" << seed << ", 5), flow " << i;
      }
      ASSERT_EQ(left, problem.room) << "RandomProblem(" << seed << ", 5)";
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
