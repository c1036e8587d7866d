#include <gtest/gtest.h>

#include <filesystem>

#include "coflow/traces/reader.h"
#include "coflow/traces/transform.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/matching_sim.h"
#include "scheduler/sim/summary.h"

namespace weir::scheduler {
namespace {

/// The field's public trace is not part of the project; without it these tests say so and are skipped.
class PublicTrace : public testing::Test {
 protected:
  void SetUp() override {
    auto trace = traces::Load("FB2010-1Hr-150-0.txt");
    if (!trace && trace.error().code() == StatusCode::kNotFound) {
      GTEST_SKIP() << "FB2010-1Hr-150-0.txt is not in WEIR_TRACES";
    }
    ASSERT_TRUE(trace) << trace.error().message();
    trace_ = std::move(*trace);
  }

  Summary Simulate(const std::string& policy, double delay_ms = 0, int levels = 0, std::uint64_t seed = 1) {
    constexpr double kPortRate = 134'217'728.0;
    SimOptions options;
    options.scale = TimeScale::CoflowSim(kPortRate);
    options.arrival_step = 1'048'576;
    options.delay = static_cast<std::int64_t>(delay_ms * kPortRate / 1000);
    options.levels = levels;
    options.seed = seed;
    auto order = MakeOrder(*ParsePolicy(policy));
    return Summarise(RunMatching(trace_, order->get(), options), trace_.ports, options.scale);
  }

  traces::Trace trace_;
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

TEST_F(PublicTrace, UnknownSizesStayCloseBehindKnownOnesWhicheverFlowsArePilots) {
  for (const std::uint64_t seed : {1UL, 2UL}) {
    EXPECT_LE(Simulate("pilots", 100, 8, seed).mean, 22'300) << "seed " << seed;
  }
}

TEST_F(PublicTrace, UnknownSizesOfSkewedMappersStayClose) {
  ASSERT_TRUE(traces::Transform({.skew_sigma = 1}, &trace_).ok());
  EXPECT_LE(Simulate("pilots", 100, 8).mean, 24'000);
}

TEST_F(PublicTrace, ABoundOnWaitingCostsLittle) {
  EXPECT_LE(Simulate("ls age_bound=3").mean, 1.02 * 21'655);
}

}  // namespace
}  // namespace weir::scheduler
