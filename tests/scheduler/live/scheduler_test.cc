#include "scheduler/live/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace weir::scheduler {
namespace {

/// Coflows on a big switch of `ports` ports of 100 bytes/s.
class LiveSchedulerTest : public testing::Test {
 protected:
  struct Pair {
    std::uint32_t from;
    std::uint32_t to;
    std::int64_t bytes;
  };

  void Make(std::uint32_t ports, LiveOptions options = {.limits = {.coflows = 8, .flows = 32}}) {
    ports_ = ports;
    live_ = LiveScheduler::Make(std::vector<WholeRate>(2 * ports, 100), options).value();
  }

  Result<CoflowSlot> TryAdd(const std::vector<Pair>& pairs, double key = 0) {
    std::vector<std::vector<LinkIndex>> paths;
    for (const Pair& pair : pairs) {
      paths.push_back({pair.from, ports_ + pair.to});
    }
    std::vector<LiveFlow> flows;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      flows.push_back({pairs[i].bytes, paths[i]});
    }
    ++id_;
    return live_->AddCoflow({CoflowId(id_), static_cast<Nanoseconds>(id_), key, flows});
  }
  CoflowSlot Add(const std::vector<Pair>& pairs, double key = 0) { return TryAdd(pairs, key).value(); }

  std::vector<WholeRate> Rates(CoflowSlot slot) const {
    std::vector<WholeRate> rates;
    for (const FlowIndex flow : live_->fabric().Flows(slot)) {
      rates.push_back(live_->fabric().rate[flow]);
    }
    return rates;
  }
  std::vector<CoflowSlot> Order() const { return {live_->order().begin(), live_->order().end()}; }

  std::uint32_t ports_ = 0;
  std::uint64_t id_ = 0;
  std::unique_ptr<LiveScheduler> live_;
};

using Slots = std::vector<CoflowSlot>;
using Whole = std::vector<WholeRate>;

TEST_F(LiveSchedulerTest, TheSmallestBottleneckGoesFirst) {
  Make(3);
  const CoflowSlot large = Add({{0, 0, 900}});
  const CoflowSlot wide = Add({{0, 0, 200}, {0, 1, 200}});  // 400 bytes on its sender.
  const CoflowSlot small = Add({{0, 0, 300}});
  live_->Update();
  EXPECT_EQ(Order(), Slots({small, wide, large}));
  EXPECT_EQ(Rates(small), Whole({100}));
  EXPECT_EQ(Rates(wide), Whole({0, 0}));
  EXPECT_EQ(Rates(large), Whole({0}));
}

TEST_F(LiveSchedulerTest, WhatTheFirstCannotUseGoesToTheNext) {
  Make(3);
  const CoflowSlot first = Add({{0, 0, 100}, {0, 1, 100}});
  const CoflowSlot next = Add({{1, 0, 500}, {1, 2, 500}});
  live_->Update();
  EXPECT_EQ(Rates(first), Whole({50, 50}));
  EXPECT_EQ(Rates(next), Whole({50, 50}));
}

TEST_F(LiveSchedulerTest, GreedyServesFlowsInTheirOrder) {
  Make(2, {.rates = LiveRates::kGreedy, .limits = {.coflows = 8, .flows = 32}});
  const CoflowSlot slot = Add({{0, 0, 100}, {0, 1, 100}, {1, 1, 100}});
  live_->Update();
  EXPECT_EQ(Rates(slot), Whole({100, 0, 100}));
}

TEST_F(LiveSchedulerTest, ADepartureHandsItsLinksOn) {
  Make(2);
  const CoflowSlot first = Add({{0, 0, 100}});
  const CoflowSlot second = Add({{0, 0, 200}});
  const CoflowSlot elsewhere = Add({{1, 1, 300}});
  live_->Update();
  ASSERT_TRUE(live_->RemoveCoflow(first).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({second, elsewhere}));
  EXPECT_EQ(Rates(second), Whole({100}));
  ASSERT_EQ(live_->changed().size(), 1u);
  EXPECT_EQ(live_->changed()[0], live_->fabric().Flows(second)[0]);
  EXPECT_EQ(live_->work().visits, 1u);
}

