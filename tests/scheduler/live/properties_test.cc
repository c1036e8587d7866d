#include <gtest/gtest.h>

#include "tests/scheduler/live/churn.h"
#include "tests/scheduler/live/model.h"

namespace weir::scheduler {
namespace {

// To repeat one: RandomRun run(SEED) and Step() until it fails.
TEST(LiveProperties, RepairedStateEqualsTheModel) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    RandomRun run(seed);
    for (int step = 1; step <= 12; ++step) {
      ASSERT_EQ(run.Step(), "") << "RandomRun(" << seed << "), step " << step;
    }
  }
}

// Long enough for labels to run out many times.
TEST(LiveProperties, RepairedStateEqualsTheModelInLongRuns) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RandomRun run(seed);
    for (int step = 1; step <= 1500; ++step) {
      ASSERT_EQ(run.Step(), "") << "RandomRun(" << seed << "), step " << step;
    }
  }
}

TEST(LiveProperties, RecomputeEqualsTheModelAndLosesNothing) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomRun run(seed);
    for (int step = 1; step <= 20; ++step) {
      ASSERT_EQ(run.Step(), "") << "RandomRun(" << seed << "), step " << step;
      run.scheduler().Recompute();
      ASSERT_EQ(Compare(run.model(), run.scheduler()), "") << "RandomRun(" << seed << "), after step " << step;
    }
  }
}

// 2,000 links, 10,000 coflows, about 80,000 flows: what was repaired over many events is what is computed anew.
TEST(LiveProperties, RepairedRatesEqualFreshOnesAtFullScale) {
  for (const LiveRates rates : {LiveRates::kGreedy, LiveRates::kMaxMin}) {
    Churn churn(1000, 10'000, rates, 5);
    for (int i = 0; i < 100; ++i) {
      churn.Prepare();
      churn.Apply();
    }
    const std::vector<WholeRate> repaired = churn.live().fabric().rate;
    const std::vector<CoflowSlot> order(churn.live().order().begin(), churn.live().order().end());
    churn.live().Recompute();
    EXPECT_EQ(churn.live().fabric().rate, repaired);
    EXPECT_TRUE(std::ranges::equal(churn.live().order(), order));
    EXPECT_TRUE(churn.live().changed().empty());
  }
}

}  // namespace
}  // namespace weir::scheduler
