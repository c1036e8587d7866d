#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "scheduler/compress/levels.h"
#include "scheduler/order/load_matrix.h"
#include "scheduler/order/order_search.h"
#include "scheduler/policy/capacity_changes.h"
#include "scheduler/policy/policy.h"

namespace weir::scheduler {
namespace {

struct Instance {
  std::size_t rows = 0, links = 0;
  std::vector<double> times;
  std::vector<double> weights;
};

Instance RandomInstance(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Instance instance{.rows = 2 + random() % 5, .links = 2 + random() % 4, .times = {}, .weights = {}};
  for (std::size_t i = 0; i < instance.rows * instance.links; ++i) {
    instance.times.push_back(random() % 3 == 0 ? 0.0 : static_cast<double>(1 + random() % 20));
  }
  for (std::size_t row = 0; row < instance.rows; ++row) {
    instance.times[row * instance.links] += 1;  // no coflow without load
    instance.weights.push_back(static_cast<double>(1 + random() % 4));
  }
  return instance;
}

double BestOfAllOrders(const LoadMatrix& loads, const std::vector<double>& weights) {
  std::vector<std::uint32_t> order(loads.rows());
  std::iota(order.begin(), order.end(), 0U);
  double best = std::numeric_limits<double>::infinity();
  do {
    best = std::min(best, IndependentLinksCost(loads, weights, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PrimalDual, DualIsBelowTheOptimumAndTheOrderWithinTwiceOfIt) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Instance instance = RandomInstance(seed);
    LoadMatrix loads;
    loads.Load(instance.times, instance.rows, instance.links);
    PrimalDual primal_dual;
    std::vector<std::uint32_t> order;
    const double dual = primal_dual.Sort(loads, instance.weights, &order);
    const double best = BestOfAllOrders(loads, instance.weights);
    EXPECT_LE(dual, best * (1 + 1e-9)) << "seed " << seed;
    EXPECT_LE(IndependentLinksCost(loads, instance.weights, order), 2 * best * (1 + 1e-9)) << "seed " << seed;
  }
}

TEST(OrderSearch, CostFallsByWhatItSaysAndNeverBelowTheOptimum) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    const Instance instance = RandomInstance(seed);
    LoadMatrix loads;
    loads.Load(instance.times, instance.rows, instance.links);
    std::vector<std::uint32_t> order(instance.rows);
    std::iota(order.begin(), order.end(), 0U);
    const double before = IndependentLinksCost(loads, instance.weights, order);
    OrderSearch search;
    const double gained = search.Improve(loads, instance.weights, 20, 64, &order);
    const double after = IndependentLinksCost(loads, instance.weights, order);
    EXPECT_NEAR(before - gained, after, 1e-6 * before) << "seed " << seed;
    EXPECT_GE(after, BestOfAllOrders(loads, instance.weights) * (1 - 1e-9)) << "seed " << seed;
  }
}

/// A table of four links with coflows 0, 1, ... that have flows left on the links given, and arrive last one first.
ActiveTable CoflowsOnLinks(const std::vector<std::vector<std::uint32_t>>& links) {
  ActiveTable table(4);
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::uint32_t slot = table.AddSlot();
    table.id[slot] = slot;
    table.arrival[slot] = 10 * static_cast<std::int64_t>(links.size() - i);
    for (const std::uint32_t link : links[i]) {
      table.FlowsLeft(slot)[link] = 1;
    }
  }
  return table;
}

using Ranks = std::vector<std::uint32_t>;

Ranks LevelsOf(const LevelMap& map) {
  return {map.levels().begin(), map.levels().end()};
}

TEST(Levels, HeadOwnsItsLevelsAndTheTailIsFirstComeFirstServed) {
  const ActiveTable table = CoflowsOnLinks({{0}, {0}, {0}, {0}, {0}});
  Ranks order = {0, 1, 2, 3, 4};
  LevelMap map;
  map.Assign(table, 3, &order);
  EXPECT_EQ(order, (Ranks{0, 1, 4, 3, 2}));
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 1, 2, 2, 2}));
  map.Assign(table, 1, &order);
  EXPECT_EQ(order, (Ranks{4, 3, 2, 1, 0}));
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 0, 0, 0, 0}));
}

