#include "scheduler/sim/coflowsim/simulator.h"

#include <gtest/gtest.h>

#include <random>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/flow_grid.h"
#include "tests/scheduler/sim/coflowsim/small_traces.h"

namespace weir::scheduler::coflowsim {
namespace {

std::string RandomLines(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string lines;
  std::uint64_t arrival = 0;
  for (int id = 1; id <= 8; ++id) {
    arrival += random() % 8000;
    std::string line = std::to_string(id) + " " + std::to_string(arrival);
    const std::uint64_t senders = 1 + random() % 5;
    line += " " + std::to_string(senders);
    for (std::uint64_t i = 0; i < senders; ++i) {
      line += " " + std::to_string((random() % 3 + 3 * i) % 8);
    }
    const std::uint64_t receivers = 1 + random() % 7;
    line += " " + std::to_string(receivers);
    for (std::uint64_t i = 0; i < receivers; ++i) {
      line += " " + std::to_string(random() % 8) + ":" + std::to_string(1 + random() % 90);
    }
    lines += line + "\n";
  }
  return lines;
}

/// FAIR step by step and flow by flow, without blocks, rows or counts that are kept.
std::vector<std::int64_t> FairStepByStep(const std::vector<Coflow>& coflows) {
  struct Flow {
    std::size_t coflow, receiver;
    std::uint32_t from, to;
    double remaining;
  };
  std::vector<std::int64_t> end(coflows.size(), 0);
  std::vector<std::vector<double>> left;
  std::vector<Flow> flows;
  for (const Coflow& coflow : coflows) {
    left.push_back(coflow.bytes);
    for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
      for (const std::uint32_t from : coflow.senders) {
        flows.push_back(
            {coflow.index, r, from, coflow.receivers[r], coflow.bytes[r] / static_cast<double>(coflow.senders.size())});
      }
    }
  }
  for (std::int64_t now = kStepMs; !flows.empty(); now += kStepMs) {
    std::vector<double> up(8), down(8);
    for (const Flow& flow : flows) {
      ++up[flow.from];
      ++down[flow.to];
    }
    for (Flow& flow : flows) {
      const double moved = std::min({kStepBytes / down[flow.to], kStepBytes / up[flow.from], flow.remaining});
      flow.remaining -= moved;
      double& receiver_left = left[flow.coflow][flow.receiver];
      receiver_left -= moved;
      const bool last = std::none_of(flows.begin(), flows.end(), [&flow](const Flow& other) {
        return other.coflow == flow.coflow && other.receiver == flow.receiver && other.remaining > kZero;
      });
      if (receiver_left > -kStepBytes && (receiver_left <= kZero || last)) {
        receiver_left = -1e18;  // It has ended.
        end[flow.coflow] = now;
      }
    }
    std::erase_if(flows, [](const Flow& flow) { return flow.remaining <= kZero; });
  }
  return end;
}

TEST(CoflowSim, FairEqualsAPlainLoop) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    traces::Trace trace = FacebookTrace(RandomLines(seed));
    for (auto& coflow : trace.coflows) {
      coflow.arrival = 0;
    }
    const auto outcome = RunCoflowSim(trace, {.policy = Policy::kFair}).value();
    ASSERT_EQ(CompletionTimes(outcome), FairStepByStep(ReadCoflows(trace, 1).value())) << "seed " << seed;
  }
}

TEST(FlowGrid, ManyStepsAtOnceEqualSteps) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto coflows = ReadCoflows(FacebookTrace(RandomLines(seed)), 1).value();
    const Coflow& coflow = coflows[random() % coflows.size()];
    FlowGrid at_once(coflow, true);
    FlowGrid by_step(coflow, true);
    for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
      for (std::size_t s = 0; s < coflow.senders.size(); ++s) {
        const double move = random() % 4 == 0 ? 0.0 : kStepBytes / static_cast<double>(1 + random() % 400);
        at_once.move(s, r) = by_step.move(s, r) = move;
      }
    }
    ASSERT_EQ(at_once.OnMoves(), by_step.OnMoves());
    for (int run = 0; run < 5; ++run) {
      const auto steps = static_cast<std::int64_t>(1 + random() % 1500);
      at_once.Advance(steps);
      for (std::int64_t i = 0; i < steps; ++i) {
        by_step.Advance(1);
      }
      ASSERT_EQ(at_once.open_receivers(), by_step.open_receivers()) << "seed " << seed;
      for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
        ASSERT_EQ(at_once.left(r), by_step.left(r)) << "seed " << seed;
        ASSERT_EQ(at_once.stated_left()[r], by_step.stated_left()[r]) << "seed " << seed;
        for (std::size_t s = 0; s < coflow.senders.size(); ++s) {
          ASSERT_EQ(at_once.remaining(s, r), by_step.remaining(s, r)) << "seed " << seed;
        }
      }
    }
  }
}

