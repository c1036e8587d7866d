#include <gtest/gtest.h>

#include <random>

#include "coflow/traces/reader.h"
#include "scheduler/bounds/bounds.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/matching_sim.h"
#include "tests/coflow/traces/public_trace.h"

namespace weir::scheduler {
namespace {

constexpr double kPortRate = 1e6;  // one byte is a microsecond

traces::Trace RandomTrace(std::uint64_t seed, bool offline, bool chained) {
  std::mt19937_64 random(seed);
  traces::Trace trace;
  trace.ports = 3;
  const std::uint64_t coflows = 1 + random() % 6;
  for (std::uint64_t id = 1; id <= coflows; ++id) {
    traces::TraceCoflow coflow;
    coflow.id = id;
    coflow.arrival = offline ? 0 : static_cast<Nanoseconds>(random() % 60) * 1000;
    if (chained && id > 1 && random() % 2 == 0) {
      coflow.after.push_back(1 + random() % (id - 1));
    }
    const std::uint64_t flows = 1 + random() % 4;
    for (std::uint64_t i = 0; i < flows; ++i) {
      coflow.flows.push_back({static_cast<std::uint32_t>(random() % 3), static_cast<std::uint32_t>(random() % 3),
                              static_cast<Bytes>(1 + random() % 40)});
    }
    traces::CountEnds(&coflow);
    trace.coflows.push_back(coflow);
  }
  EXPECT_TRUE(traces::Finish(&trace, "random").ok());
  return trace;
}

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy, const SimOptions& options) {
  const auto parsed = ParsePolicy(policy);
  auto order = MakeOrder(parsed->order);
  return RunMatching(trace, order->get(), options);
}

double SumOf(const SimOutcome& outcome) {
  double sum = 0;
  for (const CoflowOutcome& coflow : outcome.coflows) {
    sum += static_cast<double>(coflow.cct());
  }
  return sum;
}

TEST(TraceBounds, NoScheduleIsBelowThemAndTheOfflinePrimalDualOrderIsWithinFourTimesTheBest) {
  SimOptions options;
  options.scale = TimeScale::Milliseconds(kPortRate);
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    const bool offline = seed % 3 == 0;
    const traces::Trace trace = RandomTrace(seed, offline, seed % 3 == 1);
    const Bounds bounds = ComputeBounds(ProblemOf(trace, options), BoundEffort::kQuick);
    for (const char* policy : {"fifo", "sebf", "bssi", "ls", "dclas"}) {
      const SimOutcome outcome = Simulate(trace, policy, options);
      ASSERT_GE(SumOf(outcome), bounds.best.sum * (1 - 1e-9)) << policy << ", seed " << seed;
      ASSERT_GE(static_cast<double>(outcome.makespan), bounds.makespan) << policy << ", seed " << seed;
      if (offline && std::string(policy) == "bssi") {  // of 6 coflows, the best bound is the relaxation's optimum
        ASSERT_LE(SumOf(outcome), 4 * bounds.best.sum) << "seed " << seed;
      }
    }
  }
}

TEST(TraceBounds, ArrivalsAreRoundedAsInTheSimulation) {
  traces::Trace trace = RandomTrace(1, false, false);
  trace.coflows.resize(1);
  trace.coflows[0].arrival = 13'000;
  SimOptions options;
  options.scale = TimeScale::Milliseconds(kPortRate);
  options.arrival_step = 10;
  EXPECT_EQ(ProblemOf(trace, options).release, std::vector<double>{20});
}

class PublicTraceBounds : public traces::PublicTraceTest {
 protected:
  PublicTraceBounds() {
    options_.scale = TimeScale::CoflowSim(134'217'728.0);
    options_.arrival_step = 1'048'576;
  }

  double Mean(double sum) const {
    return sum / options_.scale.ticks_per_ms / static_cast<double>(trace_.coflows.size());
  }

  SimOptions options_;
};

TEST_F(PublicTraceBounds, OnlineAtLeast20960AndMetWithinFourPercent) {
  const double bound = Mean(ComputeBounds(ProblemOf(trace_, options_), BoundEffort::kQuick).best.sum);
  EXPECT_GE(bound, 20'960);
  EXPECT_LE(Mean(SumOf(Simulate(trace_, "ls", options_))), 1.04 * bound);
}

TEST_F(PublicTraceBounds, OfflineAtLeast42000AndTheLocalSearchStaysBelow43500) {
  for (auto& coflow : trace_.coflows) {
    coflow.arrival = 0;
  }
  EXPECT_GE(Mean(ComputeBounds(ProblemOf(trace_, options_), BoundEffort::kQuick).best.sum), 42'000);
  EXPECT_LE(Mean(SumOf(Simulate(trace_, "ls", options_))), 43'500);
}

}  // namespace
}  // namespace weir::scheduler