TEST(Levels, CoflowsThatShareNoLinkShareALevel) {
  // An example for the compression of Crux (SIGCOMM 2024): A-B, A-C, B-D and C-D are in each other's way.
  const ActiveTable table = CoflowsOnLinks({{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  LevelMap map;
  Ranks order = {0, 1, 2, 3};
  map.Assign(table, 3, &order);
  EXPECT_EQ(order, (Ranks{0, 1, 2, 3}));
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 1, 1, 2}));
  map.Assign(table, 2, &order);
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 1, 1, 1}));
  // More levels than anybody needs.
  order = {0, 1, 2, 3};
  map.Assign(table, 1'000'000, &order);
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 1, 1, 2}));
}

TEST(Levels, NobodyPassesWhoIsInTheLastLevel) {
  // 2 waits for 1 in the last level, so 3, which waits for 2 alone, must too.
  const ActiveTable table = CoflowsOnLinks({{0}, {0, 1}, {1, 2}, {2}});
  LevelMap map;
  Ranks order = {0, 1, 2, 3};
  map.Assign(table, 2, &order);
  EXPECT_EQ(order, (Ranks{0, 3, 2, 1}));
  EXPECT_EQ(LevelsOf(map), (Ranks{0, 1, 1, 1}));
}

TEST(Levels, AreLegalAndKeepTheOrderAmongThoseThatMeet) {
  std::mt19937_64 random(7);
  LevelMap map;
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::vector<std::uint32_t>> links(1 + random() % 12);
    for (auto& of : links) {
      for (std::uint32_t link = 0; link < 4; ++link) {
        if (random() % 3 == 0) {
          of.push_back(link);
        }
      }
    }
    const ActiveTable table = CoflowsOnLinks(links);
    Ranks given(links.size());
    std::iota(given.begin(), given.end(), 0U);
    const int levels = 1 + static_cast<int>(random() % 5);
    Ranks order = given;
    map.Assign(table, levels, &order);
    ASSERT_TRUE(std::ranges::is_permutation(order, given)) << "round " << round;
    ASSERT_TRUE(std::ranges::is_sorted(map.levels())) << "round " << round;
    ASSERT_LT(map.levels().back(), static_cast<std::uint32_t>(levels)) << "round " << round;
    for (std::size_t a = 0; a < order.size(); ++a) {
      for (std::size_t b = a + 1; b < order.size(); ++b) {
        const bool meet = std::ranges::any_of(
            links[order[a]], [&](std::uint32_t link) { return std::ranges::count(links[order[b]], link) > 0; });
        const bool share_last = map.levels()[a] == static_cast<std::uint32_t>(levels - 1);
        if (meet && !share_last) {
          EXPECT_LT(order[a], order[b]) << "round " << round;
          EXPECT_LT(map.levels()[a], map.levels()[b]) << "round " << round;
        }
      }
    }
  }
}

/// Adds a coflow of one sender whose flows to two receivers, `first` and `second`, have ended; `left` to the second one
/// have not.
std::uint32_t AddSampled(const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& second,
                         std::int64_t left, ActiveTable* table) {
  const std::uint32_t slot = table->AddSlot();
  table->id[slot] = slot;
  const std::size_t half = table->links() / 2;
  for (const std::size_t receiver : {0UL, 1UL}) {
    for (const std::int64_t bytes : receiver == 0 ? first : second) {
      for (const std::size_t link : {receiver, half + receiver}) {  // a sender of its own for each receiver
        table->EndedBytes(slot)[link] += bytes;
        table->Attained(slot)[link] += bytes;
        ++table->EndedFlows(slot)[link];
      }
      table->ended_squares[slot] += static_cast<double>(bytes) * static_cast<double>(bytes);
    }
  }
  table->FlowsLeft(slot)[half + 1] = left;
  return slot;
}

TEST(Pilots, ReceiversAreToldApartOnlyWhereTheirFlowsAreAlike) {
  ActiveTable table(4);
  const std::uint32_t reference = AddSampled({900, 900}, {900, 900}, 10, &table);
  // Receivers that plainly differ: ten flows left to the one of the long flows, 10,000 bytes in all.
  const std::uint32_t apart = AddSampled({10, 10}, {1000, 1000}, 10, &table);
  // The second receiver's mean is 1000 as well, but flows differ as much within receivers: the common mean of 835
  // holds.
  const std::uint32_t alike = AddSampled({10, 1000}, {1000, 1000, 10, 1990}, 10, &table);
  std::vector<std::uint32_t> order;
  (*MakeOrder(ParsePolicy("pilots")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{alike, reference, apart}));
  (*MakeOrder(ParsePolicy("pilots shrink=0")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{reference, apart, alike}));
}