TEST(CoflowSim, EverythingEndsAndNothingFasterThanItsBottleneck) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const traces::Trace trace = FacebookTrace(RandomLines(seed));
    for (const Policy policy : {Policy::kFair, Policy::kPfp, Policy::kFifo, Policy::kScf, Policy::kNcf, Policy::kLcf,
                                Policy::kSebf, Policy::kDark}) {
      for (const std::int64_t epoch : {kEpochMs, kStepMs}) {
        const auto outcome = RunCoflowSim(trace, {.policy = policy, .epoch_ms = epoch}).value();
        ASSERT_EQ(outcome.sim.coflows.size(), trace.coflows.size());
        for (const CoflowOutcome& coflow : outcome.sim.coflows) {
          ASSERT_GE(coflow.cct(), coflow.isolation) << PolicyName(policy) << " seed " << seed;
          ASSERT_EQ(coflow.cct() % (kStepMs * kTicksPerMs), 0);
        }
      }
    }
  }
}

void ExpectError(const Result<Outcome>& outcome, StatusCode code, const std::string& part) {
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code(), code);
  EXPECT_NE(outcome.error().message().find(part), std::string::npos) << outcome.error().message();
}

TEST(CoflowSim, OptionsOutOfRangeAreRefused) {
  const traces::Trace trace = FacebookTrace("1 0 1 0 1 1:1\n");
  for (const std::int64_t epoch : {0L, -8L, 12L, kEndMs + 8}) {
    ExpectError(RunCoflowSim(trace, {.epoch_ms = epoch}), StatusCode::kInvalidArgument, "allowed: multiples of 8");
  }
  for (const double factor : {-0.5, 1001.0, std::numeric_limits<double>::quiet_NaN()}) {
    ExpectError(RunCoflowSim(trace, {.policy = Policy::kFifo, .deadline_factor = factor}), StatusCode::kInvalidArgument,
                "allowed: 0 to 1000");
  }
  for (const double zero : {0.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    ExpectError(RunCoflowSim(trace, {.free_zero = zero}), StatusCode::kInvalidArgument, "allowed: 0.001 to 1000000");
  }
  ExpectError(RunCoflowSim(trace, {.policy = Policy::kSebf, .deadline_factor = 1}), StatusCode::kInvalidArgument,
              "allowed: policy FIFO");
  EXPECT_EQ(PolicyFromName("sebf").value(), Policy::kSebf);
  EXPECT_NE(PolicyFromName("ls").error().message().find("allowed: FAIR, PFP"), std::string::npos);
}

TEST(CoflowSim, WhatItCannotExpressIsRefused) {
  traces::Trace trace = FacebookTrace("7 0 2 0 2 1 1:4\n");
  trace.coflows[0].flows[1].bytes *= 2;
  ExpectError(RunCoflowSim(trace, {}), StatusCode::kUnsupported, "coflow 7 does not split what port 1 receives evenly");
  trace = FacebookTrace("7 0 2 0 2 2 1:4 3:4\n");
  trace.coflows[0].flows.pop_back();
  ExpectError(RunCoflowSim(trace, {}), StatusCode::kUnsupported, "coflow 7 does not split what port 3 receives evenly");
  trace = FacebookTrace("7 0 1 0 1 1:4\n");
  trace.coflows[0].size_known = false;
  ExpectError(RunCoflowSim(trace, {}), StatusCode::kUnsupported, "coflow 7 has no flows, or dependencies");
  ExpectError(RunCoflowSim(FacebookTrace("7 0 1 0 1 1:12000000\n"), {}), StatusCode::kUnsupported, "room for 11059200");
}

TEST(CoflowSim, WhatHasNotEndedAfterItsDayIsNamed) {
  const std::string late = "1 0 1 0 1 1:1\n2 88473700 1 0 1 1:1\n";
  ExpectError(RunCoflowSim(FacebookTrace(late), {}), StatusCode::kUnsupported, "coflow 2 has not ended");
}

TEST(CoflowSim, ItsProblemForOthersHasEarlyArrivalsWholeMegabytesAndItsDeadlines) {
  const traces::Trace trace = FacebookTrace("1 0 1 0 1 1:0.5\n2 10245 1 2 1 3:128\n");
  const traces::Trace problem = ProblemOfCoflowSim(trace, {.policy = Policy::kFifo, .deadline_factor = 0.0}).value();
  EXPECT_EQ(problem.ports, 8u);
  ASSERT_EQ(problem.coflows.size(), 2u);
  EXPECT_EQ(problem.coflows[0].flows, (std::vector<traces::TraceFlow>{{0, 1, 1'048'576}}));
  EXPECT_EQ(problem.coflows[1].arrival, 10'240 * kMillisecond);
  EXPECT_EQ(problem.coflows[1].deadline, 1024 * kMillisecond);
  EXPECT_EQ(ProblemOfCoflowSim(trace, {.epoch_ms = kStepMs}).value().coflows[1].deadline, 0);
  EXPECT_FALSE(ProblemOfCoflowSim(trace, {.epoch_ms = 0}));
}

// What CoflowSim itself prints, built from its public source, for the same lines: times of the eight coflows.
TEST(CoflowSim, SmallTracesEndAsInCoflowSim) {
  struct Printed {
    std::uint64_t seed;
    Policy policy;
    std::vector<std::int64_t> times;
  };
  const Printed printed[] = {
      {1, Policy::kFair, {312, 2216, 2808, 2296, 1408, 568, 64, 768}},
      {1, Policy::kPfp, {312, 2808, 2456, 2768, 1400, 848, 208, 976}},
      {1, Policy::kFifo, {312, 1440, 2000, 2808, 1112, 1400, 32, 704}},
      {1, Policy::kScf, {312, 1440, 2816, 1304, 1400, 416, 24, 704}},
      {1, Policy::kNcf, {312, 2808, 1456, 2264, 1112, 1400, 32, 704}},
      {1, Policy::kLcf, {312, 2808, 1456, 2264, 1128, 1408, 24, 704}},
      {1, Policy::kSebf, {312, 1768, 2816, 808, 1400, 416, 24, 704}},
      {1, Policy::kDark, {312, 1440, 4544, 5480, 1656, 2064, 1680, 840}},
      {5, Policy::kFair, {416, 424, 1296, 2112, 1856, 1368, 2680, 704}},
      {5, Policy::kPfp, {416, 424, 1384, 1824, 1864, 1192, 2600, 704}},
      {5, Policy::kFifo, {416, 424, 456, 896, 1800, 1832, 2608, 704}},
      {5, Policy::kScf, {424, 360, 456, 928, 1832, 576, 2608, 704}},
      {5, Policy::kNcf, {424, 360, 624, 704, 1832, 576, 2608, 704}},
      {5, Policy::kLcf, {424, 360, 456, 928, 2616, 576, 2200, 704}},
      {5, Policy::kSebf, {424, 360, 456, 896, 1832, 928, 2608, 704}},
      {5, Policy::kDark, {416, 776, 456, 2544, 2232, 2520, 3232, 704}},
  };
  for (const Printed& one : printed) {
    EXPECT_EQ(CompletionTimes(RandomLines(one.seed), one.policy), one.times)
        << PolicyName(one.policy) << " seed " << one.seed;
  }
}

TEST(CoflowSim, AnEmptyTraceIsDoneAtOnce) {
  const auto outcome = RunCoflowSim(FacebookTrace(""), {}).value();
  EXPECT_TRUE(outcome.sim.coflows.empty());
  EXPECT_EQ(outcome.sim.makespan, 0);
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
