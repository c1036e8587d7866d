#include "coflow/traces/transform.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

namespace weir::traces {
namespace {

Trace RandomTrace(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Trace trace{.name = "t", .ports = 5, .coflows = {}};
  for (std::uint64_t id = 1; id <= 20; ++id) {
    TraceCoflow coflow{.id = id, .arrival = static_cast<Nanoseconds>(random() % 1000) * kMillisecond};
    for (std::size_t i = 0; i < 1 + random() % 12; ++i) {
      coflow.flows.push_back(
          {static_cast<std::uint32_t>(random() % 5), static_cast<std::uint32_t>(random() % 5), 1 + random() % 5000});
    }
    CountEnds(&coflow);
    trace.coflows.push_back(std::move(coflow));
  }
  EXPECT_TRUE(Finish(&trace, "t").ok());
  return trace;
}

std::map<std::uint32_t, Bytes> ReceivedBy(const TraceCoflow& coflow) {
  std::map<std::uint32_t, Bytes> bytes;
  for (const TraceFlow& flow : coflow.flows) {
    bytes[flow.destination] += flow.bytes;
  }
  return bytes;
}

std::vector<Nanoseconds> ArrivalTimes(const Trace& trace) {
  std::vector<Nanoseconds> times;
  for (const TraceCoflow& coflow : trace.coflows) {
    times.push_back(coflow.arrival);
  }
  std::sort(times.begin(), times.end());
  return times;
}

Trace Transformed(Trace trace, const TransformOptions& options) {
  const Status status = Transform(options, &trace);
  EXPECT_TRUE(status.ok()) << status.message();
  return trace;
}

TEST(Transform, NothingAskedNothingChanged) {
  const Trace trace = RandomTrace(1);
  EXPECT_EQ(Transformed(trace, {}).coflows, trace.coflows);
}

TEST(Transform, SkewKeepsWhatEachPortReceivesAndEveryFlow) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Trace before = RandomTrace(seed);
    const Trace after = Transformed(before, {.skew_sigma = 2, .skew_seed = seed});
    ASSERT_NE(before.coflows, after.coflows) << "seed " << seed;
    for (std::size_t i = 0; i < before.coflows.size(); ++i) {
      ASSERT_EQ(ReceivedBy(before.coflows[i]), ReceivedBy(after.coflows[i])) << "seed " << seed;
      ASSERT_EQ(before.coflows[i].flows.size(), after.coflows[i].flows.size());
      for (const TraceFlow& flow : after.coflows[i].flows) {
        ASSERT_GE(flow.bytes, 1u) << "seed " << seed;
      }
    }
  }
}

TEST(Transform, SkewHasTheSpreadItSays) {
  Trace trace{.name = "t", .ports = 2, .coflows = {{.id = 1}}};
  trace.coflows[0].flows.assign(20'000, {0, 1, 1'000'000});
  const Trace skewed = Transformed(trace, {.skew_sigma = 1, .skew_seed = 5});
  double sum = 0;
  double square = 0;
  for (const TraceFlow& flow : skewed.coflows[0].flows) {
    sum += std::log(static_cast<double>(flow.bytes));
    square += std::log(static_cast<double>(flow.bytes)) * std::log(static_cast<double>(flow.bytes));
  }
  const double mean = sum / 20'000;
  EXPECT_NEAR(std::sqrt(square / 20'000 - mean * mean), 1, 0.03);
}

TEST(Transform, ShuffleDealsOutTheSameArrivalTimes) {
  const Trace before = RandomTrace(3);
  const Trace after = Transformed(before, {.shuffle_seed = 9});
  EXPECT_EQ(ArrivalTimes(before), ArrivalTimes(after));
  EXPECT_NE(before.coflows, after.coflows);
  EXPECT_EQ(after.coflows, Transformed(before, {.shuffle_seed = 9}).coflows);
  EXPECT_NE(after.coflows, Transformed(before, {.shuffle_seed = 10}).coflows);
}

TEST(Transform, ScalesBytesAndArrivals) {
  Trace trace{.name = "t", .ports = 2, .coflows = {{.id = 1, .arrival = 10, .flows = {{0, 1, 100}, {1, 0, 1}}}}};
  trace = Transformed(trace, {.scale_bytes = 0.25, .scale_arrivals = 3});
  EXPECT_EQ(trace.coflows[0].arrival, 30);
  EXPECT_EQ(trace.coflows[0].flows[0].bytes, 25u);
  EXPECT_EQ(trace.coflows[0].flows[1].bytes, 1u);
}

TEST(Transform, BatchesTakeTheCoflowsThatArriveUntilTheNextOne) {
  Trace trace{.name = "t", .ports = 2, .coflows = {}};
  for (const Nanoseconds arrival : {0, 1, 10, 11, 20, 25}) {
    trace.coflows.push_back(
        {.id = static_cast<std::uint64_t>(100 + arrival), .arrival = arrival, .flows = {{0, 1, 1}}});
  }
  trace = Transformed(trace, {.batch_arrivals = 10});
  EXPECT_EQ(ArrivalTimes(trace), (std::vector<Nanoseconds>{0, 0, 0, 10, 10, 20}));
}

TEST(Transform, DeadlinesLieBetweenIsolationAndItsMultiple) {
  for (const double factor : {0.0, 1.0, 3.0}) {
    const Trace trace = Transformed(RandomTrace(4), {.deadline_factor = factor, .port_rate = 1000});
    for (const TraceCoflow& coflow : trace.coflows) {
      const double alone = static_cast<double>(BottleneckBytes(coflow, trace.ports)) / 1000 * 1e9;
      EXPECT_GE(static_cast<double>(coflow.deadline), alone);
      EXPECT_LE(static_cast<double>(coflow.deadline), alone * (1 + factor) + 1);
    }
  }
}

TEST(Transform, RefusesWhatItCannotDo) {
  const auto refusal = [](const TransformOptions& options, Trace trace) {
    const Status status = Transform(options, &trace);
    EXPECT_FALSE(status.ok());
    return status.message();
  };
  const Trace small = RandomTrace(5);
  EXPECT_EQ(refusal({.skew_sigma = -1}, small), "skew_sigma: found -1, allowed: 0 to 10");
  EXPECT_EQ(refusal({.scale_bytes = 0}, small), "scale_bytes: found 0, allowed: 1e-06 to 1000000");
  EXPECT_NE(
      refusal({.deadline_factor = std::numeric_limits<double>::quiet_NaN()}, small).find("deadline_factor: found nan"),
      std::string::npos);
  Trace huge{.name = "t", .ports = 2, .coflows = {{.id = 7, .flows = {{0, 1, kFlowBytesMax}, {0, 1, 1}}}}};
  EXPECT_NE(refusal({.scale_bytes = 2}, huge).find("coflow 7: scaled, a flow has"), std::string::npos);
  EXPECT_NE(refusal({.skew_sigma = 1}, huge).find("coflow 7: a port receives"), std::string::npos);
  Trace late{.name = "t", .ports = 2, .coflows = {{.id = 7, .arrival = kTimeMax, .flows = {{0, 1, 1}}}}};
  EXPECT_NE(refusal({.scale_arrivals = 2}, late).find("coflow 7: scaled, it arrives later"), std::string::npos);
  Trace chained{.name = "t",
                .ports = 2,
                .coflows = {{.id = 7, .flows = {{0, 1, 1}}}, {.id = 8, .after = {7}, .flows = {{0, 1, 1}}}}};
  EXPECT_NE(refusal({.shuffle_seed = 1}, chained).find("coflow 8 waits for others"), std::string::npos);
}

}  // namespace
}  // namespace weir::traces
