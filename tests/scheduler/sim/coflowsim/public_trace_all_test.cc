#include "tests/scheduler/sim/coflowsim/public_trace.h"

namespace weir::scheduler::coflowsim {
namespace {

// Every step of this policy has to be done.
TEST_F(PublicTrace, FairEqualsThePublishedFigures) {
  const Summary s = Simulate(Policy::kFair);
  EXPECT_NEAR(s.mean, 70'592.8, 0.05);
  EXPECT_EQ(s.p50, 4'016);
  EXPECT_EQ(s.p95, 368'496);
}

TEST_F(PublicTrace, DarkWithExactArrivalsEqualsThePublishedFigures) {
  const Summary s = Simulate(Policy::kDark, kStepMs);
  EXPECT_NEAR(s.mean, 45'080, 0.5);
  EXPECT_EQ(s.p95, 56'480);
}

struct Published {
  Policy policy;
  double mean, p50, p95;  ///< With early admission.
  double exact_mean, exact_p95;
};

TEST_F(PublicTrace, PoliciesOfVarysAreWithinTheirTolerances) {
  constexpr Published kPublished[] = {{Policy::kSebf, 27'712.6, 160, 37'528, 27'337, 37'528},
                                      {Policy::kScf, 27'891.2, 200, 53'984, 28'257, 59'136},
                                      {Policy::kNcf, 40'924.4, 184, 74'296, 40'743, 74'120},
                                      {Policy::kLcf, 30'632.4, 160, 65'736, 30'839, 61'464},
                                      {Policy::kFifo, 88'303.1, 224, 595'128, 87'712, 589'112}};
  for (const Published& published : kPublished) {
    const Summary s = Simulate(published.policy);
    const Summary exact = Simulate(published.policy, kStepMs);
    EXPECT_NEAR(s.mean, published.mean, 0.015 * published.mean) << PolicyName(published.policy);
    EXPECT_NEAR(s.p50, published.p50, 0.01 * published.p50) << PolicyName(published.policy);
    EXPECT_NEAR(s.p95, published.p95, 0.01 * published.p95) << PolicyName(published.policy);
    EXPECT_NEAR(exact.mean, published.exact_mean, 0.015 * published.exact_mean) << PolicyName(published.policy);
    EXPECT_NEAR(exact.p95, published.exact_p95, 0.01 * published.exact_p95) << PolicyName(published.policy);
  }
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