/// Books a pilot that has ended, of a coflow with one sender for each receiver.
void EndPilot(std::uint32_t slot, std::size_t receiver, std::int64_t bytes, ActiveTable* table) {
  const std::size_t down = table->ports() + receiver;
  for (auto row : {table->EndedBytes(slot), table->PilotBytes(slot), table->Attained(slot)}) {
    row[down] += bytes;
  }
  for (auto row : {table->EndedFlows(slot), table->PilotFlows(slot), table->FlowsAtArrival(slot)}) {
    ++row[down];
  }
  table->ended_squares[slot] += static_cast<double>(bytes) * static_cast<double>(bytes);
  table->pilot_squares[slot] += static_cast<double>(bytes) * static_cast<double>(bytes);
}

/// Pilots of these sizes ended; two flows are left at the same receiver and have sent `begun` together.
std::uint32_t AddBegun(const std::vector<std::int64_t>& pilots, std::int64_t begun, ActiveTable* table) {
  const std::uint32_t slot = table->AddSlot();
  table->id[slot] = slot;
  for (const std::int64_t bytes : pilots) {
    EndPilot(slot, 0, bytes, table);
  }
  table->FlowsLeft(slot)[1] = 2;
  table->Attained(slot)[1] += begun;
  return slot;
}

TEST(Pilots, WhoHasSentMuchIsNearlyDoneOnlyWhereFlowsAreAlike) {
  ActiveTable table(2);
  // All alike: what is left of two flows of 1000 that have sent 1500.
  const std::uint32_t alike = AddBegun({1000, 1000}, 1500, &table);
  const std::uint32_t fresh = AddBegun({300, 300}, 0, &table);  // 600
  // As if exponential, variance 2 x mean squared: 2200 + 1500 bytes over 5 ended flows, twice: 1480 are left.
  const std::uint32_t spread = AddBegun({25, 25, 50, 100, 2000}, 1500, &table);
  const std::uint32_t between = AddBegun({700, 700}, 0, &table);  // 1400
  const std::uint32_t behind = AddBegun({750, 750}, 0, &table);   // 1500
  std::vector<std::uint32_t> order;
  (*MakeOrder(ParsePolicy("pilots")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{alike, fresh, between, spread, behind}));
}

TEST(Pilots, WhereFlowsShareShortOnesThatEndDoNotMakeTheRestShort) {
  ActiveTable table(2);
  // Two pilots of 1000 bytes ended, then eight flows of 10; ten more flows have sent 10 and go on.
  const std::uint32_t slow = table.AddSlot();
  table.id[slow] = slow;
  EndPilot(slow, 0, 1000, &table);
  EndPilot(slow, 0, 1000, &table);
  for (int i = 0; i < 8; ++i) {
    table.EndedBytes(slow)[1] += 10;
    ++table.EndedFlows(slow)[1];
    table.ended_squares[slow] += 100;
  }
  table.FlowsLeft(slow)[1] = 10;
  table.FlowsAtArrival(slow)[1] += 18;
  table.Attained(slow)[1] += 180;
  // One pilot of 5000 bytes ended, one flow is left: 5000 bytes. The other has 17,820 by its pilots, and by all that
  // ended, whose mean is 208, 1980.
  const std::uint32_t short_one = table.AddSlot();
  table.id[short_one] = short_one;
  EndPilot(short_one, 0, 5000, &table);
  table.FlowsLeft(short_one)[1] = 1;
  ++table.FlowsAtArrival(short_one)[1];
  std::vector<std::uint32_t> order;
  (*MakeOrder(ParsePolicy("pilots rate=maxmin")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{short_one, slow}));
  (*MakeOrder(ParsePolicy("pilots rate=maxmin sample=ended")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{slow, short_one}));
}

TEST(Pilots, OneThatRunsLongWeighsBeforeItEnds) {
  ActiveTable table(2);
  // Nine pilots of 10 bytes ended, the tenth has sent 10,000: the mean is taken to be 1009.
  const std::uint32_t spread = table.AddSlot();
  table.id[spread] = spread;
  for (int i = 0; i < 9; ++i) {
    EndPilot(spread, 0, 10, &table);
  }
  table.pilots_left[spread] = 1;
  table.largest_seen[spread] = 10'000;
  table.FlowsLeft(spread)[1] = 1;
  ++table.FlowsAtArrival(spread)[1];
  table.Attained(spread)[1] += 10'000;
  const std::uint32_t even = table.AddSlot();
  table.id[even] = even;
  EndPilot(even, 0, 1000, &table);
  table.FlowsLeft(even)[1] = 1;
  ++table.FlowsAtArrival(even)[1];
  std::vector<std::uint32_t> order;
  (*MakeOrder(ParsePolicy("pilots rate=maxmin shrink=1e9")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{spread, even}));  // ten of 1009 less 10,090, and 1000
  table.largest_seen[spread] = 20'000;
  (*MakeOrder(ParsePolicy("pilots rate=maxmin shrink=1e9")->order))->Sort(table, 0, &order);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{even, spread}));
}

