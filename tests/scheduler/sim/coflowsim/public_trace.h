#pragma once

#include <gtest/gtest.h>

#include "coflow/traces/reader.h"
#include "scheduler/sim/coflowsim/simulator.h"
#include "scheduler/sim/summary.h"

namespace weir::scheduler::coflowsim {

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

  /// In CoflowSim's milliseconds.
  Summary Simulate(Policy policy, std::int64_t epoch_ms = kEpochMs, double free_zero = kFreeZero) const {
    const auto outcome = RunCoflowSim(trace_, {.policy = policy, .epoch_ms = epoch_ms, .free_zero = free_zero});
    EXPECT_TRUE(outcome) << outcome.error().message();
    return Summarise(outcome->sim, trace_.ports, TimeScale::CoflowSim(kPortBytes));
  }

  traces::Trace trace_;
};

}  // namespace weir::scheduler::coflowsim
