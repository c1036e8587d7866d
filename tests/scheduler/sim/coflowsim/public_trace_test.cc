#include "tests/scheduler/sim/coflowsim/public_trace.h"

namespace weir::scheduler::coflowsim {
namespace {

TEST_F(PublicTrace, DarkEqualsThePublishedFigures) {
  const Summary s = Simulate(Policy::kDark);
  EXPECT_NEAR(s.mean, 46'097.7, 0.05);
  EXPECT_EQ(s.p50, 216);
  EXPECT_EQ(s.p95, 71'224);
}

// What CoflowSim itself prints for this trace, built from its public source; docs/simulator.md has more.
TEST_F(PublicTrace, SebfEqualsWhatCoflowSimPrints) {
  const Summary s = Simulate(Policy::kSebf, kEpochMs, kZero);
  EXPECT_NEAR(s.mean * 526, 15'005'968, 0.5);
  EXPECT_EQ(s.p50, 160);
  EXPECT_EQ(s.p95, 37'528);
}

// Within the tolerance that is due to rounding.
TEST_F(PublicTrace, SebfIsCloseToThePublishedFigures) {
  const Summary s = Simulate(Policy::kSebf);
  EXPECT_NEAR(s.mean, 27'712.6, 0.015 * 27'712.6);
  EXPECT_EQ(s.p50, 160);
  EXPECT_EQ(s.p95, 37'528);
}

TEST_F(PublicTrace, AsManyDeadlinesAreAdmittedAndMet) {
  const auto outcome = RunCoflowSim(trace_, {.policy = Policy::kFifo, .deadline_factor = 1.0}).value();
  EXPECT_EQ(outcome.sim.coflows.size(), 372u);
  EXPECT_EQ(outcome.refused, 154u);
  EXPECT_EQ(outcome.met, 239u);
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
