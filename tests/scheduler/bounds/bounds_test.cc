#include "scheduler/bounds/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "scheduler/bounds/lp_bound.h"
#include "scheduler/bounds/offline.h"
#include "scheduler/bounds/port_partition.h"
#include "scheduler/bounds/subset_bound.h"

namespace weir::scheduler {
namespace {

constexpr double kTolerance = 1e-9;
constexpr std::uint64_t kSeeds = 3000;
constexpr std::size_t kWork = 1'000'000;

struct Instance {
  std::size_t ports = 0;
  std::vector<unsigned> release;
  std::vector<std::vector<unsigned>> times;

  /// In the order given, with every time multiplied.
  BoundProblem Problem(std::span<const std::uint32_t> order, double unit = 1) const {
    BoundProblem problem;
    problem.ports = ports;
    for (const std::uint32_t coflow : order) {
      std::vector<double> row(times[coflow].begin(), times[coflow].end());
      std::transform(row.begin(), row.end(), row.begin(), [unit](double time) { return unit * time; });
      problem.Add(unit * release[coflow], row);
    }
    return problem;
  }
};

/// Everything is over within 64 units of time: at most 6 coflows of at most 8 each, the last released at 12.
Instance RandomInstance(std::uint64_t seed, bool offline) {
  std::mt19937_64 random(seed);
  Instance instance;
  instance.ports = 1 + random() % 4;
  const std::size_t coflows = 1 + random() % 6;
  for (std::size_t i = 0; i < coflows; ++i) {
    instance.release.push_back(offline ? 0U : static_cast<unsigned>(random() % 13));
    auto& row = instance.times.emplace_back();
    for (std::size_t port = 0; port < instance.ports; ++port) {
      row.push_back(random() % 3 == 0 ? 0U : static_cast<unsigned>(1 + random() % 8));
    }
    row[random() % instance.ports] = static_cast<unsigned>(1 + random() % 8);
  }
  return instance;
}

std::vector<std::uint32_t> Everybody(std::size_t count) {
  std::vector<std::uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

struct Optimum {
  double sum = std::numeric_limits<double>::infinity();
  double makespan = 0;
};

/// Tries all orders; each port is a row of 64 unit slots, and a coflow takes the first free ones after its release.
Optimum BruteForce(const Instance& instance) {
  Optimum optimum;
  std::vector<std::uint32_t> order = Everybody(instance.release.size());
  const unsigned first = *std::min_element(instance.release.begin(), instance.release.end());
  do {
    std::vector<std::uint64_t> taken(instance.ports, 0);
    double sum = 0;
    unsigned last = 0;
    for (const std::uint32_t coflow : order) {
      unsigned end = 0;
      for (std::size_t port = 0; port < instance.ports; ++port) {
        unsigned slot = instance.release[coflow];
        for (unsigned left = instance.times[coflow][port]; left > 0; ++slot) {
          if ((taken[port] >> slot & 1U) == 0) {
            taken[port] |= std::uint64_t{1} << slot;
            --left;
            end = std::max(end, slot + 1);
          }
        }
      }
      sum += end - instance.release[coflow];
      last = std::max(last, end);
    }
    optimum.sum = std::min(optimum.sum, sum);
    optimum.makespan = last - first;  // the same for every order
  } while (std::next_permutation(order.begin(), order.end()));
  return optimum;
}

double Value(const Bounds& bounds, std::string_view name) {
  for (const NamedBound& bound : bounds.completion) {
    if (bound.name == name) {
      return bound.sum;
    }
  }
  return -1;
}

TEST(ShortestRemainingFirst, PreemptsForTheShorterAndKeepsTheRest) {
  ShortestRemainingFirst machine;
  EXPECT_EQ(machine.Cost(std::vector<ShortestRemainingFirst::Job>{{0, 5}, {1, 2}}), 7 + 2);
  EXPECT_EQ(machine.Cost(std::vector<ShortestRemainingFirst::Job>{{0, 5}, {4, 2}}), 5 + 3);
  EXPECT_EQ(machine.Cost(std::vector<ShortestRemainingFirst::Job>{{10, 1}, {10, 3}, {20, 1}}), 1 + 4 + 1);
  EXPECT_EQ(machine.Cost({}), 0);
}

TEST(Bounds, AreBelowTheOptimumWithArrivals) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Instance instance = RandomInstance(seed, false);
    const auto all = Everybody(instance.release.size());
    const BoundProblem problem = instance.Problem(all);
    const Optimum optimum = BruteForce(instance);
    const Bounds bounds = ComputeBounds(problem, BoundEffort::kFull);
    for (const NamedBound& bound : bounds.completion) {
      ASSERT_LE(bound.sum, optimum.sum * (1 + kTolerance)) << bound.name << ", seed " << seed;
      ASSERT_LE(bound.sum, bounds.best.sum) << bound.name << ", seed " << seed;
    }
    ASSERT_GE(Value(bounds, "port_partition"), Value(bounds, "isolation") * (1 - kTolerance)) << "seed " << seed;
    ASSERT_NEAR(Value(bounds, "subsets"), optimum.sum, kTolerance * optimum.sum) << "seed " << seed;
    ASSERT_EQ(bounds.makespan, optimum.makespan) << "seed " << seed;
    if (LpBoundAvailable()) {
      ASSERT_GE(Value(bounds, "lp"), Value(bounds, "isolation") * (1 - 1e-4)) << "seed " << seed;
    }
    const auto giants = std::span(all).first(all.size() / 2);
    const auto others = std::span(all).subspan(giants.size());
    ASSERT_LE(SubsetBound(problem, giants, {}) + PortPartitionBound(problem, others, kWork),
              optimum.sum * (1 + kTolerance))
        << "seed " << seed;
  }
}

TEST(Bounds, AreBelowTheOptimumWithoutArrivalsAndDominateEachOther) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Instance instance = RandomInstance(seed, true);
    const auto all = Everybody(instance.release.size());
    const BoundProblem problem = instance.Problem(all);
    const double optimum = BruteForce(instance).sum;
    const double above = optimum * (1 + kTolerance);
    const Bounds bounds = ComputeBounds(problem, BoundEffort::kFull);
    for (const NamedBound& bound : bounds.completion) {
      ASSERT_LE(bound.sum, above) << bound.name << ", seed " << seed;
    }
    ASSERT_NEAR(Value(bounds, "subsets"), optimum, kTolerance * optimum) << "seed " << seed;
    ASSERT_GE(Value(bounds, "prices"), Value(bounds, "primal_dual") * (1 - kTolerance)) << "seed " << seed;
    ASSERT_GE(2 * Value(bounds, "primal_dual"), optimum * (1 - kTolerance)) << "seed " << seed;
    if (LpBoundAvailable()) {  // lowered by a millionth of the sum
      ASSERT_GE(Value(bounds, "lp"), Value(bounds, "prices") * (1 - 1e-5)) << "seed " << seed;
    }
    for (std::size_t count = 0; count <= all.size(); ++count) {
      const auto giants = std::span(all).first(count);
      const auto others = std::span(all).subspan(count);
      const PricedBound prices = PriceBound(problem, others, 20);
      const double together = GiantsAndPricesBound(problem, giants, others, prices);
      ASSERT_LE(together, above) << count << " giants, seed " << seed;
      ASSERT_GE(together, (SubsetBound(problem, giants, {}) + prices.sum) * (1 - kTolerance)) << "seed " << seed;
    }
  }
}