TEST_F(LiveSchedulerTest, AnEventThatConcernsNobodyVisitsNobody) {
  Make(2);
  const CoflowSlot first = Add({{0, 0, 100}});
  const CoflowSlot waiting = Add({{0, 0, 200}});
  Add({{0, 0, 300}});
  live_->Update();
  ASSERT_TRUE(live_->RemoveCoflow(waiting).ok());
  live_->Update();
  EXPECT_EQ(live_->work().visits, 0u);
  EXPECT_TRUE(live_->changed().empty());
  EXPECT_EQ(Rates(first), Whole({100}));
}

TEST_F(LiveSchedulerTest, TheEndOfAFlowLeavesItsCoflow) {
  Make(2);
  const CoflowSlot slot = Add({{0, 0, 100}, {0, 1, 100}});
  live_->Update();
  ASSERT_TRUE(live_->EndFlow(live_->fabric().Flows(slot)[0]).ok());
  live_->Update();
  EXPECT_EQ(Rates(slot), Whole({100}));
  ASSERT_TRUE(live_->EndFlow(live_->fabric().Flows(slot)[0]).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({slot}));
  EXPECT_TRUE(live_->RemoveCoflow(slot).ok());
}

TEST_F(LiveSchedulerTest, ALinkThatFailsStopsItsFlowsAndOrdersThemLast) {
  Make(2);
  const CoflowSlot small = Add({{0, 0, 100}});
  const CoflowSlot large = Add({{1, 0, 200}});
  live_->Update();
  ASSERT_TRUE(live_->SetCapacity(0, 0).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({large, small}));
  EXPECT_EQ(Rates(small), Whole({0}));
  EXPECT_EQ(Rates(large), Whole({100}));
  ASSERT_TRUE(live_->SetCapacity(0, 40).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({large, small}));  // 2.5 s against 2.
  EXPECT_EQ(Rates(large), Whole({100}));
}

TEST_F(LiveSchedulerTest, ProgressCanTurnTheOrder) {
  Make(2);
  const CoflowSlot served = Add({{0, 0, 300}});
  const CoflowSlot behind = Add({{0, 1, 250}, {1, 1, 100}});  // 350 bytes into port 1.
  live_->Update();
  ASSERT_EQ(Order(), Slots({served, behind}));
  ASSERT_TRUE(live_->SetRemaining(live_->fabric().Flows(behind)[1], 0).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({behind, served}));
  live_->Advance(2 * kSecond);
  live_->Update();
  EXPECT_EQ(live_->fabric().Remaining(live_->fabric().Flows(behind)[0]), 150);  // Half of port 1 each.
}

// Who is looked at first asks for the key of the one in front, whose flow has moved all it had since.
TEST_F(LiveSchedulerTest, WhoHasMovedAllOvertakesToo) {
  Make(3);
  const CoflowSlot last = Add({{2, 2, 5000}});
  live_->Update();
  const CoflowSlot blocker = Add({{1, 1, 1000}});
  const CoflowSlot waits = Add({{1, 1, 1050}});
  const CoflowSlot done = Add({{0, 0, 1100}});
  live_->Update();
  EXPECT_EQ(Order(), Slots({blocker, waits, done, last}));
  live_->Advance(20 * kSecond);
  live_->Update();
  EXPECT_EQ(Order(), Slots({blocker, done, waits, last}));
}

TEST_F(LiveSchedulerTest, AdvanceStopsAtZero) {
  Make(1);
  const CoflowSlot slot = Add({{0, 0, 50}});
  live_->Update();
  live_->Advance(std::numeric_limits<Nanoseconds>::max());
  EXPECT_EQ(live_->fabric().Remaining(live_->fabric().Flows(slot)[0]), 0);
  live_->Advance(kSecond);  // No time is left.
  live_->Recompute();
  EXPECT_EQ(live_->fabric().bytes_left[slot], 0);
}

// 100 bytes/s for 30 ms are three bytes, in however many steps and with however many decisions in between.
TEST_F(LiveSchedulerTest, PartsOfAByteAreNotLost) {
  Make(1);
  const CoflowSlot slot = Add({{0, 0, 50}});
  live_->Update();
  for (int i = 0; i < 30; ++i) {
    live_->Advance(kMillisecond);
    live_->Recompute();
  }
  EXPECT_EQ(live_->fabric().Remaining(live_->fabric().Flows(slot)[0]), 47);
  EXPECT_EQ(live_->fabric().bytes_left[slot], 47);
}

