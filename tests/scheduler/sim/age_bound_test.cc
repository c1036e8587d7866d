#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <tuple>

#include "scheduler/policy/policy.h"
#include "scheduler/sim/matching_sim.h"

namespace weir::scheduler {
namespace {

constexpr double kTicksPerMs = 1000;
constexpr std::uint64_t kBig = 1;

SimOutcome Simulate(const traces::Trace& trace, const std::string& policy) {
  SimOptions options;
  options.scale = {kTicksPerMs, false};
  auto order = MakeOrder(ParsePolicy(policy)->order);
  return RunMatching(trace, order->get(), options);
}

/// Ticks between `due` and the end that the bound of MakeAgeBound allows coflow `c`.
std::int64_t Allowance(const traces::Trace& trace, const SimOutcome& outcome, double beta, std::size_t c) {
  const auto due = [&](std::size_t i) {
    const CoflowOutcome& coflow = outcome.coflows[i];
    return coflow.arrival + static_cast<std::int64_t>(std::ceil(beta * static_cast<double>(coflow.isolation)));
  };
  std::vector<std::int64_t> source(trace.ports), destination(trace.ports);
  for (std::size_t i = 0; i < trace.coflows.size(); ++i) {
    const bool before = std::tuple(due(i), outcome.coflows[i].id) <= std::tuple(due(c), outcome.coflows[c].id);
    if (before && outcome.coflows[i].end > due(c)) {
      for (const traces::TraceFlow& flow : trace.coflows[i].flows) {
        source[flow.source] += static_cast<std::int64_t>(flow.bytes);
        destination[flow.destination] += static_cast<std::int64_t>(flow.bytes);
      }
    }
  }
  std::int64_t most = 0;
  for (const traces::TraceFlow& flow : trace.coflows[c].flows) {
    most = std::max(most, source[flow.source] + destination[flow.destination]);
  }
  return due(c) + most - outcome.coflows[c].arrival;
}

/// One big coflow, and small ones that alone fill every port for `ms` milliseconds.
traces::Trace EndlessSmallArrivals(std::int64_t ms) {
  traces::Trace trace{.name = "", .ports = 2, .coflows = {{.id = kBig, .flows = {{0, 1, 50'000}, {1, 0, 50'000}}}}};
  for (std::int64_t i = 0; i < ms; ++i) {
    trace.coflows.push_back(
        {.id = static_cast<std::uint64_t>(i) + 2, .arrival = i * kMillisecond, .flows = {{0, 1, 1000}, {1, 0, 1000}}});
  }
  return trace;
}

TEST(AgeBound, ABigCoflowEndsAmongEndlessSmallOnes) {
  for (const std::int64_t ms : {1000, 4000}) {
    const traces::Trace trace = EndlessSmallArrivals(ms);
    for (const char* order : {"scf", "sebf", "bssi", "ls"}) {
      const SimOutcome starved = Simulate(trace, order);
      EXPECT_GT(starved.coflows[0].end, ms * 1000) << order;
      const SimOutcome bounded = Simulate(trace, std::string(order) + " age_bound=3");
      // Due at 150 ms; at most the one small coflow that is in the middle of its millisecond was due before.
      EXPECT_LE(bounded.coflows[0].cct(), Allowance(trace, bounded, 3, 0)) << order;
      EXPECT_LE(bounded.coflows[0].end, 252'000) << order;
    }
  }
}

TEST(AgeBound, EveryCoflowEndsWithinTheStatedBound) {
  std::size_t due = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937_64 random(seed);
    traces::Trace trace{.name = "", .ports = 4, .coflows = {}};
    for (std::uint64_t id = 1; id <= 15; ++id) {
      traces::TraceCoflow coflow{.id = id, .arrival = static_cast<std::int64_t>(random() % 40) * kMillisecond};
      const std::uint64_t size = random() % 4 == 0 ? 9000 : 500;
      for (std::size_t i = 0; i < 1 + random() % 6; ++i) {
        coflow.flows.push_back(
            {static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 4), 1 + random() % size});
      }
      traces::CountEnds(&coflow);
      trace.coflows.push_back(std::move(coflow));
    }
    ASSERT_TRUE(traces::Finish(&trace, "t").ok());
    for (const double beta : {1.0, 1.7, 3.0}) {
      for (const char* order : {"sebf", "ls"}) {
        const SimOutcome outcome = Simulate(trace, std::string(order) + " age_bound=" + std::to_string(beta));
        for (std::size_t c = 0; c < trace.coflows.size(); ++c) {
          const CoflowOutcome& coflow = outcome.coflows[c];
          due += static_cast<double>(coflow.cct()) > beta * static_cast<double>(coflow.isolation) ? 1U : 0U;
          ASSERT_LE(coflow.cct(), Allowance(trace, outcome, beta, c)) << order << " seed " << seed << " beta " << beta;
        }
      }
    }
  }
  EXPECT_GT(due, 1000u) << "the bound is hardly ever reached, so this test shows nothing";
}

TEST(AgeBound, NeedsKnownSizes) {
  const auto policy = ParsePolicy("pilots age_bound=3");
  ASSERT_FALSE(policy);
  EXPECT_NE(policy.error().message().find("order pilots does not know sizes"), std::string::npos);
}

}  // namespace
}  // namespace weir::scheduler
