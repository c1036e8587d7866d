#include "scheduler/share/correlated.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace weir::scheduler {
namespace {

constexpr double kTolerance = 1e-9;

/// Tenants that own what they refer to.
struct Tenants {
  void Add(std::vector<LinkIndex> links, std::vector<double> demand, double weight = 1) {
    links_.push_back(std::move(links));
    demand_.push_back(std::move(demand));
    weight_.push_back(weight);
  }
  std::vector<CorrelatedTenant> Get() const {
    std::vector<CorrelatedTenant> tenants;
    for (std::size_t k = 0; k < links_.size(); ++k) {
      tenants.push_back({links_[k], demand_[k], weight_[k]});
    }
    return tenants;
  }

  std::vector<std::vector<LinkIndex>> links_;
  std::vector<std::vector<double>> demand_;
  std::vector<double> weight_;
};

/// The largest progress that `shares` allow tenant k, if `demand` is what it really needs.
double Progress(const Tenants& tenants, std::size_t k, const std::vector<double>& demand,
                const std::vector<double>& shares) {
  std::size_t at = 0;
  for (std::size_t before = 0; before < k; ++before) {
    at += tenants.links_[before].size();
  }
  const double largest = *std::max_element(demand.begin(), demand.end());
  double progress = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < demand.size(); ++i) {
    progress = demand[i] > 0 ? std::min(progress, shares[at + i] / (demand[i] / largest)) : progress;
  }
  return progress;
}

Tenants RandomTenants(std::mt19937_64* random, std::size_t links, bool weighted) {
  Tenants tenants;
  const std::size_t count = 1 + (*random)() % 6;
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<LinkIndex> of(links);
    std::iota(of.begin(), of.end(), 0U);
    std::shuffle(of.begin(), of.end(), *random);
    of.resize(1 + (*random)() % links);
    std::vector<double> demand(of.size());
    for (double& each : demand) {
      each = static_cast<double>((*random)() % 9) / 4;
    }
    demand[0] += 0.25;
    tenants.Add(of, demand, weighted ? 0.5 * static_cast<double>(1 + (*random)() % 4) : 1);
  }
  return tenants;
}

std::vector<double> Used(const Tenants& tenants, const std::vector<double>& shares, std::size_t links) {
  std::vector<double> used(links, 0.0);
  std::size_t at = 0;
  for (const auto& of : tenants.links_) {
    for (const LinkIndex link : of) {
      used[link] += shares[at++];
    }
  }
  return used;
}

// Two links of 1; who is limited by both, and what the second stage adds, is easily found on paper.
TEST(Hug, TwoTenantsOnTwoLinks) {
  Tenants tenants;
  tenants.Add({0, 1}, {0.5, 1});
  tenants.Add({0, 1}, {1, 1.0 / 6});
  const std::vector<double> capacity = {1, 1};
  CorrelatedShares shares;
  EXPECT_NEAR(shares.OptimalGuarantee(tenants.Get(), capacity), 2.0 / 3, kTolerance);
  std::vector<double> hug;
  EXPECT_NEAR(shares.Hug(tenants.Get(), capacity, hug), 2.0 / 3, kTolerance);
  const std::vector<double> expected = {1.0 / 3, 2.0 / 3, 2.0 / 3, 1.0 / 3};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(hug[i], expected[i], kTolerance) << i;
  }
  std::vector<double> drf;
  shares.Drf(tenants.Get(), capacity, drf);
  EXPECT_NEAR(drf[0], 2.0 / 3, kTolerance);  // Both are limited by the first link.
  EXPECT_NEAR(drf[1], 2.0 / 3, kTolerance);
}

TEST(Drf, WhoSharesNoFullLinkGoesOn) {
  Tenants tenants;
  tenants.Add({0}, {3});
  tenants.Add({0, 1}, {1, 1});
  tenants.Add({1}, {7});
  std::vector<double> progress;
  CorrelatedShares().Drf(tenants.Get(), std::vector<double>{1, 2}, progress);
  EXPECT_NEAR(progress[0], 0.5, kTolerance);
  EXPECT_NEAR(progress[1], 0.5, kTolerance);
  EXPECT_NEAR(progress[2], 1.5, kTolerance);
}

TEST(Hug, NobodyHasMoreThanTheGuaranteeOnAnyLink) {
  Tenants tenants;
  tenants.Add({0}, {3});
  tenants.Add({0, 1}, {1, 1});
  tenants.Add({1}, {7});
  std::vector<double> shares;
  EXPECT_NEAR(CorrelatedShares().Hug(tenants.Get(), std::vector<double>{1, 2}, shares), 0.5, kTolerance);
  for (const double share : shares) {
    EXPECT_NEAR(share, 0.5, kTolerance);  // Half of the second link stays idle: that is the price of honesty.
  }
}

TEST(CorrelatedShares, NoDemandOrADeadLinkGetsNothingAndCostsNobody) {
  Tenants tenants;
  tenants.Add({}, {});
  tenants.Add({0, 1}, {0, 0});
  tenants.Add({0, 2}, {1, 1});  // Link 2 is dead.
  tenants.Add({0, 2}, {2, 0});
  CorrelatedShares correlated;
  std::vector<double> values;
  const std::vector<double> capacity = {4, 1, 0};
  EXPECT_NEAR(correlated.Hug(tenants.Get(), capacity, values), 4, kTolerance);
  EXPECT_EQ(values, (std::vector<double>{0, 0, 0, 0, 4, 0}));
  correlated.Drf(tenants.Get(), capacity, values);
  EXPECT_EQ(values, (std::vector<double>{0, 0, 0, 4}));
  EXPECT_EQ(correlated.Hug({}, capacity, values), 0);
  correlated.Drf({}, capacity, values);
  EXPECT_TRUE(values.empty());
}

