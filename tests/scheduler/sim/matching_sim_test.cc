#include "scheduler/sim/matching_sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "scheduler/policy/policy.h"
#include "scheduler/rate/matcher.h"
#include "tests/scheduler/sim/random_trace.h"

namespace weir::scheduler {
namespace {

constexpr std::int64_t kTicksPerMs = 1000;

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy, SimOptions options = {}) {
  options.scale = {static_cast<double>(kTicksPerMs), false};
  auto order = MakeOrder(ParsePolicy(policy)->order);
  return RunMatching(trace, order->get(), options);
}

TEST(MatchingSim, OneCoflowTakesItsTimeOnAnEmptyFabric) {
  traces::Trace trace{
      .name = "", .ports = 3, .coflows = {{.id = 1, .arrival = kMillisecond, .flows = {{0, 2, 300}, {1, 2, 500}}}}};
  const SimOutcome outcome = Simulate(trace, "sebf");
  EXPECT_EQ(outcome.coflows[0].arrival, kTicksPerMs);
  EXPECT_EQ(outcome.coflows[0].cct(), 800);
  EXPECT_EQ(outcome.coflows[0].isolation, 800);
}

TEST(MatchingSim, SmallerBottleneckOvertakesAndTheLargerOneResumes) {
  traces::Trace trace{.name = "",
                      .ports = 2,
                      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 5000}}},
                                  {.id = 2, .arrival = kMillisecond, .flows = {{0, 1, 1000}}}}};
  const SimOutcome sebf = Simulate(trace, "sebf");
  EXPECT_EQ(sebf.coflows[0].cct(), 6000);
  EXPECT_EQ(sebf.coflows[1].cct(), 1000);
  const SimOutcome fifo = Simulate(trace, "fifo");
  EXPECT_EQ(fifo.coflows[0].cct(), 5000);
  EXPECT_EQ(fifo.coflows[1].cct(), 5000);
}

TEST(MatchingSim, ACoflowStartsWhenWhatItIsAfterHasEnded) {
  traces::Trace trace{.name = "",
                      .ports = 2,
                      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 5000}}},
                                  {.id = 2, .arrival = 0, .after = {1}, .flows = {{1, 0, 10}}}}};
  const SimOutcome outcome = Simulate(trace, "sebf");
  EXPECT_EQ(outcome.coflows[1].arrival, 5000);
  EXPECT_EQ(outcome.coflows[1].end, 5010);
}

TEST(MatchingSim, EarliestDeadlineGoesFirst) {
  traces::Trace trace{.name = "",
                      .ports = 2,
                      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 1000}}},
                                  {.id = 2, .arrival = 0, .deadline = 9 * kMillisecond, .flows = {{0, 1, 5000}}}}};
  const SimOutcome outcome = Simulate(trace, "edf");
  EXPECT_EQ(outcome.coflows[1].cct(), 5000);
  EXPECT_EQ(outcome.coflows[1].deadline, 9000);
  EXPECT_EQ(outcome.coflows[0].cct(), 6000);
}

TEST(MatchingSim, EveryPolicyMovesEveryByteAndNoCoflowBeatsTheEmptyFabric) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    for (const OrderInfo& info : Orders()) {
      const SimOutcome outcome = Simulate(trace, std::string(info.name));
      EXPECT_EQ(outcome.bytes_moved, static_cast<double>(trace.TotalBytes())) << info.name << " seed " << seed;
      for (const CoflowOutcome& coflow : outcome.coflows) {
        ASSERT_GE(coflow.cct(), coflow.isolation) << info.name << " seed " << seed << " coflow " << coflow.id;
      }
    }
  }
}