TEST_F(LiveSchedulerTest, LongTimesAtLowAndHighRatesAreExact) {
  const std::vector<WholeRate> capacity = {kMaxLiveCapacity, 3};
  const auto live = LiveScheduler::Make(capacity, {.limits = {.coflows = 8, .flows = 32}}).value();
  const std::vector<LinkIndex> fast = {0};
  const std::vector<LinkIndex> slow = {1};
  const std::vector<LiveFlow> flows = {{kMaxCoflowBytes - 1'000'000'000'000, fast}, {1'000'000'000'000, slow}};
  const CoflowSlot slot = live->AddCoflow({CoflowId(1), 0, 0, flows}).value();
  live->Update();
  live->Advance(30'000 * kSecond + 1);
  EXPECT_EQ(live->fabric().Remaining(live->fabric().Flows(slot)[0]),
            kMaxCoflowBytes - 1'000'000'000'000 - 30'000 * kMaxLiveCapacity - 125'000);
  EXPECT_EQ(live->fabric().Remaining(live->fabric().Flows(slot)[1]), 1'000'000'000'000 - 90'000);
  EXPECT_TRUE(
      live->SetRemaining(live->fabric().Flows(slot)[1], 30'000 * kMaxLiveCapacity).ok());  // What has moved is room.
  live->Advance(100'000 * kSecond);
  EXPECT_EQ(live->fabric().Remaining(live->fabric().Flows(slot)[0]), 0);
}

// One moves and gets in front of two that wait, the nearer of which has lost one in front of it to the same.
TEST_F(LiveSchedulerTest, WhoMovesOvertakesWhoWaits) {
  Make(4);
  const CoflowSlot blocker = Add({{1, 1, 1000}});
  const CoflowSlot waits = Add({{1, 1, 1100}});
  const CoflowSlot moves = Add({{0, 0, 1250}});
  const CoflowSlot also = Add({{2, 2, 1260}});
  live_->Update();
  EXPECT_EQ(Order(), Slots({blocker, waits, moves, also}));
  live_->Advance(2 * kSecond);
  live_->Update();
  EXPECT_EQ(Order(), Slots({blocker, moves, also, waits}));
  ASSERT_TRUE(live_->SetRemaining(live_->fabric().Flows(blocker)[0], 1300).ok());
  live_->Advance(kSecond);
  live_->Update();
  EXPECT_EQ(Order(), Slots({moves, also, waits, blocker}));
  EXPECT_EQ(Rates(waits), Whole({100}));
  EXPECT_EQ(Rates(blocker), Whole({0}));
}

TEST_F(LiveSchedulerTest, GivenKeysOrderAndTiesGoByArrival) {
  Make(1, {.key = LiveKey::kGiven, .limits = {.coflows = 8, .flows = 32}});
  const CoflowSlot a = Add({{0, 0, 1}}, 5);
  const CoflowSlot b = Add({{0, 0, 1}}, 5);
  const CoflowSlot c = Add({{0, 0, 1}}, 2);
  live_->Update();
  EXPECT_EQ(Order(), Slots({c, a, b}));
  ASSERT_TRUE(live_->SetKey(b, -1).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({b, c, a}));
}

TEST_F(LiveSchedulerTest, ManyNewcomersAtOnceAreSortedAnew) {
  Make(1, {.limits = {.coflows = 2048, .flows = 2048}});
  for (std::int64_t i = 0; i < 1000; ++i) {
    Add({{0, 0, 1 + (i * 37) % 1000}});
  }
  live_->Update();
  for (std::size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(live_->fabric().bytes_left[live_->order()[i]], static_cast<std::int64_t>(i) + 1);
  }
}

// Halving link 0 doubles the keys of every second coflow: too many moves to make one by one.
TEST_F(LiveSchedulerTest, AChangeThatMovesManySortsAnew) {
  Make(2, {.limits = {.coflows = 2048, .flows = 2048}});
  for (std::int64_t i = 0; i < 500; ++i) {
    Add({{0, 0, 1000 + 2 * i}});
    Add({{1, 1, 1001 + 2 * i}});
  }
  live_->Update();
  ASSERT_TRUE(live_->SetCapacity(0, 50).ok());
  live_->Update();
  for (std::size_t i = 1; i < 1000; ++i) {
    ASSERT_LE(live_->fabric().BusiestLink(live_->order()[i - 1]).seconds,
              live_->fabric().BusiestLink(live_->order()[i]).seconds);
  }
  EXPECT_EQ(Rates(live_->order()[0]), Whole({100}));
  const std::vector<WholeRate> rates = live_->fabric().rate;
  live_->Recompute();
  EXPECT_EQ(live_->fabric().rate, rates);
}

// The first is taken away, and the last moves past where it was: both in one Update.
TEST_F(LiveSchedulerTest, WhoPassesAVacantPlaceIsVisited) {
  Make(2);
  const CoflowSlot first = Add({{0, 0, 100}});
  const CoflowSlot other = Add({{1, 1, 150}});
  const CoflowSlot last = Add({{0, 0, 200}});
  live_->Update();
  ASSERT_TRUE(live_->RemoveCoflow(first).ok());
  ASSERT_TRUE(live_->SetRemaining(live_->fabric().Flows(last)[0], 10).ok());
  live_->Update();
  EXPECT_EQ(Order(), Slots({last, other}));
  EXPECT_EQ(Rates(last), Whole({100}));
}

// Each takes the middle of the gap before the last one, until there is no gap left: in one batch, and one by one.
TEST_F(LiveSchedulerTest, OrderHoldsWhenLabelsRunOut) {
  for (const int batch : {1, 60}) {
    Make(1, {.limits = {.coflows = 2048, .flows = 2048}});
    Add({{0, 0, 1}});
    Add({{0, 0, 1'000'000}});
    live_->Update();
    for (std::int64_t i = 0; i < 600; ++i) {
      Add({{0, 0, 999'999 - i}});
      if (i % batch == 0) {
        live_->Update();
      }
    }
    live_->Update();
    EXPECT_EQ(live_->fabric().bytes_left[live_->order()[0]], 1);
    for (std::size_t i = 1; i <= 601; ++i) {
      ASSERT_EQ(live_->fabric().bytes_left[live_->order()[i]], static_cast<std::int64_t>(999'399 + i)) << batch;
    }
  }
}

TEST_F(LiveSchedulerTest, RefusesWhatItCannotTake) {
  Make(1, {.limits = {.coflows = 2, .flows = 3}});
  EXPECT_EQ(TryAdd({}).error().message(), "coflow 1 has no flows");
  EXPECT_EQ(TryAdd({{0, 0, -1}}).error().message(),
            "flow 0 has -1 bytes; allowed are 0 to 4611686018427387904, all of a coflow");
  EXPECT_EQ(TryAdd({{0, 0, kMaxCoflowBytes}, {0, 0, 1}}).error().message(),
            "coflow 3 has more than 4611686018427387904 bytes");
  EXPECT_EQ(TryAdd({{0, 9, 1}}).error().message(), "flow 0 crosses link 10; there are links 0 to 1");
  EXPECT_EQ(TryAdd({{0, 0, 1}}, std::numeric_limits<double>::quiet_NaN()).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(TryAdd({{0, 0, 1}, {0, 0, 1}, {0, 0, 1}, {0, 0, 1}}).error().message(),
            "coflow 6 with 4 flows does not fit: 0 of 2 coflows and 0 of 3 flows are in use");
  Add({{0, 0, 1}});
  Add({{0, 0, 1}});
  EXPECT_EQ(TryAdd({{0, 0, 1}}).error().code(), StatusCode::kResourceExhausted);
  const std::vector<LinkIndex> loop = {0, 0};
  const std::vector<LiveFlow> flows = {{1, loop}};
  Make(1);
  EXPECT_EQ(live_->AddCoflow({CoflowId(1), 0, 0, flows}).error().message(), "flow 0 crosses link 0 twice");
  const std::vector<LiveFlow> nowhere = {{1, {}}};
  EXPECT_EQ(live_->AddCoflow({CoflowId(1), 0, 0, nowhere}).error().message(),
            "flow 0 has no path; it needs at least one link");
  EXPECT_EQ(live_->fabric().coflow_count, 0u);
}

TEST_F(LiveSchedulerTest, RefusesEventsAboutNothing) {
  Make(1);
  const CoflowSlot slot = Add({{0, 0, 10}});
  const FlowIndex flow = live_->fabric().Flows(slot)[0];
  EXPECT_EQ(live_->RemoveCoflow(7).message(), "there is no coflow in slot 7");
  EXPECT_EQ(live_->RemoveCoflow(1000).code(), StatusCode::kNotFound);
  EXPECT_EQ(live_->EndFlow(31).message(), "there is no flow 31");
  EXPECT_EQ(live_->SetRemaining(31, 1).code(), StatusCode::kNotFound);
  EXPECT_EQ(live_->SetRemaining(flow, -5).message(), "flow 0 has -5 bytes left; allowed are 0 to 4611686018427387904");
  EXPECT_EQ(live_->SetKey(7, 0).code(), StatusCode::kNotFound);
  EXPECT_EQ(live_->SetKey(slot, std::numeric_limits<double>::infinity()).message(),
            "the key of slot 0 is inf; it must be finite");
  EXPECT_EQ(live_->SetCapacity(2, 1).message(), "there is no link 2");
  EXPECT_EQ(live_->SetCapacity(0, -1).message(),
            "link 0 has a capacity of -1 bytes/s; allowed are 0 to 125000000000000");
  live_->Update();
  EXPECT_EQ(Rates(slot), Whole({100}));
}

// Coflow i crosses links i and i + 1: every second one is served, and without the first it is the others.
TEST(LiveSchedulerChain, AChangeThatConcernsAllIsComputedAnew) {
  constexpr std::size_t kCoflows = 600;
  const std::vector<WholeRate> capacity(kCoflows + 1, 100);
  const auto live = LiveScheduler::Make(capacity, {.key = LiveKey::kFifo, .limits = {.coflows = 1024, .flows = 1024}});
  std::vector<FlowIndex> flows;
  for (LinkIndex i = 0; i < kCoflows; ++i) {
    const std::vector<LinkIndex> path = {i, i + 1};
    const std::vector<LiveFlow> flow = {{1, path}};
    const CoflowSlot slot = (*live)->AddCoflow({CoflowId(i + 1), i, 0, flow}).value();
    flows.push_back((*live)->fabric().Flows(slot)[0]);
  }
  (*live)->Update();
  ASSERT_TRUE((*live)->RemoveCoflow((*live)->order()[0]).ok());
  (*live)->Update();
  for (std::size_t i = 1; i < kCoflows; ++i) {
    ASSERT_EQ((*live)->fabric().rate[flows[i]], i % 2 == 1 ? 100 : 0) << i;
  }
  std::vector<FlowIndex> changed((*live)->changed().begin(), (*live)->changed().end());
  std::ranges::sort(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  EXPECT_EQ(changed.size(), kCoflows - 1);
  ASSERT_TRUE((*live)->SetCapacity(1, 0).ok());  // And repairing goes on.
  (*live)->Update();
  EXPECT_EQ((*live)->fabric().rate[flows[1]], 0);
  EXPECT_EQ((*live)->fabric().rate[flows[2]], 100);
}

TEST(LiveSchedulerMake, RefusesLinksAndLimitsOutOfRange) {
  const std::vector<WholeRate> none;
  EXPECT_EQ(LiveScheduler::Make(none, {}).error().code(), StatusCode::kInvalidArgument);
  const std::vector<WholeRate> negative = {5, -1};
  EXPECT_EQ(LiveScheduler::Make(negative, {}).error().message(),
            "link 1 has a capacity of -1 bytes/s; allowed are 0 to 125000000000000");
  const std::vector<WholeRate> one = {5};
  EXPECT_EQ(LiveScheduler::Make(one, {.limits = {.coflows = 0}}).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(LiveScheduler::Make(one, {.limits = {.flows = 1u << 31}}).error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace weir::scheduler
