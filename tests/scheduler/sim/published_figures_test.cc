#include <gtest/gtest.h>

#include <filesystem>

#include "coflow/traces/reader.h"
#include "coflow/traces/transform.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/fluid_sim.h"
#include "scheduler/sim/matching_sim.h"
#include "scheduler/sim/summary.h"
#include "tests/coflow/traces/public_trace.h"

namespace weir::scheduler {
namespace {

class PublicTrace : public traces::PublicTraceTest {
 protected:
  Summary Simulate(const std::string& policy, double delay_ms = 0, int levels = 0, std::uint64_t seed = 1,
                   std::int64_t reporting_steps = 0) {
    constexpr double kPortRate = 134'217'728.0;
    SimOptions options;
    options.scale = TimeScale::CoflowSim(kPortRate);
    options.arrival_step = 1'048'576;
    options.delay = static_cast<std::int64_t>(delay_ms * kPortRate / 1000);
    options.levels = levels;
    options.seed = seed;
    const auto parsed = ParsePolicy(policy);
    auto order = MakeOrder(parsed->order);
    auto rate = MakeRate(parsed->rate);
    if (*rate == nullptr) {
      return Summarise(RunMatching(trace_, order->get(), options), trace_.ports, options.scale);
    }
    options.reporting_interval = reporting_steps * options.arrival_step;
    const auto outcome = RunFluid(trace_, Fabric::BigSwitch(trace_.ports), order->get(), rate->get(), options);
    EXPECT_TRUE(outcome) << outcome.error().message();
    return Summarise(*outcome, trace_.ports, options.scale);
  }
};

TEST_F(PublicTrace, HasTheKnownShape) {
  EXPECT_EQ(trace_.ports, 150u);
  EXPECT_EQ(trace_.coflows.size(), 526u);
  EXPECT_EQ(trace_.FlowCount(), 706'397u);
  EXPECT_EQ(trace_.TotalBytes(), Bytes{35'533'534} * 1'048'576);
}

TEST_F(PublicTrace, LocalSearchReachesTheBestKnownOnlineMean) {
  const Summary s = Simulate("ls");
  EXPECT_LE(s.mean, 21'700);
  EXPECT_LE(s.p50, 160);
  EXPECT_LE(s.p95, 38'900);
  EXPECT_NEAR(s.isolation_bound, 14'721, 1);
}

TEST_F(PublicTrace, SmallestBottleneckFirstEqualsTheReference) {
  EXPECT_NEAR(Simulate("sebf").mean, 21'805.6, 5);
}

// The steps of 8 sim-ms between reports are few where that is cheap and more where the figure hardly depends on them.
TEST_F(PublicTrace, FluidRatesEqualTheReferences) {
  EXPECT_NEAR(Simulate("order=sebf rate=maxmin", 0, 0, 1, 8).mean, 22'045, 0.01 * 22'045);
  EXPECT_NEAR(Simulate("order=sebf rate=madd", 0, 0, 1, 62).mean, 22'258, 0.01 * 22'258);
  EXPECT_NEAR(Simulate("order=sebf rate=madd backfill=off", 0, 0, 1, 1).mean, 56'411, 0.01 * 56'411);
}

TEST_F(PublicTrace, LocalSearchWithMaxMinRatesStaysClose) {
  EXPECT_LE(Simulate("order=ls rate=maxmin", 0, 0, 1, 8).mean, 22'100);
}

TEST_F(PublicTrace, UnknownSizesStayCloseBehindKnownOnesWhicheverFlowsArePilots) {
  for (const std::uint64_t seed : {1UL, 2UL}) {
    EXPECT_LE(Simulate("pilots", 100, 8, seed).mean, 22'100) << "seed " << seed;
  }
}

TEST_F(PublicTrace, UnknownSizesOfSkewedMappersStayClose) {
  const traces::Trace even = trace_;
  for (const std::uint64_t seed : {1UL, 2UL, 3UL}) {
    trace_ = even;
    ASSERT_TRUE(traces::Transform({.skew_sigma = 1, .skew_seed = seed}, &trace_).ok());
    EXPECT_LE(Simulate("pilots", 100, 8, seed).mean, 23'000) << "seed " << seed;
  }
}

TEST_F(PublicTrace, ABoundOnWaitingCostsLittle) {
  EXPECT_LE(Simulate("ls age_bound=3").mean, 1.02 * 21'655);
}

}  // namespace
}  // namespace weir::scheduler
