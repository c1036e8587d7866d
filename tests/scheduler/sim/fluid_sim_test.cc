#include "scheduler/sim/fluid_sim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "coflow/traces/generate.h"
#include "coflow/traces/transform.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/matching_sim.h"
#include "tests/scheduler/rate/random_rates.h"
#include "tests/scheduler/sim/random_trace.h"

namespace weir::scheduler {
namespace {

constexpr double kTicksPerMs = 1000;
constexpr std::int64_t kMs = 1000;

SimOutcome Simulate(const traces::Trace& trace, const Fabric& fabric, const std::string& policy,
                    SimOptions options = {}) {
  options.scale = {kTicksPerMs, false};
  const auto parsed = ParsePolicy(policy);
  EXPECT_TRUE(parsed) << policy;
  auto order = MakeOrder(parsed->order);
  auto rate = MakeRate(parsed->rate);
  auto outcome = RunFluid(trace, fabric, order->get(), rate->get(), options);
  EXPECT_TRUE(outcome) << policy << ": " << outcome.error().message();
  return std::move(*outcome);
}

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy, const SimOptions& options = {}) {
  return Simulate(trace, Fabric::BigSwitch(trace.ports), policy, options);
}

/// Every order with every fluid rate that it can be combined with.
std::vector<std::string> EveryPolicy() {
  std::vector<std::string> policies;
  for (const OrderInfo& order : Orders()) {
    for (const RateInfo& rate : Rates()) {
      std::string policy = "order=" + std::string(order.name) + " rate=" + std::string(rate.name);
      if (rate.name != kMatching && ParsePolicy(policy)) {
        policies.push_back(std::move(policy));
      }
    }
  }
  policies.push_back("order=sebf rate=madd backfill=off");
  return policies;
}

/// Two coflows on port 0 -> 1 and one that shares only the receiver.
traces::Trace Contended() {
  return {.name = "",
          .ports = 3,
          .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 6000}, {2, 1, 6000}}},
                      {.id = 2, .arrival = 0, .flows = {{0, 1, 20'000}, {0, 2, 20'000}}}}};
}

TEST(FluidSim, AnEarlierCoflowSharesItsReceiverAndALaterOneTakesWhatIsLeft) {
  const SimOutcome outcome = Simulate(Contended(), "order=sebf rate=maxmin");
  EXPECT_EQ(outcome.coflows[0].cct(), 12'000);
  // Sender 0 gives 1/2 to the first coflow, so 1/2 to flow 0 -> 2 until 12000; then both flows share the sender.
  EXPECT_EQ(outcome.coflows[1].cct(), 12'000 + 34'000);
}

TEST(FluidSim, MaddWithoutBackfillLeavesALaterCoflowWaitingForItsWholePath) {
  const SimOutcome with = Simulate(Contended(), "order=sebf rate=madd");
  const SimOutcome without = Simulate(Contended(), "order=sebf rate=madd backfill=off");
  EXPECT_EQ(with.coflows[0].cct(), 12'000);
  EXPECT_EQ(without.coflows[0].cct(), 12'000);
  EXPECT_EQ(without.coflows[1].cct(), 12'000 + 40'000);
  EXPECT_EQ(with.coflows[1].cct(), 12'000 + 34'000);
}

TEST(FluidSim, FairSharesAmongFlowsOfAllCoflows) {
  traces::Trace trace{
      .name = "",
      .ports = 2,
      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 1000}}}, {.id = 2, .arrival = 0, .flows = {{0, 1, 3000}}}}};
  const SimOutcome outcome = Simulate(trace, "order=fifo rate=fair");
  EXPECT_EQ(outcome.coflows[0].cct(), 2000);
  EXPECT_EQ(outcome.coflows[1].cct(), 4000);
}

TEST(FluidSim, WhereAllShareTheOrderHasNoSayAndIsNotAsked) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    for (const std::string rate : {" rate=fair", " rate=drf", " rate=hug"}) {
      const SimOutcome sebf = Simulate(trace, "sebf" + rate);
      const SimOutcome dclas = Simulate(trace, "dclas" + rate);
      EXPECT_EQ(sebf.decisions, 0U) << rate;
      EXPECT_EQ(dclas.decisions, 0U) << rate;
      ASSERT_EQ(sebf.coflows.size(), dclas.coflows.size());
      for (std::size_t i = 0; i < sebf.coflows.size(); ++i) {
        ASSERT_EQ(sebf.coflows[i].cct(), dclas.coflows[i].cct()) << rate << " seed " << seed;
      }
    }
  }
}

TEST(FluidSim, WhereOnlyQueuesAndPilotsMatterNoOrderIsComputed) {
  for (const OrderInfo& order : Orders()) {
    for (const std::string rate : {" rate=queues", " rate=weighted", " rate=fair", " rate=drf", " rate=hug"}) {
      for (const std::int64_t delay : {std::int64_t{0}, kMs}) {
        SimOptions options;
        options.delay = delay;
        EXPECT_EQ(Simulate(RandomTrace(1), std::string(order.name) + rate, options).decisions, 0U)
            << order.name << rate << " delay " << delay;
      }
    }
    EXPECT_GT(Simulate(Contended(), std::string(order.name) + " rate=maxmin").decisions, 0U);
  }
}

