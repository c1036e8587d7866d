// What is peculiar about CoflowSim, one by one, on traces small enough for paper. A step is 8 ms and moves 1 MB.

#include <gtest/gtest.h>

#include "scheduler/sim/coflowsim/coflow.h"
#include "tests/scheduler/sim/coflowsim/small_traces.h"

namespace weir::scheduler::coflowsim {
namespace {

using Times = std::vector<std::int64_t>;

constexpr Policy kAll[] = {Policy::kFair, Policy::kPfp, Policy::kFifo, Policy::kScf,
                           Policy::kNcf,  Policy::kLcf, Policy::kSebf, Policy::kDark};

TEST(Quirks, AlmostNothingTakesAWholeStep) {
  for (const Policy policy : kAll) {
    EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:0.001\n", policy), Times{8}) << PolicyName(policy);
  }
}

TEST(Quirks, ReceiversAreRoundedUpToAMegabyteForEachDistinctSender) {
  for (const Policy policy : kAll) {
    EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:1.5\n", policy), Times{16}) << PolicyName(policy);
    EXPECT_EQ(CompletionTimes("1 0 4 0 2 3 0 1 1:1\n", policy), Times{24}) << PolicyName(policy);
    // Each reducer of a port is rounded by itself first.
    EXPECT_EQ(CompletionTimes("1 0 1 0 2 1:0.5 1:0.5\n", policy), Times{16}) << PolicyName(policy);
  }
}

TEST(Quirks, CoflowsStartAtTheEpochBeforeTheirArrival) {
  const auto starts = [](std::int64_t epoch_ms) {
    const auto outcome =
        RunCoflowSim(FacebookTrace("1 0 1 0 1 1:1\n2 10240 1 2 1 3:1\n3 10241 1 4 1 5:1\n4 10245 1 6 1 7:1\n"),
                     {.policy = Policy::kFifo, .epoch_ms = epoch_ms})
            .value();
    Times times;
    for (const CoflowOutcome& coflow : outcome.sim.coflows) {
      times.push_back(coflow.arrival / kTicksPerMs);
    }
    return times;
  };
  EXPECT_EQ(starts(kEpochMs), (Times{0, 0, 10'240, 10'240}));
  EXPECT_EQ(starts(kStepMs), (Times{0, 10'232, 10'240, 10'240}));
}

TEST(Quirks, AFlowToItsOwnPortIsChargedTwice) {
  for (const Policy policy : {Policy::kPfp, Policy::kFifo, Policy::kDark}) {
    EXPECT_EQ(CompletionTimes("1 0 1 0 1 0:1\n2 0 1 0 1 1:1\n3 0 1 2 1 0:1\n", policy)[0], 8) << PolicyName(policy);
  }
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 0:1\n2 0 1 0 1 1:1\n3 0 1 2 1 0:1\n", Policy::kFifo), (Times{8, 16, 16}));
}

TEST(Quirks, APortThatAFlowLeavesStaysIdleUntilACoflowEnds) {
  // Half of the sender for each receiver; the first ends after 2 steps, the other goes on with half.
  EXPECT_EQ(CompletionTimes("1 0 1 0 2 1:1 2:3\n", Policy::kDark), Times{48});
  EXPECT_EQ(CompletionTimes("1 0 1 0 2 1:1 2:3\n", Policy::kFair), Times{32});
}

TEST(Quirks, TheOrderIsFixedAtTheStartAndTiesGoBehind) {
  // The first has two senders, 4 MB each, the second one with 6 MB.
  const std::string lines = "1 0 2 0 2 1 1:8\n2 0 1 0 1 1:6\n";
  const Times first_first = {64, 112};
  const Times second_first = {112, 48};
  EXPECT_EQ(CompletionTimes(lines, Policy::kFifo), first_first);
  EXPECT_EQ(CompletionTimes(lines, Policy::kScf), first_first);   // 4 MB before 6 MB
  EXPECT_EQ(CompletionTimes(lines, Policy::kNcf), first_first);   // 1 and 1
  EXPECT_EQ(CompletionTimes(lines, Policy::kLcf), second_first);  // 6 MB before 8 MB
  EXPECT_EQ(CompletionTimes(lines, Policy::kSebf), second_first);
  const std::string wide = "1 0 2 0 2 2 1:2 3:2\n2 0 1 0 1 1:6\n";
  EXPECT_EQ(CompletionTimes(wide, Policy::kNcf)[1], 48);
  EXPECT_GT(CompletionTimes(wide, Policy::kSebf)[1], 48);
}

TEST(Quirks, OnlyLcfLooksAtWhatIsLeft) {
  // After an epoch the first has 10 MB left of 1290; the second comes with 20.
  const std::string lines = "1 0 1 0 1 1:1290\n2 10241 1 0 1 1:20\n";
  EXPECT_EQ(CompletionTimes(lines, Policy::kLcf), (Times{10'320, 240}));
  EXPECT_EQ(CompletionTimes(lines, Policy::kSebf), (Times{10'480, 160}));
}

TEST(Quirks, ACoflowThatNeedsAFullPortIsSkippedAndThenGetsAShare) {
  // The second needs port 0, which is taken; its other flow gets all of port 2. Without the share it would end at 48.
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:2\n2 0 2 0 2 1 3:4\n", Policy::kFifo), (Times{16, 32}));
}

TEST(Quirks, PfpServesLowReceiversFirstAndNotShortFlows) {
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 2:1\n2 0 1 0 1 1:5\n", Policy::kPfp), (Times{48, 40}));
  // At one receiver the shorter one goes first; a sender that is taken makes way for the next of the list.
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:5\n2 0 1 2 1 1:1\n", Policy::kPfp), (Times{48, 8}));
}

TEST(Quirks, FairIsTheSmallerOfTwoEqualShares) {
  // A third for each flow of sender 0, so the third coflow could have two thirds of receiver 2; it gets half.
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:3\n2 0 1 0 1 2:3\n3 0 1 3 1 2:3\n4 0 1 0 1 4:3\n", Policy::kFair),
            (Times{72, 72, 48, 72}));
}

TEST(Quirks, DarkDemotesOnlyWhenSomebodyStartsOrEnds) {
  // Alone, the first moves 1280 MB in its first queue; then new ones go strictly before it.
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:3000\n2 10241 1 0 1 1:5\n", Policy::kDark), (Times{24'040, 40}));
  // Two that start together are both in the first queue until the first of them ends, however large.
  EXPECT_EQ(CompletionTimes("1 0 1 0 1 1:1000\n2 0 1 0 1 1:5\n", Policy::kDark), (Times{8'000, 8'040}));
}

TEST(Quirks, DeadlinesAreDrawnForAllAndCountAThousandMillisecondsToTheSecond) {
  const auto coflows = ReadCoflows(FacebookTrace("1 0 1 0 1 1:128\n2 0 1 0 1 1:64\n"), 1).value();
  EXPECT_DOUBLE_EQ(coflows[0].deadline_ms, 1'732.3115139597316);
  EXPECT_DOUBLE_EQ(coflows[1].deadline_ms, 848.68523918037485);
}

Outcome WithDeadlines(const std::string& lines) {
  return RunCoflowSim(FacebookTrace(lines), {.policy = Policy::kFifo, .deadline_factor = 0.0}).value();
}

TEST(Quirks, ADeadlineIsMetWithinAHundredMilliseconds) {
  const Outcome outcome = WithDeadlines("1 0 1 0 1 1:128\n2 0 1 0 1 1:1\n");
  EXPECT_EQ(CompletionTimes(outcome), Times{1'024});  // The deadline is 1000.
  EXPECT_EQ(outcome.met, 1u);
  EXPECT_EQ(outcome.refused, 1u);
}

TEST(Quirks, ARefusalStopsWhatRunsUntilSomebodyIsAdmitted) {
  const std::string other_port_later = "1 0 1 0 1 1:2560\n2 10241 1 0 1 1:1\n3 20481 1 2 1 3:1\n";
  const Outcome outcome = WithDeadlines(other_port_later);
  EXPECT_EQ(CompletionTimes(outcome), (Times{30'720, 8}));  // 20480 of work, 10240 of standing still
  EXPECT_EQ(outcome.refused, 1u);
  EXPECT_EQ(outcome.met, 1u);
}

TEST(Quirks, WhatARefusalStopsForGoodCountsAsMet) {
  const Outcome outcome = WithDeadlines("1 0 1 0 1 1:2560\n2 10241 1 0 1 1:1\n");
  EXPECT_EQ(CompletionTimes(outcome), Times{});
  EXPECT_EQ(outcome.stuck, 1u);
  EXPECT_EQ(outcome.refused, 1u);
  EXPECT_EQ(outcome.met, 1u);
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
