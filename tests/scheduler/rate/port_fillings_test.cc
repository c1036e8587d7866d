// Fillings of fabrics without inner links, which go on from the last time, against max-min flow by flow from the start
// (scheduler/share), on thousands of small random cases. A failure prints its seed: Switch(seed) is the case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "scheduler/rate/allocator.h"
#include "scheduler/share/max_min.h"
#include "tests/scheduler/rate/random_rates.h"

namespace weir::scheduler {
namespace {

constexpr std::uint64_t kSeeds = 3000;
constexpr int kSteps = 12;
constexpr double kTolerance = 1e-7;  // of a capacity of about 1: what counts as full is 1e-9 of a link

/// Groups on a few levels of one big switch of unequal ports, some without capacity.
struct Switch {
  /// With so many ports; 0: a few.
  explicit Switch(std::uint64_t seed, std::uint32_t ports = 0)
      : random(seed), fabric(Fabric::BigSwitch(ports == 0 ? 2 + Pick(9) : ports)), scratch(fabric.links(), UINT32_MAX) {
    for (std::uint32_t link = 0; link < fabric.links(); ++link) {
      fabric.SetCapacity(link, RandomCapacity());
    }
    capacity.assign(fabric.capacity().begin(), fabric.capacity().end());
    const std::uint32_t count = 1 + Pick(6);
    for (std::uint32_t i = 0; i < count; ++i) {
      groups.push_back(std::make_unique<FlowGroup>());
      Open(i);
    }
    wide_weights = Pick(4) == 0;
    Rank();
  }

  std::uint32_t Pick(std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); }
  double RandomCapacity() { return Pick(8) == 0 ? 0 : 0.25 * (1 + Pick(16)); }
  double RandomWeight() { return wide_weights ? std::pow(10.0, Pick(6)) * 0.1 : 0.5 * (1 + Pick(6)); }

