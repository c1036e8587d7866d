#include "scheduler/sim/waits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/policy/policy.h"
#include "scheduler/sim/fluid_sim.h"
#include "scheduler/sim/matching_sim.h"
#include "tests/scheduler/sim/random_trace.h"

namespace weir::scheduler {
namespace {

/// One byte a tick, a thousand ticks a millisecond.
SimOptions Options(SimObserver* observer) {
  SimOptions options;
  options.scale = TimeScale{1000.0, false};
  options.observer = observer;
  return options;
}

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy, const Fabric& fabric, SimOptions options) {
  const auto parsed = ParsePolicy(policy).value();
  const auto order = MakeOrder(parsed.order).value();
  const auto rate = MakeRate(parsed.rate).value();
  return rate == nullptr ? RunMatching(trace, order.get(), options)
                         : RunFluid(trace, fabric, order.get(), rate.get(), options).value();
}

traces::Trace TwoOnOneLink() {
  traces::Trace trace;
  trace.ports = 3;
  trace.coflows = {{.id = 7, .flows = {{0, 1, 1000}}}, {.id = 9, .flows = {{0, 1, 5000}, {2, 1, 500}}}};
  for (auto& coflow : trace.coflows) {
    traces::CountEnds(&coflow);
  }
  return trace;
}

TEST(Waits, ThePredecessorOnTheLinkIsNamedWithItsTime) {
  const traces::Trace trace = TwoOnOneLink();
  const Fabric fabric = Fabric::BigSwitch(3);
  WaitRecorder recorder(trace, fabric, 1);
  const SimOutcome outcome = Simulate(trace, "sebf", fabric, Options(&recorder));
  const auto links = recorder.Links();
  ASSERT_EQ(links.size(), 3U);
  EXPECT_EQ(links[0].link, 4U);  // the receiver's, which all its bytes take
  EXPECT_EQ(links[0].bytes, 5500);
  EXPECT_EQ(links[0].until, outcome.coflows[1].end);
  EXPECT_EQ(links[0].until, 6500);
  EXPECT_EQ(links[0].served, 5500);
  EXPECT_EQ(links[0].unused, 0);
  ASSERT_EQ(links[0].blockers.size(), 1U);
  EXPECT_EQ(links[0].blockers[0].coflow, 0U);
  EXPECT_EQ(links[0].blockers[0].ticks, 1000);
  EXPECT_EQ(recorder.first_served(), 1000);
  EXPECT_EQ(links[1].link, 2U);  // its second sender idles while the receiver is taken
  EXPECT_EQ(links[1].blocked(), 0);
  EXPECT_EQ(links[1].served, 500);
  EXPECT_EQ(links[1].unused, 6000);
}

TEST(Waits, ACoflowThatIsAloneWaitsForNobody) {
  const traces::Trace trace = TwoOnOneLink();
  const Fabric fabric = Fabric::BigSwitch(3);
  WaitRecorder recorder(trace, fabric, 0);
  Simulate(trace, "order=sebf rate=maxmin", fabric, Options(&recorder));
  for (const LinkWait& wait : recorder.Links()) {
    EXPECT_EQ(wait.blocked(), 0);
    EXPECT_EQ(wait.unused, 0);
    EXPECT_EQ(wait.served, 1000);
  }
}

TEST(Waits, AFailedLinkIsUnusedTime) {
  traces::Trace trace = TwoOnOneLink();
  trace.coflows.pop_back();
  const Fabric fabric = Fabric::BigSwitch(3);
  WaitRecorder recorder(trace, fabric, 0);
  SimOptions options = Options(&recorder);
  options.capacity_changes = {{.time = 400, .link = 0, .share = 0}, {.time = 1400, .link = 0, .share = 0.5}};
  Simulate(trace, "order=sebf rate=maxmin", fabric, options);
  const auto links = recorder.Links();
  ASSERT_EQ(links[0].link, 0U);
  EXPECT_NEAR(links[0].served, 400 + 1200, 1e-6);
  EXPECT_NEAR(links[0].unused, 1000, 1e-6);
  EXPECT_EQ(links[0].until, 2600);
}

/// Served, blocked and unused time add up on every link, the last link's to the completion time; watching changes
/// nothing.
TEST(Waits, TimeAddsUpOnEveryLinkOfRandomTraces) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    const Fabric fabric = Fabric::BigSwitch(trace.ports);
    for (const std::string policy : {"sebf", "pilots", "order=sebf rate=maxmin", "order=pilots rate=maxmin",
                                     "order=sebf rate=madd", "order=sebf rate=greedy", "rate=fair"}) {
      SCOPED_TRACE(policy + ", seed " + std::to_string(seed));
      const SimOutcome plain = Simulate(trace, policy, fabric, Options(nullptr));
      for (std::size_t coflow = 0; coflow < trace.coflows.size(); ++coflow) {
        WaitRecorder recorder(trace, fabric, coflow);
        const SimOutcome outcome = Simulate(trace, policy, fabric, Options(&recorder));
        const CoflowOutcome& of = outcome.coflows[coflow];
        ASSERT_EQ(of.end, plain.coflows[coflow].end);
        ASSERT_EQ(outcome.events, plain.events);
        const auto links = recorder.Links();
        ASSERT_NEAR(static_cast<double>(links[0].until), static_cast<double>(of.end), 8.0);  // rounded as below
        for (const LinkWait& wait : links) {
          const auto lifetime = static_cast<double>(wait.until - of.arrival);
          ASSERT_NEAR(wait.served + wait.blocked() + wait.unused, lifetime, 1e-6 * lifetime + 1e-6);
          ASSERT_NEAR(wait.served, wait.ideal, 8.0);  // the end of each of up to 8 flows is rounded up to a tick
        }
      }
    }
  }
}

TEST(Waits, InnerLinksAreNamedToo) {
  traces::Trace trace;
  trace.ports = 4;
  trace.coflows = {{.id = 1, .flows = {{0, 2, 1000}}}, {.id = 2, .flows = {{1, 3, 1000}}}};
  Fabric fabric(4, 1.0, {0, 0, 1, 1}, 2);
  const std::uint32_t inner = fabric.AddLink(0.5);
  fabric.AddPath(0, 1, {inner});
  WaitRecorder recorder(trace, fabric, 1);
  Simulate(trace, "order=fifo rate=maxmin", fabric, Options(&recorder));
  const auto links = recorder.Links();
  EXPECT_EQ(links[0].link, inner);
  EXPECT_EQ(links[0].ideal, 2000);
  ASSERT_EQ(links[0].blockers.size(), 1U);
  EXPECT_NEAR(links[0].blockers[0].ticks, 2000, 1e-6);
}

}  // namespace
}  // namespace weir::scheduler
