// Properties that rates must have on any fabric, on thousands of small random ones. A failure prints its seed:
// RandomCase(seed) is the case.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "scheduler/share/correlated.h"
#include "scheduler/share/max_min.h"
#include "tests/scheduler/rate/random_rates.h"

namespace weir::scheduler {
namespace {

constexpr std::uint64_t kSeeds = 2000;
constexpr double kTolerance = 1e-7;  // of a capacity of about 1: what counts as full is 1e-9 of a link

struct Kind {
  const char* name;
  bool backfill;
};
constexpr Kind kAllKinds[] = {{"maxmin", true}, {"greedy", true}, {"madd", true},
                              {"madd", false},  {"drf", true},    {"hug", true}};

TEST(Rates, NeverExceedACapacityAndTheSumsAreThoseOfTheFlows) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const Kind& kind : kAllKinds) {
      RandomCase c(seed);
      NewRate(kind.name, kind.backfill)->Allocate(c.order, c.capacity);
      const auto used = c.Used();
      for (std::size_t link = 0; link < used.size(); ++link) {
        ASSERT_LE(used[link], c.capacity[link] + kTolerance) << kind.name << " seed " << seed << " link " << link;
      }
      std::vector<double> summed(used.size(), 0);
      for (const auto& group : c.groups) {
        for (std::size_t i = 0; i < group->links().size(); ++i) {
          summed[group->links()[i]] += group->Use(i);
        }
      }
      for (std::size_t link = 0; link < used.size(); ++link) {
        ASSERT_NEAR(used[link], summed[link], kTolerance) << kind.name << " seed " << seed << " link " << link;
      }
    }
  }
}

TEST(Rates, LeaveNoFlowThatCouldBeFaster) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const char* name : {"maxmin", "greedy", "madd"}) {
      RandomCase c(seed);
      if (seed % 2 == 0 && std::string(name) == "maxmin") {
        c.ShareLevels(2);
      }
      NewRate(name)->Allocate(c.order, c.capacity);
      const auto used = c.Used();
      for (const auto& group : c.groups) {
        for (std::size_t f = 0; f < group->flows(); ++f) {
          const auto path = group->PathOf(f);
          ASSERT_TRUE(std::any_of(path.begin(), path.end(),
                                  [&](std::uint32_t local) {
                                    const std::uint32_t link = group->links()[local];
                                    return used[link] >= c.capacity[link] - kTolerance;
                                  }))
              << name << " seed " << seed << " flow " << f;
        }
      }
    }
  }
}

/// Levels of several groups, weights, order: every flow crosses a link that is full with what its own and earlier
/// levels take, and no flow of its level there has a larger rate for its weight.
TEST(MaxMinRate, IsExactInsideEveryLevel) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomCase c(seed);
    c.ShareLevels(1 + static_cast<std::uint32_t>(seed % 3));
    NewRate("maxmin")->Allocate(c.order, c.capacity);
    for (std::size_t begin = 0; begin < c.order.size();) {
      std::size_t end = begin;
      while (end < c.order.size() && c.order[end].level == c.order[begin].level) {
        ++end;
      }
      const auto used = c.Used(end);
      std::vector<double> fastest(used.size(), 0);  // rate for weight, of this level
      const auto visit = [&](auto&& with) {
        for (std::size_t i = begin; i < end; ++i) {
          for (std::size_t f = 0; f < c.order[i].group->flows(); ++f) {
            with(*c.order[i].group, f, c.order[i].group->Rate(f) / c.order[i].weight);
          }
        }
      };
      visit([&](const FlowGroup& group, std::size_t f, double rate) {
        for (const std::uint32_t local : group.PathOf(f)) {
          fastest[group.links()[local]] = std::max(fastest[group.links()[local]], rate);
        }
      });
      visit([&](const FlowGroup& group, std::size_t f, double rate) {
        const auto path = group.PathOf(f);
        ASSERT_TRUE(std::any_of(path.begin(), path.end(),
                                [&](std::uint32_t local) {
                                  const std::uint32_t link = group.links()[local];
                                  return used[link] >= c.capacity[link] - kTolerance &&
                                         fastest[link] <= rate + kTolerance;
                                }))
            << "seed " << seed << " flow " << f;
      });
      begin = end;
    }
  }
}

