// A program of its own, because it counts every allocation.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/allocation_counter.h"
#include "tests/scheduler/live/churn.h"

namespace weir::scheduler {
namespace {

TEST(LiveAllocations, TheCounterCounts) {
  const std::uint64_t before = Allocations();
  const std::vector<int> memory(3);
  EXPECT_EQ(Allocations(), before + 1);
}

TEST(LiveAllocations, RunningAllocatesNothing) {
  for (const LiveRates rates : {LiveRates::kGreedy, LiveRates::kMaxMin}) {
    Churn churn(200, 1000, rates, 1);
    std::uint64_t most = 0;
    for (int i = 0; i < 5000; ++i) {
      churn.Prepare();
      const std::uint64_t before = Allocations();
      churn.Apply();
      most = std::max(most, Allocations() - before);
    }
    EXPECT_EQ(most, 0u);
    const std::uint64_t before = Allocations();
    churn.live().Recompute();
    EXPECT_EQ(Allocations(), before);
  }
}

}  // namespace
}  // namespace weir::scheduler
