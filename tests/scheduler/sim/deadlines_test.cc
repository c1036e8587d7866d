#include <gtest/gtest.h>

#include <random>

#include "coflow/traces/transform.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/matching_sim.h"
#include "scheduler/sim/summary.h"

namespace weir::scheduler {
namespace {

constexpr TimeScale kScale = {1000, false};  // a tick is a microsecond, a port moves a megabyte a second

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy) {
  SimOptions options;
  options.scale = kScale;
  auto order = MakeOrder(ParsePolicy(policy)->order);
  return RunMatching(trace, order->get(), options);
}

traces::Trace RandomTrace(std::uint64_t seed, double factor) {
  std::mt19937_64 random(seed);
  traces::Trace trace{.name = "t", .ports = 5, .coflows = {}};
  const std::uint64_t span = 20 + random() % 60;
  for (std::uint64_t id = 1; id <= 14; ++id) {
    traces::TraceCoflow coflow{.id = id, .arrival = static_cast<Nanoseconds>(random() % span) * kMillisecond};
    const std::uint64_t width = random() % 3 == 0 ? 12 : 2;
    for (std::size_t i = 0; i < 1 + random() % width; ++i) {
      coflow.flows.push_back(
          {static_cast<std::uint32_t>(random() % 5), static_cast<std::uint32_t>(random() % 5), 1 + random() % 4000});
    }
    traces::CountEnds(&coflow);
    trace.coflows.push_back(std::move(coflow));
  }
  const Status status = traces::Transform(
      {.deadline_factor = factor, .deadline_seed = seed, .port_rate = kScale.ticks_per_ms * 1000}, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

TEST(Deadlines, WhatIsAdmittedIsMet) {
  for (const double factor : {0.0, 1.0, 3.0, 10.0}) {
    std::uint64_t admitted = 0;
    std::uint64_t refused = 0;
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
      const SimOutcome outcome = Simulate(RandomTrace(seed, factor), "edf admission=on");
      for (const CoflowOutcome& coflow : outcome.coflows) {
        (coflow.admitted ? admitted : refused) += 1;
        ASSERT_TRUE(!coflow.admitted || coflow.cct() <= coflow.deadline)
            << "factor " << factor << " seed " << seed << " coflow " << coflow.id;
      }
    }
    EXPECT_GT(admitted, 5000u) << factor;
    EXPECT_GT(refused, 500u) << factor;
  }
}

TEST(Deadlines, ACoflowThatWouldBreakAPromiseIsRefused) {
  traces::Trace trace{.name = "",
                      .ports = 3,
                      .coflows = {{.id = 1, .deadline = 5 * kMillisecond, .flows = {{0, 1, 4000}}},
                                  {.id = 2, .deadline = 3 * kMillisecond, .flows = {{0, 2, 2000}}},
                                  {.id = 3, .deadline = 2 * kMillisecond, .flows = {{0, 2, 1000}}}}};
  const SimOutcome outcome = Simulate(trace, "edf admission=on");
  EXPECT_TRUE(outcome.coflows[0].admitted);
  EXPECT_FALSE(outcome.coflows[1].admitted) << "coflow 1 would end at 6 ms";
  EXPECT_TRUE(outcome.coflows[2].admitted) << "coflow 1 ends at 5 ms, just in time";
  EXPECT_EQ(outcome.coflows[0].cct(), 5000);
  EXPECT_EQ(outcome.coflows[2].cct(), 1000);
  EXPECT_EQ(outcome.coflows[1].cct(), 7000) << "refused ones use what is left";
  const Summary s = Summarise(outcome, 3, kScale);
  EXPECT_EQ(s.deadlines, 3u);
  EXPECT_EQ(s.admitted, 2u);
  EXPECT_EQ(s.met, 2u);
}

TEST(Deadlines, AdmissionIsForEarliestDeadlineFirstAlone) {
  EXPECT_NE(ParsePolicy("sebf admission=on").error().message().find("order=edf"), std::string::npos);
  EXPECT_NE(ParsePolicy("edf admission=on age_bound=2").error().message().find("without age_bound"), std::string::npos);
  EXPECT_NE(ParsePolicy("edf admission=maybe").error().message().find("found \"maybe\", allowed: on, off"),
            std::string::npos);
  EXPECT_TRUE(ParsePolicy("edf admission=off"));
}

}  // namespace
}  // namespace weir::scheduler