TEST(MaxMinRate, EqualsTheOtherImplementationOfMaxMin) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomCase c(seed);
    c.ShareLevels(1);
    NewRate("maxmin")->Allocate(c.order, c.capacity);
    std::vector<std::vector<LinkIndex>> paths;
    std::vector<ShareFlow> flows;
    std::vector<double> rates;
    for (const RankedGroup& ranked : c.order) {
      for (std::size_t f = 0; f < ranked.group->flows(); ++f) {
        paths.emplace_back();
        for (const std::uint32_t local : ranked.group->PathOf(f)) {
          paths.back().push_back(ranked.group->links()[local]);
        }
        flows.push_back({{}, ranked.weight, std::numeric_limits<double>::infinity()});
        rates.push_back(ranked.group->Rate(f));
      }
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows[i].links = paths[i];
    }
    std::vector<double> room = c.capacity;
    std::vector<double> expected;
    MaxMin().Fill(flows, room, expected);
    for (std::size_t i = 0; i < flows.size(); ++i) {
      ASSERT_NEAR(rates[i], expected[i], kTolerance) << "seed " << seed << " flow " << i;
    }
  }
}

TEST(Rates, ALaterCoflowNeverChangesAnEarlierOne) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    // MADD with backfill is left out: there, later coflows' minimum comes before earlier ones' extra.
    for (const Kind& kind : {Kind{"maxmin", true}, Kind{"greedy", true}, Kind{"madd", false}}) {
      RandomCase all(seed);
      RandomCase fewer(seed);
      fewer.order.pop_back();
      NewRate(kind.name, kind.backfill)->Allocate(all.order, all.capacity);
      NewRate(kind.name, kind.backfill)->Allocate(fewer.order, fewer.capacity);
      for (std::size_t i = 0; i < fewer.order.size(); ++i) {
        for (std::size_t f = 0; f < fewer.groups[i]->flows(); ++f) {
          ASSERT_EQ(all.groups[i]->Rate(f), fewer.groups[i]->Rate(f)) << kind.name << " seed " << seed;
        }
      }
    }
  }
}

TEST(MaddRate, FinishesTheFlowsOfACoflowTogetherAndNoLaterThanItsSlowestLinkAllows) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomCase c(seed);
    NewRate("madd", false)->Allocate(c.order, c.capacity);
    std::vector<double> room = c.capacity;
    for (const RankedGroup& ranked : c.order) {
      const FlowGroup& group = *ranked.group;
      double expected = 0;
      for (std::size_t i = 0; i < group.links().size(); ++i) {
        expected = std::max(expected, room[group.links()[i]] < kTolerance ? std::numeric_limits<double>::infinity()
                                                                          : group.Load(i) / room[group.links()[i]]);
      }
      for (std::size_t f = 0; f < group.flows(); ++f) {
        ASSERT_NEAR(group.Rate(f), group.Left(f) / expected, kTolerance) << "seed " << seed << " flow " << f;
      }
      for (std::size_t i = 0; i < group.links().size(); ++i) {
        room[group.links()[i]] -= group.Use(i);
      }
    }
  }
}