  void Open(std::size_t i) {
    std::vector<MatchFlow> flows;
    const std::uint64_t sparse = 1 + Pick(4);
    std::vector<bool> used(fabric.links(), true);  // of many ports some
    for (std::size_t link = 0; fabric.ports() > 64 && link < used.size(); ++link) {
      used[link] = Pick(sparse + 1) == 0;
    }
    for (std::uint32_t s = 0; s < fabric.ports(); ++s) {
      for (std::uint32_t d = 0; d < fabric.ports(); ++d) {
        if (used[s] && used[fabric.ports() + d] && Pick(sparse) == 0) {
          flows.push_back({s, d, 1 + Pick(100'000)});
        }
      }
    }
    if (flows.empty()) {
      flows.push_back({0, 0, 1});
    }
    groups[i]->Open(fabric, flows, now, &scratch);
  }

  /// Puts the groups that live onto levels, with weights.
  void Rank() {
    order.clear();
    std::uint32_t level = Pick(3);
    for (const auto& group : groups) {
      if (group->live() > 0) {
        order.push_back({group.get(), RandomWeight(), level});
        level += Pick(3) == 0 ? 1U : 0U;
      }
    }
  }

  void Forget() {
    std::erase_if(order, [](const RankedGroup& ranked) { return ranked.group->live() == 0; });
  }

  /// Time moves on to the next ends of flows, a few times.
  void EndSomeFlows() {
    for (std::uint32_t times = 1 + Pick(4); times > 0; --times) {
      std::int64_t next = std::numeric_limits<std::int64_t>::max();
      for (const RankedGroup& ranked : order) {
        next = std::min(next, ranked.group->NextEnd());
      }
      if (next == std::numeric_limits<std::int64_t>::max()) {
        break;
      }
      now = next;
      std::vector<EndedFlow> ended;
      for (const RankedGroup& ranked : order) {
        ranked.group->Settle(now);
        ranked.group->TakeEnded(0, &ended);
      }
    }
    Forget();
  }

  void ChangeSomething() {
    switch (Pick(8)) {
      case 0:
        capacity[Pick(capacity.size())] = RandomCapacity();
        break;
      case 1:
        Open(Pick(groups.size()));
        Rank();
        break;
      case 2:
        Rank();
        break;
      default:
        break;
    }
  }

  std::mt19937_64 random;
  Fabric fabric;
  std::vector<std::uint32_t> scratch;
  std::vector<std::unique_ptr<FlowGroup>> groups;
  std::vector<RankedGroup> order;
  std::vector<double> capacity;
  std::int64_t now = 0;
  bool wide_weights = false;
};

/// The same rates level by level, of the live flows in order.
std::vector<double> Reference(const Switch& c) {
  std::vector<double> room = c.capacity;
  std::vector<double> rates;
  for (std::size_t begin = 0, end = 0; begin < c.order.size(); begin = end) {
    std::vector<std::vector<LinkIndex>> paths;
    std::vector<ShareFlow> flows;
    for (end = begin; end < c.order.size() && c.order[end].level == c.order[begin].level; ++end) {
      const FlowGroup& group = *c.order[end].group;
      for (std::size_t f = 0; f < group.flows(); ++f) {
        if (!group.Ended(f)) {
          paths.push_back({group.flow(f).source, c.fabric.ports() + group.flow(f).destination});
          flows.push_back({{}, c.order[end].weight, std::numeric_limits<double>::infinity()});
        }
      }
    }
    for (std::size_t i = 0; i < flows.size(); ++i) {
      flows[i].links = paths[i];
    }
    std::vector<double> of_level;
    MaxMin().Fill(flows, room, of_level);
    rates.insert(rates.end(), of_level.begin(), of_level.end());
  }
  return rates;
}

std::vector<double> Rates(const Switch& c) {
  std::vector<double> rates;
  for (const RankedGroup& ranked : c.order) {
    for (std::size_t f = 0; f < ranked.group->flows(); ++f) {
      if (!ranked.group->Ended(f)) {
        rates.push_back(ranked.group->Rate(f));
      }
    }
  }
  return rates;
}

void ExpectEqual(const std::vector<double>& rates, const std::vector<double>& expected, std::uint64_t seed, int step) {
  ASSERT_EQ(rates.size(), expected.size()) << "seed " << seed << " step " << step;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    ASSERT_NEAR(rates[i], expected[i], kTolerance) << "seed " << seed << " step " << step << " flow " << i;
  }
}

TEST(PortFillings, AfterAnyEventsEqualMaxMinFlowByFlow) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Switch c(seed);
    const auto rate = NewRate("maxmin");
    for (int step = 0; step < kSteps; ++step) {
      rate->Allocate(c.order, c.capacity);
      ExpectEqual(Rates(c), Reference(c), seed, step);
      if (HasFatalFailure()) {
        return;
      }
      c.EndSomeFlows();
      c.ChangeSomething();
    }
  }
}

TEST(PortFillings, OnManyPortsTheyDoToo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Switch c(seed, static_cast<std::uint32_t>(65 + seed * 7));
    const auto rate = NewRate("maxmin");
    for (int step = 0; step < 5; ++step) {
      rate->Allocate(c.order, c.capacity);
      ExpectEqual(Rates(c), Reference(c), seed, step);
      if (HasFatalFailure()) {
        return;
      }
      c.EndSomeFlows();
      c.ChangeSomething();
    }
  }
}

TEST(PortFillings, SumsAddUpWhenSomebodyAsks) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Switch c(seed);
    const auto rate = NewRate("maxmin");
    for (int step = 0; step < 4; ++step) {
      rate->Allocate(c.order, c.capacity);
      c.EndSomeFlows();
      c.ChangeSomething();
    }
    rate->Allocate(c.order, c.capacity);
    for (const auto& group : c.groups) {
      group->Settle(c.now);
      group->RefreshSums();
      std::vector<double> load(group->links().size(), 0);
      std::vector<double> use(load.size(), 0);
      for (std::size_t f = 0; f < group->flows(); ++f) {
        for (const std::uint32_t local : group->PathOf(f)) {
          load[local] += group->Left(f);
          use[local] += group->Rate(f);
        }
      }
      for (std::size_t local = 0; local < load.size(); ++local) {
        ASSERT_NEAR(group->Load(local), load[local], 1e-6 * (1 + load[local])) << "seed " << seed;
        ASSERT_NEAR(group->Use(local), use[local], kTolerance) << "seed " << seed;
      }
    }
  }
}

TEST(PortFillings, WithNothingNewNoRateChangesAndTheSameRoomIsLeft) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Switch c(seed);
    const auto rate = NewRate("maxmin");
    rate->Allocate(c.order, c.capacity);
    const std::vector<double> before = Rates(c);
    ASSERT_EQ(rate->Allocate(c.order, c.capacity), 0U) << "seed " << seed;
    ASSERT_EQ(Rates(c), before) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::scheduler