TEST(Bounds, DoNotDependOnTheUnitOfTimeNorOnTheOrderOfTheCoflows) {
  constexpr double kUnit = 1024;  // exact in binary, so that the searches see the same ties
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Instance instance = RandomInstance(seed, seed % 2 == 0);
    std::vector<std::uint32_t> order = Everybody(instance.release.size());
    const Bounds bounds = ComputeBounds(instance.Problem(order), BoundEffort::kFull);
    const Bounds scaled = ComputeBounds(instance.Problem(order, kUnit), BoundEffort::kFull);
    ASSERT_EQ(bounds.completion.size(), scaled.completion.size()) << "seed " << seed;
    for (std::size_t i = 0; i < bounds.completion.size(); ++i) {
      ASSERT_NEAR(scaled.completion[i].sum, kUnit * bounds.completion[i].sum, 1e-6 * scaled.completion[i].sum)
          << bounds.completion[i].name << ", seed " << seed;
    }
    ASSERT_EQ(scaled.makespan, kUnit * bounds.makespan) << "seed " << seed;
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
    const Bounds shuffled = ComputeBounds(instance.Problem(order), BoundEffort::kFull);
    for (const char* name : {"isolation", "subsets", "lp"}) {  // the others are searched for
      ASSERT_NEAR(Value(shuffled, name), Value(bounds, name), 1e-6 * bounds.best.sum) << name << ", seed " << seed;
    }
    ASSERT_EQ(shuffled.makespan, bounds.makespan) << "seed " << seed;
  }
}