/// Time, ends of flows and changes of capacity between allocations: what comes out must be what a newcomer with the
/// same bytes left would get, though most groups keep what they had.
TEST(Rates, AfterManyEventsEqualThoseOfAFreshStart) {
  for (std::uint64_t seed = 1; seed <= kSeeds / 3; ++seed) {
    for (const Kind& kind : kAllKinds) {
      RandomCase c(seed);
      const auto rate = NewRate(kind.name, kind.backfill);
      std::int64_t now = 0;
      for (int step = 0; step < 8; ++step) {
        rate->Allocate(c.order, c.capacity);
        now += static_cast<std::int64_t>(1 + c.random() % 30'000);
        std::vector<EndedFlow> ended;
        for (const auto& group : c.groups) {
          for (std::int64_t end = group->NextEnd(); end <= now; end = group->NextEnd()) {
            group->Settle(end);
            group->TakeEnded(0, &ended);
          }
          group->Settle(now);
        }
        if (c.random() % 3 == 0) {
          const std::size_t link = c.random() % c.capacity.size();
          c.capacity[link] = c.fabric.capacity()[link] * 0.25 * static_cast<double>(c.random() % 5);
        }
      }
      rate->Allocate(c.order, c.capacity);
      RandomCase fresh(seed);
      for (std::size_t i = 0; i < c.groups.size(); ++i) {
        std::vector<MatchFlow> flows;
        for (std::size_t f = 0; f < c.groups[i]->flows(); ++f) {
          if (!c.groups[i]->Ended(f)) {
            flows.push_back(c.groups[i]->flow(f));
          }
        }
        fresh.groups[i]->Open(fresh.fabric, flows, now, &fresh.scratch);
      }
      if (kind.name == std::string("maxmin")) {  // the others look at bytes left, which differ here
        NewRate(kind.name)->Allocate(fresh.order, c.capacity);
        for (std::size_t i = 0; i < c.groups.size(); ++i) {
          std::size_t at = 0;
          for (std::size_t f = 0; f < c.groups[i]->flows(); ++f) {
            if (!c.groups[i]->Ended(f)) {
              ASSERT_NEAR(c.groups[i]->Rate(f), fresh.groups[i]->Rate(at++), kTolerance) << "seed " << seed;
            }
          }
        }
      }
      const auto used = c.Used();
      for (std::size_t link = 0; link < used.size(); ++link) {
        ASSERT_LE(used[link], c.capacity[link] + kTolerance) << kind.name << " seed " << seed << " link " << link;
      }
    }
  }
}

/// Greedy keeps the order of a group's ports from one allocation to the next: rates are those of ports sorted anew.
TEST(GreedyRate, PortsThatAreKeptInOrderAreServedAsPortsThatAreSortedAnew) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    RandomCase c(seed);
    const auto rate = NewRate("greedy");
    std::int64_t now = 0;
    for (int step = 0; step < 10; ++step) {
      std::vector<FlowGroup> copies;
      std::vector<RankedGroup> sorted_anew(c.order);
      copies.reserve(c.order.size());
      for (RankedGroup& ranked : sorted_anew) {
        ranked.sizes_known = seed % 2 == 0;
        if (c.random() % 2 == 0) {
          ranked.group->NoteRoom({});  // even if nothing has changed
        }
        copies.push_back(*ranked.group);
        ranked.group = &copies.back();
        std::fill(copies.back().port_notes().begin(), copies.back().port_notes().end(), 1);
        std::shuffle(copies.back().port_order().begin(), copies.back().port_order().end(), c.random);
      }
      for (RankedGroup& ranked : c.order) {
        ranked.sizes_known = seed % 2 == 0;
      }
      rate->Allocate(c.order, c.capacity);
      NewRate("greedy")->Allocate(sorted_anew, c.capacity);
      for (std::size_t i = 0; i < copies.size(); ++i) {
        for (std::size_t f = 0; f < copies[i].flows(); ++f) {
          ASSERT_EQ(c.order[i].group->Rate(f), copies[i].Rate(f)) << "seed " << seed << " step " << step;
        }
      }
      now += static_cast<std::int64_t>(1 + c.random() % 20'000);
      std::vector<EndedFlow> ended;
      for (const auto& group : c.groups) {
        for (std::int64_t end = group->NextEnd(); end <= now; end = group->NextEnd()) {
          group->Settle(end);
          group->TakeEnded(0, &ended);
        }
        group->Settle(now);
      }
      c.capacity[c.random() % c.capacity.size()] = 0.25 * static_cast<double>(c.random() % 5);
    }
  }
}

TEST(CorrelatedRate, EveryCoflowHasTheOptimalGuaranteeUnderDrfAndHugAlike) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    for (const char* name : {"drf", "hug"}) {
      RandomCase c(seed);
      std::vector<std::vector<double>> demand;
      std::vector<CorrelatedTenant> tenants;
      for (const RankedGroup& ranked : c.order) {
        demand.emplace_back();
        for (std::size_t local = 0; local < ranked.group->links().size(); ++local) {
          demand.back().push_back(ranked.group->Load(local));
        }
      }
      for (std::size_t k = 0; k < demand.size(); ++k) {
        tenants.push_back({c.order[k].group->links(), demand[k], c.order[k].weight});
      }
      const double guarantee = CorrelatedShares().OptimalGuarantee(tenants, c.capacity);
      NewRate(name)->Allocate(c.order, c.capacity);
      for (std::size_t k = 0; k < demand.size(); ++k) {
        const FlowGroup& group = *c.order[k].group;
        const auto links = group.links();
        const bool blocked =
            std::any_of(links.begin(), links.end(), [&c](std::uint32_t link) { return c.capacity[link] == 0; });
        const double largest = demand[k].empty() ? 1 : *std::max_element(demand[k].begin(), demand[k].end());
        const double per_byte = blocked ? 0 : guarantee * c.order[k].weight / largest;
        for (std::size_t f = 0; f < group.flows(); ++f) {
          ASSERT_GE(group.Rate(f), per_byte * group.Left(f) - kTolerance) << name << " seed " << seed;
          if (name == std::string("drf")) {
            ASSERT_NEAR(group.Rate(f) * group.Left(0), group.Rate(0) * group.Left(f), 1e-6 * group.Left(f)) << seed;
          }
        }
      }
    }
  }
}

TEST(Rates, AnUnknownNameIsAnsweredWithTheListOfNames) {
  const auto rate = MakeRate({"fastest", true});
  ASSERT_FALSE(rate);
  EXPECT_NE(rate.error().message().find("allowed: matching, maxmin, greedy, madd"), std::string::npos);
  for (const RateInfo& info : Rates()) {
    EXPECT_TRUE(MakeRate({std::string(info.name), true})) << info.name;
  }
}

}  // namespace
}  // namespace weir::scheduler