// 5 MB of two flows are just at the limit of a queue; the other flow then sent as much byte by byte, an event each.
TEST(MatchingSim, AFlowThatCatchesUpWithTheLargestOneIsNotLookedAtAfterEveryByte) {
  for (const Bytes first : {5'242'880U, 52'428'800U}) {
    const Bytes second = 57'671'680U - first;
    const traces::Trace trace{.name = "", .ports = 3, .coflows = {{.id = 1, .flows = {{0, 1, first}, {0, 2, second}}}}};
    const SimOutcome outcome = Simulate(trace, "saath");
    EXPECT_EQ(outcome.coflows[0].cct(), 57'671'680);
    EXPECT_LT(outcome.events, 5'000u);
  }
}

TEST(MatchingSim, SameInputSameOutcome) {
  const traces::Trace trace = RandomTrace(7);
  for (const OrderInfo& info : Orders()) {
    const SimOutcome a = Simulate(trace, std::string(info.name));
    const SimOutcome b = Simulate(trace, std::string(info.name));
    for (std::size_t i = 0; i < a.coflows.size(); ++i) {
      EXPECT_EQ(a.coflows[i].end, b.coflows[i].end) << info.name;
    }
  }
}

TEST(MatchingSim, ScalingBytesAndTimesScalesEveryCompletionTime) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    for (const char* policy : {"fifo", "scf", "ncf", "lcf", "sebf", "bssi", "ls"}) {
      const SimOutcome once = Simulate(RandomTrace(seed), policy);
      const SimOutcome thrice = Simulate(RandomTrace(seed, 3), policy);
      for (std::size_t i = 0; i < once.coflows.size(); ++i) {
        EXPECT_EQ(3 * once.coflows[i].cct(), thrice.coflows[i].cct()) << policy << " seed " << seed;
      }
    }
  }
}

TEST(MatchingSim, DelayedDecisionsAndFewLevelsStillMoveEveryByte) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    SimOptions options;
    options.delay = 7 * kTicksPerMs;
    options.levels = 3;
    const SimOutcome outcome = Simulate(trace, "pilots pilots_min=2", options);
    EXPECT_EQ(outcome.bytes_moved, static_cast<double>(trace.TotalBytes())) << "seed " << seed;
  }
}

/// A flow that could be served must be: no port pair idle on both ends with bytes pending, after any number of steps.
TEST(Matcher, LeavesNoPairIdleThatHasBytes) {
  constexpr std::uint32_t kPorts = 70;  // more than one word of bits
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    std::mt19937_64 random(seed);
    Matcher matcher(kPorts);
    std::vector<std::uint32_t> order;
    std::vector<std::vector<std::int64_t>> left(3, std::vector<std::int64_t>(kPorts * kPorts, 0));
    std::vector<std::int64_t> keys(3 * 2 * kPorts, 1);
    std::vector<std::uint32_t> rows;
    for (std::uint32_t g = 0; g < 3; ++g) {
      std::vector<MatchFlow> flows;
      for (std::uint32_t s = 0; s < kPorts; ++s) {
        for (std::uint32_t d = 0; d < kPorts; ++d) {
          if (random() % 10 == 0) {
            flows.push_back({s, d, static_cast<std::int64_t>(1 + random() % 50)});
            left[g][s * kPorts + d] = flows.back().bytes;
          }
        }
      }
      order.push_back(matcher.AddGroup(flows));
      rows.push_back(g);
    }
    matcher.SetOrder(order);
    for (int step = 0; step < 40; ++step) {
      matcher.Rematch(keys, rows);
      std::vector<bool> busy_source(kPorts), busy_destination(kPorts);
      const std::int64_t interval = matcher.NextEnd();
      ASSERT_GT(interval, 0);
      matcher.Advance(interval, [&](std::uint32_t g, std::uint32_t s, std::uint32_t d, std::int64_t) {
        EXPECT_FALSE(busy_source[s]) << "seed " << seed;
        EXPECT_FALSE(busy_destination[d]) << "seed " << seed;
        busy_source[s] = true;
        busy_destination[d] = true;
        left[g][s * kPorts + d] -= interval;
        EXPECT_GE(left[g][s * kPorts + d], 0);
      });
      for (std::uint32_t s = 0; s < kPorts; ++s) {
        for (std::uint32_t d = 0; d < kPorts; ++d) {
          const bool pending = left[0][s * kPorts + d] + left[1][s * kPorts + d] + left[2][s * kPorts + d] > 0;
          ASSERT_FALSE(pending && !busy_source[s] && !busy_destination[d]) << "seed " << seed << " step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