TEST(Bounds, EffortAddsBoundsAndNeverLowersTheBest) {
  const Instance instance = RandomInstance(7, true);
  const BoundProblem problem = instance.Problem(Everybody(instance.release.size()));
  const Bounds none = ComputeBounds(problem, BoundEffort::kNone);
  const Bounds quick = ComputeBounds(problem, BoundEffort::kQuick);
  const Bounds full = ComputeBounds(problem, BoundEffort::kFull);
  ASSERT_EQ(none.completion.size(), 1U);
  EXPECT_EQ(none.best.name, "isolation");
  EXPECT_EQ(quick.completion.size(), 5U);
  EXPECT_EQ(full.completion.size(), LpBoundAvailable() ? 6U : 5U);
  EXPECT_LE(none.best.sum, quick.best.sum);
  EXPECT_LE(quick.best.sum, full.best.sum * (1 + kTolerance));
}

TEST(Bounds, NothingAndCoflowsWithoutLoadCostNothing) {
  BoundProblem problem;
  problem.ports = 2;
  EXPECT_EQ(ComputeBounds(problem, BoundEffort::kFull).best.sum, 0);
  problem.Add(5, std::vector<double>{0, 0});
  problem.Add(5, std::vector<double>{0, 3});
  const Bounds bounds = ComputeBounds(problem, BoundEffort::kFull);
  EXPECT_NEAR(bounds.best.sum, 3, 1e-9);
  EXPECT_EQ(bounds.makespan, 3);
}

TEST(Bounds, AFabricOfManyPortsTakesFewerGiantsAndStaysValid) {
  constexpr std::size_t kPorts = 131'072;
  BoundProblem problem;
  problem.ports = kPorts;
  std::vector<double> times(kPorts);
  for (std::size_t coflow = 0; coflow < 12; ++coflow) {
    for (std::size_t port = 0; port < kPorts; port += 64) {
      times[port] = static_cast<double>(1 + (port * 7919 + coflow * 104'729) % 97);
    }
    problem.Add(0, times);
  }
  const Bounds bounds = ComputeBounds(problem, BoundEffort::kQuick);
  double in_turn = 0;  // on the busiest port, in any order, each coflow waits for those in front
  for (std::size_t coflow = 0; coflow < 12; ++coflow) {
    in_turn += 97 * static_cast<double>(coflow + 1);
  }
  EXPECT_LE(bounds.best.sum, in_turn);
  EXPECT_GT(bounds.best.sum, 3 * Value(bounds, "isolation"));
}

TEST(Bounds, WithPrecedenceOnlyIsolationAndMakespanAreGiven) {
  BoundProblem problem;
  problem.ports = 1;
  problem.Add(0, std::vector<double>{4});
  problem.Add(4, std::vector<double>{2});
  problem.has_precedence = true;
  const Bounds bounds = ComputeBounds(problem, BoundEffort::kFull);
  ASSERT_EQ(bounds.completion.size(), 1U);
  EXPECT_EQ(bounds.best.sum, 6);
  EXPECT_EQ(bounds.makespan, 6);
  EXPECT_FALSE(LpBound(problem));
}

TEST(LpBound, InstancesAboveTheLimitHaveNone) {
  BoundProblem problem;
  problem.ports = 1;
  for (std::size_t i = 0; i <= kLpCoflowsMax; ++i) {
    problem.Add(0, std::vector<double>{1});
  }
  EXPECT_FALSE(LpBound(problem));
}

TEST(BoundEffort, WrongNamesAreToldWhatIsAllowed) {
  EXPECT_EQ(*BoundEffortFromName("full"), BoundEffort::kFull);
  EXPECT_EQ(*BoundEffortFromName("none"), BoundEffort::kNone);
  EXPECT_EQ(*BoundEffortFromName("quick"), BoundEffort::kQuick);
  const auto wrong = BoundEffortFromName("slow");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message(), "--bounds: found \"slow\", allowed: none, quick, full");
}

}  // namespace
}  // namespace weir::scheduler