TEST(Hug, IsFeasibleGuaranteesTheOptimumAndUsesAllThatTheCapAllows) {
  CorrelatedShares correlated;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<double> capacity(1 + random() % 5);
    for (double& each : capacity) {
      each = 0.25 * static_cast<double>(1 + random() % 12);
    }
    const Tenants tenants = RandomTenants(&random, capacity.size(), true);
    std::vector<double> shares;
    const double guarantee = correlated.Hug(tenants.Get(), capacity, shares);
    std::vector<double> drf;
    correlated.Drf(tenants.Get(), capacity, drf);
    const std::vector<double> used = Used(tenants, shares, capacity.size());
    std::vector<double> cap(capacity.size(), 0.0);
    std::vector<double> first_stage(capacity.size(), 0.0);
    double least_drf = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < tenants.links_.size(); ++k) {
      const double weight = tenants.weight_[k];
      ASSERT_GE(Progress(tenants, k, tenants.demand_[k], shares), guarantee * weight - kTolerance) << "seed " << seed;
      ASSERT_GE(drf[k], guarantee * weight - kTolerance) << "seed " << seed;
      least_drf = std::min(least_drf, drf[k] / weight);
      const double largest = *std::max_element(tenants.demand_[k].begin(), tenants.demand_[k].end());
      for (std::size_t i = 0; i < tenants.links_[k].size(); ++i) {
        cap[tenants.links_[k][i]] += tenants.demand_[k][i] > 0 ? guarantee * weight : 0;
        first_stage[tenants.links_[k][i]] += guarantee * weight * tenants.demand_[k][i] / largest;
      }
    }
    ASSERT_NEAR(least_drf, guarantee, kTolerance) << "seed " << seed;
    for (std::size_t link = 0; link < capacity.size(); ++link) {
      ASSERT_NEAR(used[link], std::min(capacity[link], cap[link]), kTolerance) << "seed " << seed << " link " << link;
      ASSERT_GE(used[link], first_stage[link] - kTolerance) << "seed " << seed << " link " << link;
    }
  }
}

TEST(Drf, IsMaxMinFairInProgress) {
  CorrelatedShares correlated;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<double> capacity(1 + random() % 5, 1.0);
    const Tenants tenants = RandomTenants(&random, capacity.size(), true);
    std::vector<double> progress;
    correlated.Drf(tenants.Get(), capacity, progress);
    std::vector<double> shares;
    for (std::size_t k = 0; k < tenants.links_.size(); ++k) {
      const double largest = *std::max_element(tenants.demand_[k].begin(), tenants.demand_[k].end());
      for (const double demand : tenants.demand_[k]) {
        shares.push_back(progress[k] * demand / largest);
      }
    }
    const std::vector<double> used = Used(tenants, shares, capacity.size());
    std::vector<double> most(capacity.size(), 0.0);  // Largest progress for its weight of those that use a link.
    for (std::size_t k = 0; k < tenants.links_.size(); ++k) {
      for (std::size_t i = 0; i < tenants.links_[k].size(); ++i) {
        double& of_link = most[tenants.links_[k][i]];
        of_link = tenants.demand_[k][i] > 0 ? std::max(of_link, progress[k] / tenants.weight_[k]) : of_link;
      }
    }
    for (std::size_t k = 0; k < tenants.links_.size(); ++k) {
      bool limited = false;
      for (std::size_t i = 0; i < tenants.links_[k].size(); ++i) {
        const LinkIndex link = tenants.links_[k][i];
        ASSERT_LE(used[link], capacity[link] + kTolerance) << "seed " << seed;
        limited |= tenants.demand_[k][i] > 0 && used[link] >= capacity[link] - 1e-6 &&
                   progress[k] / tenants.weight_[k] >= most[link] - 1e-6;
      }
      ASSERT_TRUE(limited) << "seed " << seed << " tenant " << k;
    }
  }
}

TEST(Hug, NobodyGainsProgressByLying) {
  CorrelatedShares correlated;
  for (std::uint64_t seed = 1; seed <= 5000; ++seed) {
    std::mt19937_64 random(seed);
    const std::vector<double> capacity(1 + random() % 4, 1.0);
    Tenants tenants = RandomTenants(&random, capacity.size(), false);
    std::vector<double> shares;
    correlated.Hug(tenants.Get(), capacity, shares);
    const std::size_t liar = random() % tenants.links_.size();
    const std::vector<double> truth = tenants.demand_[liar];
    const double honest = Progress(tenants, liar, truth, shares);
    for (double& each : tenants.demand_[liar]) {
      each = static_cast<double>(random() % 9) / 4;
    }
    tenants.demand_[liar][0] += 0.1;
    correlated.Hug(tenants.Get(), capacity, shares);
    ASSERT_LE(Progress(tenants, liar, truth, shares), honest + kTolerance) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::scheduler