TEST(FluidSim, WeightedQueuesShareByQueueAndStrictOnesDoNot) {
  // The first coflow has left the first of two queues when the second one comes: 2 to 1 against it, or nothing at all.
  traces::Trace trace{.name = "",
                      .ports = 2,
                      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 9000}}},
                                  {.id = 2, .arrival = 3 * kMillisecond, .flows = {{0, 1, 1000}}}}};
  const std::string queues = "order=dclas queues=2 first_limit=2000 rate=";
  EXPECT_EQ(Simulate(trace, queues + "weighted").coflows[1].cct(), 1500);
  EXPECT_EQ(Simulate(trace, queues + "queues").coflows[1].cct(), 1000);
}

TEST(FluidSim, AQueueIsLeftInTimeHoweverFastPortsAre) {
  traces::Trace trace{.name = "",
                      .ports = 2,
                      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 9000}}},
                                  {.id = 2, .arrival = 1 * kMillisecond, .flows = {{0, 1, 1000}}}}};
  for (const std::string order : {"dclas", "saath"}) {
    for (const std::string rate : {" rate=maxmin", " rate=greedy", " rate=madd"}) {
      const std::string policy = "order=" + order + " queues=2 first_limit=8000" + rate;
      const SimOutcome outcome = Simulate(trace, Fabric::BigSwitch(2, 4.0), policy);
      // 8000 bytes have been sent after 2000 ticks, and the queue is left a byte later.
      EXPECT_EQ(outcome.coflows[1].cct(), 1001 + 250) << policy;
      EXPECT_EQ(outcome.coflows[0].cct(), 2500) << policy;
      EXPECT_LE(outcome.events, 10U) << policy;
    }
  }
}

TEST(FluidSim, ALinkThatFailsStopsItsFlowsUntilItIsBack) {
  traces::Trace trace{
      .name = "",
      .ports = 3,
      .coflows = {{.id = 1, .arrival = 0, .flows = {{0, 1, 5000}}}, {.id = 2, .arrival = 0, .flows = {{2, 1, 6000}}}}};
  SimOptions options;
  options.capacity_changes = {{2 * kMs, 0, 0.0}, {4 * kMs, 0, 0.5}};
  const SimOutcome outcome = Simulate(trace, "order=sebf rate=maxmin", options);
  // 2000 bytes by 2 ms, nothing until 4 ms, the other 3000 at half the speed; the second coflow gets the rest.
  EXPECT_EQ(outcome.coflows[0].cct(), 10'000);
  EXPECT_EQ(outcome.coflows[1].cct(), 11'000);
}

TEST(FluidSim, ACoflowWhoseLinkNeverComesBackIsNamed) {
  traces::Trace trace{.name = "", .ports = 2, .coflows = {{.id = 17, .arrival = 0, .flows = {{0, 1, 5000}}}}};
  for (const char* policy : {"rate=maxmin", "rate=madd", "rate=greedy", "rate=drf", "rate=hug", "rate=fair"}) {
    SimOptions options;
    options.scale = {kTicksPerMs, false};
    options.capacity_changes = {{2 * kMs, 1 + trace.ports, 0.0}};
    const auto parsed = ParsePolicy(policy);
    auto order = MakeOrder(parsed->order);
    auto rate = MakeRate(parsed->rate);
    const auto outcome = RunFluid(trace, Fabric::BigSwitch(2), order->get(), rate->get(), options);
    ASSERT_FALSE(outcome) << policy;
    EXPECT_NE(outcome.error().message().find("coflow 17 can never end: link 3 has no capacity"), std::string::npos);
    const std::vector<std::string> names = {"up0", "up1", "down0", "down1"};
    options.link_names = names;
    const auto named = RunFluid(trace, Fabric::BigSwitch(2), order->get(), rate->get(), options);
    EXPECT_NE(named.error().message().find("coflow 17 can never end: down1 has no capacity"), std::string::npos);
  }
}

TEST(FluidSim, EveryPolicyMovesEveryByteAndNoCoflowBeatsTheEmptyFabric) {
  const auto policies = EveryPolicy();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    for (const std::string& policy : policies) {
      SimOptions options;
      options.reporting_interval = seed % 3 == 0 ? 2 * kMs : 0;
      options.delay = seed % 5 == 0 ? 7 * kMs : 0;
      options.levels = seed % 4 == 0 ? 3 : 0;
      const SimOutcome outcome = Simulate(trace, policy, options);
      ASSERT_EQ(outcome.bytes_moved, static_cast<double>(trace.TotalBytes())) << policy << " seed " << seed;
      for (const CoflowOutcome& coflow : outcome.coflows) {
        ASSERT_GE(coflow.cct() + 1, coflow.isolation) << policy << " seed " << seed << " coflow " << coflow.id;
      }
    }
  }
}

/// The same on fabrics with inner links and unequal ports, where the ports that a trace names exist.
TEST(FluidSim, EveryRateMovesEveryByteOnAnyFabric) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const Fabric fabric = RandomFabric(&random);
    traces::Trace trace = RandomTrace(seed);
    trace.ports = fabric.ports();
    for (traces::TraceCoflow& coflow : trace.coflows) {
      for (traces::TraceFlow& flow : coflow.flows) {
        flow.source %= fabric.ports();
        flow.destination %= fabric.ports();
      }
    }
    for (const char* policy :
         {"rate=maxmin", "rate=madd", "rate=madd backfill=off", "rate=greedy", "rate=drf", "rate=hug", "rate=fair"}) {
      const SimOutcome outcome = Simulate(trace, fabric, policy);
      ASSERT_EQ(outcome.bytes_moved, static_cast<double>(trace.TotalBytes())) << policy << " seed " << seed;
      for (const CoflowOutcome& coflow : outcome.coflows) {
        ASSERT_GE(coflow.cct() + 1, coflow.isolation) << policy << " seed " << seed << " coflow " << coflow.id;
      }
    }
  }
}

