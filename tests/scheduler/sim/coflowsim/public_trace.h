#pragma once

#include <gtest/gtest.h>

#include "coflow/traces/reader.h"
#include "scheduler/sim/coflowsim/simulator.h"
#include "scheduler/sim/summary.h"
#include "tests/coflow/traces/public_trace.h"

namespace weir::scheduler::coflowsim {

class PublicTrace : public traces::PublicTraceTest {
 protected:
  /// In CoflowSim's milliseconds.
  Summary Simulate(Policy policy, std::int64_t epoch_ms = kEpochMs, double free_zero = kFreeZero) const {
    const auto outcome = RunCoflowSim(trace_, {.policy = policy, .epoch_ms = epoch_ms, .free_zero = free_zero});
    EXPECT_TRUE(outcome) << outcome.error().message();
    return Summarise(outcome->sim, trace_.ports, TimeScale::CoflowSim(kPortBytes));
  }
};

}  // namespace weir::scheduler::coflowsim