TEST(Pilots, ThatAreLearntFromAloneAreMore) {
  EXPECT_EQ((*MakeOrder(ParsePolicy("pilots")->order))->PilotCount(10'000), 100);
  EXPECT_EQ((*MakeOrder(ParsePolicy("pilots rate=maxmin")->order))->PilotCount(10'000), 300);
  EXPECT_EQ((*MakeOrder(ParsePolicy("pilots sample=pilots")->order))->PilotCount(10'000), 300);
  EXPECT_EQ((*MakeOrder(ParsePolicy("philae rate=maxmin")->order))->PilotCount(10'000), 100);
  EXPECT_EQ((*MakeOrder(ParsePolicy("pilots rate=maxmin pilot_share=0.5")->order))->PilotCount(10'000), 5000);
}

TEST(Pilots, GoBeforeAllOnlyUntilOneIsKnownToBeLong) {
  ActiveTable table(4);
  const std::uint32_t slot = table.AddSlot();
  const auto pilots = MakeOrder(ParsePolicy("pilots first_limit=1000")->order);
  table.largest_seen[slot] = 999;
  EXPECT_TRUE((*pilots)->PilotsFirst(table, slot));
  table.largest_seen[slot] = 1000;
  EXPECT_FALSE((*pilots)->PilotsFirst(table, slot));
  EXPECT_TRUE((*MakeOrder(ParsePolicy("philae first_limit=1000")->order))->PilotsFirst(table, slot));
}

/// A coflow of job `kin` from port 0 to port 1 of two, of one flow that has sent `sent`.
std::uint32_t AddOfJob(std::uint64_t id, std::uint64_t kin, std::int64_t sent, ActiveTable* table) {
  const std::uint32_t slot = table->AddSlot();
  table->id[slot] = id;
  table->kin[slot] = kin;
  table->width[slot] = 1;
  table->arrival[slot] = static_cast<std::int64_t>(id);
  for (const std::size_t link : {0UL, 3UL}) {
    table->FlowsLeft(slot)[link] = 1;
    table->FlowsAtArrival(slot)[link] = 1;
    table->Attained(slot)[link] = sent;
  }
  table->bytes_sent[slot] = sent;
  table->largest_seen[slot] = sent;
  return slot;
}

/// It ends with `bytes`.
void EndOfJob(std::uint32_t slot, std::int64_t bytes, Order* order, ActiveTable* table) {
  for (const std::size_t link : {0UL, 3UL}) {
    table->FlowsLeft(slot)[link] = 0;
    table->Attained(slot)[link] = bytes;
    table->EndedBytes(slot)[link] = bytes;
    table->EndedFlows(slot)[link] = 1;
  }
  table->bytes_sent[slot] = bytes;
  order->Ended(*table, slot);
  table->FreeSlot(slot);
}

TEST(Pilots, WhatAJobSentBeforeForeseesItsNextCoflow) {
  ActiveTable table(4);
  const auto order = MakeOrder(ParsePolicy("pilots")->order);
  const auto plain = MakeOrder(ParsePolicy("pilots history=off")->order);
  EndOfJob(AddOfJob(1, 7, 0, &table), 50'000'000, order->get(), &table);
  EndOfJob(AddOfJob(2, 8, 0, &table), 20'000'000, order->get(), &table);
  const std::uint32_t large = AddOfJob(3, 7, 0, &table);
  const std::uint32_t small = AddOfJob(4, 8, 0, &table);
  EXPECT_FALSE((*order)->PilotsFirst(table, large));
  EXPECT_TRUE((*plain)->PilotsFirst(table, large));
  std::vector<std::uint32_t> sorted;
  (*order)->Sort(table, 4, &sorted);
  EXPECT_EQ(sorted, (std::vector<std::uint32_t>{small, large}));
  (*plain)->Sort(table, 4, &sorted);
  EXPECT_EQ(sorted, (std::vector<std::uint32_t>{large, small}));  // by arrival: nothing is known
  // One that has sent a tenth more than it was to send is not foreseen any more.
  table.bytes_sent[large] = 55'000'001;
  EXPECT_TRUE((*order)->PilotsFirst(table, AddOfJob(5, 9, 0, &table)));
  table.largest_seen[large] = 0;
  EXPECT_TRUE((*order)->PilotsFirst(table, large));
}

TEST(Pilots, AJobThatChangesItsMindIsNotForeseen) {
  ActiveTable table(4);
  const auto order = MakeOrder(ParsePolicy("pilots")->order);
  EndOfJob(AddOfJob(1, 7, 0, &table), 50'000'000, order->get(), &table);
  EndOfJob(AddOfJob(2, 7, 0, &table), 30'000'000, order->get(), &table);
  const std::uint32_t slot = AddOfJob(3, 7, 0, &table);
  EXPECT_TRUE((*order)->PilotsFirst(table, slot));
  EndOfJob(slot, 31'000'000, order->get(), &table);
  EXPECT_FALSE((*order)->PilotsFirst(table, AddOfJob(4, 7, 0, &table)));  // twice alike: it is steady again
}

TEST(Pilots, BeforeAnyFlowEndsWhoHasSentMuchStepsBack) {
  ActiveTable table(4);
  const auto order = MakeOrder(ParsePolicy("pilots")->order);
  const std::uint32_t far = AddOfJob(1, 0, 10'485'760, &table);  // thought to be four times as long
  const std::uint32_t fresh = AddOfJob(2, 0, 0, &table);
  std::vector<std::uint32_t> sorted;
  (*order)->Sort(table, 2, &sorted);
  EXPECT_EQ(sorted, (std::vector<std::uint32_t>{fresh, far}));
}

TEST(Policy, KeysAreReadAndWrongOnesAreNamed) {
  const auto policy = ParsePolicy("order=dclas factor=2 queues=20");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_EQ(policy->order.name, "dclas");
  EXPECT_EQ(policy->order.factor, 2.0);
  EXPECT_EQ(policy->order.queues, 20);
  EXPECT_EQ(ParsePolicy("ls")->order.name, "ls");
  EXPECT_NE(ParsePolicy("sebf speed=3").error().message().find("\"speed\" is not known; allowed: order"),
            std::string::npos);
  EXPECT_NE(ParsePolicy("factor=0 dclas").error().message().find("found \"0\""), std::string::npos);
  EXPECT_NE(ParsePolicy("fastest").error().message().find("allowed: fifo"), std::string::npos);
  EXPECT_FALSE(ParsePolicy("  "));
  EXPECT_EQ(ParsePolicy("ls")->rate.name, kMatching);
  const auto madd = ParsePolicy("order=sebf rate=madd backfill=off");
  ASSERT_TRUE(madd) << madd.error().message();
  EXPECT_EQ(madd->rate.name, "madd");
  EXPECT_FALSE(madd->rate.backfill);
  EXPECT_NE(ParsePolicy("rate=slow").error().message().find("allowed: matching, maxmin"), std::string::npos);
  EXPECT_NE(ParsePolicy("edf admission=on rate=maxmin").error().message().find("only with rate=matching"),
            std::string::npos);
  EXPECT_NE(
      ParsePolicy("sample=all").error().message().find("policy key sample: found \"all\", allowed: pilots, ended"),
      std::string::npos);
  EXPECT_NE(ParsePolicy("backfill=maybe").error().message().find("allowed: on, off"), std::string::npos);
}

TEST(CapacityChanges, AreReadSortedAndWrongOnesAreNamed) {
  const auto changes = ParseCapacityChanges("9 down2 0.5,5 up0 0", 3, {1000, false});
  ASSERT_TRUE(changes) << changes.error().message();
  ASSERT_EQ(changes->size(), 2u);
  EXPECT_EQ((*changes)[0].time, 5000);
  EXPECT_EQ((*changes)[0].link, 0u);
  EXPECT_EQ((*changes)[0].share, 0);
  EXPECT_EQ((*changes)[1].link, 5u);
  EXPECT_EQ((*changes)[1].share, 0.5);
  EXPECT_TRUE(ParseCapacityChanges("", 3, {})->empty());
  for (const char* wrong :
       {"5 up3 0", "5 up0", "5 up0 1.5", "-5 up0 1", "nan up0 1", "5 left0 1", "5 up0 1 1", "x", "5 up 1"}) {
    const auto refused = ParseCapacityChanges(wrong, 3, {});
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().message().find("a port from 0 to 2"), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace weir::scheduler