TEST(FluidSim, SameInputSameOutcome) {
  const traces::Trace trace = RandomTrace(7);
  for (const std::string& policy : EveryPolicy()) {
    const SimOutcome a = Simulate(trace, policy);
    const SimOutcome b = Simulate(trace, policy);
    for (std::size_t i = 0; i < a.coflows.size(); ++i) {
      EXPECT_EQ(a.coflows[i].end, b.coflows[i].end) << policy;
    }
  }
}

TEST(FluidSim, ScalingBytesAndTimesScalesEveryCompletionTime) {
  constexpr std::int64_t kScale = 64;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    for (const char* policy : {"rate=maxmin order=fifo", "rate=maxmin order=ncf", "rate=madd order=fifo",
                               "rate=madd backfill=off order=fifo", "rate=drf", "rate=hug", "rate=fair"}) {
      const SimOutcome once = Simulate(RandomTrace(seed), policy);
      const SimOutcome more = Simulate(RandomTrace(seed, kScale), policy);
      for (std::size_t i = 0; i < once.coflows.size(); ++i) {
        // An end is rounded up to a tick, and so may be the ends before it that decide when this one is faster.
        const std::int64_t ticks = 100;
        ASSERT_NEAR(static_cast<double>(kScale * once.coflows[i].cct()), static_cast<double>(more.coflows[i].cct()),
                    static_cast<double>(ticks * kScale))
            << policy << " seed " << seed;
      }
    }
  }
}

/// When every flow end is heard of at once, largest-first greedy rates on equal ports are the matching simulator's.
TEST(FluidSim, GreedyRatesOnEqualPortsAreAMatching) {
  double matching = 0;
  double fluid = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const traces::Trace trace = RandomTrace(seed);
    SimOptions options;
    options.scale = {kTicksPerMs, false};
    auto order = MakeOrder({.name = "sebf"});
    for (const CoflowOutcome& coflow : RunMatching(trace, order->get(), options).coflows) {
      matching += static_cast<double>(coflow.cct());
    }
    for (const CoflowOutcome& coflow : Simulate(trace, "order=sebf rate=greedy").coflows) {
      fluid += static_cast<double>(coflow.cct());
    }
  }
  EXPECT_NEAR(fluid / matching, 1, 0.01);  // Ties between ports are broken at other times.
}

double MeanCct(const SimOutcome& outcome) {
  double sum = 0;
  for (const CoflowOutcome& coflow : outcome.coflows) {
    sum += static_cast<double>(coflow.cct());
  }
  return sum / static_cast<double>(outcome.coflows.size());
}

// Flows that share end shortest first, so learning from all that ended costs more.
TEST(FluidSim, UnknownSizesOfSkewedMappersStayClose) {
  for (const std::uint64_t seed : {1UL, 2UL}) {
    auto trace = traces::GenerateFacebookLike({.seed = seed, .ports = 16, .coflows = 30, .load = 0.9});
    ASSERT_TRUE(trace) << trace.error().message();
    // A port moves 1000 bytes a millisecond here, a 134th of what the trace is made for.
    ASSERT_TRUE(traces::Transform({.scale_arrivals = 134.217728, .skew_sigma = 1.5}, &*trace).ok());
    SimOptions options;
    options.delay = 13'400 * kMs;
    options.reporting_interval = 67'000 * kMs;
    const double known = MeanCct(Simulate(*trace, "order=sebf rate=maxmin", options));
    const double unknown = MeanCct(Simulate(*trace, "order=pilots rate=maxmin", options));
    EXPECT_LE(unknown, 1.2 * known) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::scheduler
