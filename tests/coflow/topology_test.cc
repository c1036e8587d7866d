#include "coflow/topology.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace weir {
namespace {

IpAddress Address(std::string_view text) {
  return IpAddress::Parse(text).value();
}

std::vector<std::string> Names(const Topology& topology, const Path& path) {
  std::vector<std::string> names;
  for (const LinkId link : path.links) names.push_back(topology.link(link).name);
  return names;
}

/// Sites a, b, c, d with one host each: ha, hb, hc, hd. No links yet.
class TopologyBuilding : public testing::Test {
 protected:
  TopologyBuilding() {
    std::uint8_t number = 1;
    for (const char* name : {"a", "b", "c", "d"}) {
      const SiteId site = topology_.AddSite(name).value();
      const std::vector<IpAddress> addresses = {IpAddress::V4(std::array<std::uint8_t, 4>{10, 0, 0, number++})};
      EXPECT_TRUE(topology_.AddHost("h" + site_name(site), site, addresses, 1e9, 0.95));
    }
  }
  std::string site_name(SiteId site) const { return topology_.sites()[site.value - 1].name; }
  void Join(const char* from, const char* to, Nanoseconds delay = 0) {
    const auto index = [](const char* name) { return SiteId(static_cast<std::uint64_t>(*name - 'a') + 1); };
    ASSERT_TRUE(topology_.AddSiteLink(std::string(from) + to, index(from), index(to), 1e8, 0.95, delay));
  }
  std::vector<std::string> Best(const char* from, const char* to) const {
    return Names(topology_, topology_.PathBetween(topology_.FindHost(from)->id, topology_.FindHost(to)->id));
  }
  std::string Complaint(const Result<HostId>& result) const { return result.error().ToString(); }
  Result<HostId> AddHost(std::string name, std::vector<IpAddress> addresses, double nic = 1e9, double payload = 0.95) {
    return topology_.AddHost(std::move(name), SiteId(1), std::move(addresses), nic, payload);
  }

  Topology topology_;
};

TEST_F(TopologyBuilding, PathIsOwnLinksAroundTheSiteLinks) {
  Join("a", "b", 10 * kMillisecond);
  topology_.FindPaths();
  EXPECT_EQ(Best("ha", "hb"), (std::vector<std::string>{"ha:out", "ab", "hb:in"}));
  EXPECT_EQ(topology_.PathBetween(HostId(1), HostId(2)).delay, 10 * kMillisecond);
  EXPECT_TRUE(Best("hb", "ha").empty());  // A link has one direction.
  EXPECT_TRUE(Best("ha", "ha").empty());
  EXPECT_TRUE(topology_.PathsBetween(HostId(1), HostId(1)).empty());
}

TEST_F(TopologyBuilding, FewestLinksWinOverLessDelay) {
  Join("a", "b", 1);
  Join("b", "d", 1);
  Join("a", "d", 100);
  topology_.FindPaths();
  EXPECT_EQ(Best("ha", "hd"), (std::vector<std::string>{"ha:out", "ad", "hd:in"}));
  const auto paths = topology_.PathsBetween(HostId(1), HostId(4));
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(Names(topology_, paths[1]), (std::vector<std::string>{"ha:out", "ab", "bd", "hd:in"}));
  EXPECT_EQ(paths[1].delay, 2);
}

TEST_F(TopologyBuilding, AmongEquallyManyLinksLessDelayWins) {
  Join("a", "b", 5);
  Join("b", "d", 5);
  Join("a", "c", 1);
  Join("c", "d", 2);
  topology_.FindPaths();
  EXPECT_EQ(Best("ha", "hd"), (std::vector<std::string>{"ha:out", "ac", "cd", "hd:in"}));
}

TEST_F(TopologyBuilding, ParallelLinksAreAlternativesUpToTheLimit) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(topology_.AddSiteLink("p" + std::to_string(i), SiteId(1), SiteId(2), 1e8, 0.95, 6 - i));
  }
  topology_.FindPaths();
  const auto paths = topology_.PathsBetween(HostId(1), HostId(2));
  ASSERT_EQ(paths.size(), Topology::kPathsPerPair);
  EXPECT_EQ(Names(topology_, paths[0])[1], "p5");
  EXPECT_EQ(Names(topology_, paths[3])[1], "p2");
}

TEST_F(TopologyBuilding, PathsNeverVisitASiteTwice) {
  for (const char* from : {"a", "b", "c", "d"}) {
    for (const char* to : {"a", "b", "c", "d"}) {
      if (*from != *to) Join(from, to);
    }
  }
  topology_.FindPaths();
  for (const Path& path : topology_.SitePaths(SiteId(1), SiteId(4))) {
    std::vector<std::string> visited = {"a"};
    for (const LinkId link : path.links) {
      const std::string to = topology_.link(link).name.substr(1);
      EXPECT_EQ(std::ranges::count(visited, to), 0) << to;
      visited.push_back(to);
    }
    EXPECT_EQ(visited.back(), "d");
  }
  EXPECT_TRUE(topology_.SitePaths(SiteId(1), SiteId(1)).empty());
}

TEST_F(TopologyBuilding, WhatIsRefusedChangesNothing) {
  EXPECT_EQ(Complaint(AddHost("ha", {Address("10.9.9.9")})), "already exists: host \"ha\" is defined twice");
  EXPECT_EQ(Complaint(AddHost("new", {Address("10.9.9.9"), Address("10.0.0.2")})),
            "already exists: host \"new\": address 10.0.0.2 belongs to host \"hb\" already");
  EXPECT_EQ(Complaint(AddHost("new", {Address("10.9.9.9"), Address("::ffff:10.9.9.9")})),
            "already exists: host \"new\": address 10.9.9.9 belongs to host \"new\" already");
  EXPECT_EQ(Complaint(AddHost("two words", {})),
            "invalid argument: \"two words\" is no name for a host; allowed: 1 to 128 of A-Z a-z 0-9 ._-:/+@");
  EXPECT_EQ(topology_.AddHost("new", SiteId(9), {}, 1e9, 1).error().ToString(),
            "not found: host \"new\": its site does not exist");
  EXPECT_EQ(topology_.FindHost("new"), nullptr);
  EXPECT_EQ(topology_.FindHost(Address("10.9.9.9")), nullptr);
  EXPECT_EQ(topology_.hosts().size(), 4u);
  EXPECT_EQ(topology_.links().size(), 8u);
  EXPECT_TRUE(AddHost("new", {Address("10.9.9.9")}));
}

TEST_F(TopologyBuilding, ImpossibleNumbersAreRefused) {
  for (const double nic : {0.0, -1.0, 124.0, 1e15, std::nan(""), HUGE_VAL}) {
    EXPECT_NE(Complaint(AddHost("new", {}, nic)).find("allowed: 125 to 125000000000000"), std::string::npos) << nic;
  }
  for (const double payload : {0.0, -0.5, 1.01, std::nan("")}) {
    EXPECT_NE(Complaint(AddHost("new", {}, 1e9, payload)).find("allowed: above 0, at most 1"), std::string::npos);
  }
  for (const Nanoseconds delay : {Nanoseconds{-1}, kMaxDelay + 1}) {
    EXPECT_NE(topology_.AddSiteLink("x", SiteId(1), SiteId(2), 1e8, 1, delay).error().message().find("delay is"),
              std::string::npos);
  }
  EXPECT_FALSE(topology_.AddSiteLink("x", SiteId(1), SiteId(2), 0, 1, 0));
  EXPECT_EQ(topology_.FindLink("x"), nullptr);
}

TEST_F(TopologyBuilding, NamesAreBoundedAndLinksShareOneNameSpace) {
  EXPECT_TRUE(topology_.AddSite(std::string(Topology::kMaxNameBytes, 'x')));
  EXPECT_FALSE(topology_.AddSite(std::string(Topology::kMaxNameBytes + 1, 'x')));
  EXPECT_FALSE(topology_.AddSite(""));
  EXPECT_EQ(topology_.AddSite("a").error().ToString(), "already exists: site \"a\" is defined twice");
  EXPECT_EQ(topology_.AddSiteLink("ha:in", SiteId(1), SiteId(2), 1e8, 1, 0).error().ToString(),
            "already exists: link \"ha:in\" is defined twice");
  ASSERT_TRUE(topology_.AddSiteLink("new:in", SiteId(1), SiteId(2), 1e8, 1, 0));
  EXPECT_EQ(Complaint(AddHost("new", {})), "already exists: host \"new\": a link is named \"new:in\" already");
  EXPECT_FALSE(topology_.AddSiteLink("a b", SiteId(1), SiteId(2), 1e8, 1, 0));
}

TEST_F(TopologyBuilding, LinkNeedsTwoDifferentKnownSites) {
  EXPECT_EQ(topology_.AddSiteLink("x", SiteId(1), SiteId(9), 1e8, 1, 0).error().ToString(),
            "not found: link \"x\": one of its sites does not exist");
  EXPECT_EQ(topology_.AddSiteLink("x", SiteId(), SiteId(1), 1e8, 1, 0).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(topology_.AddSiteLink("x", SiteId(1), SiteId(1), 1e8, 1, 0).error().ToString(),
            "invalid argument: link \"x\" leads from site \"a\" to itself");
}

TEST(TopologyLimits, MoreSitesThanTheLimitAreRefused) {
  Topology topology;
  for (std::size_t i = 0; i < Topology::kMaxSites; ++i) ASSERT_TRUE(topology.AddSite("s" + std::to_string(i)));
  EXPECT_EQ(topology.AddSite("more").error().ToString(), "limit reached: more than 256 sites");
}

TEST(TopologyLimits, MoreHostsThanTheLimitAreRefused) {
  Topology topology = Topology::BigSwitch(Topology::kMaxHosts, 1e9);
  EXPECT_EQ(topology.AddHost("more", SiteId(1), {}, 1e9, 1).error().ToString(),
            "limit reached: more than 100000 hosts");
  EXPECT_EQ(topology.FindHost("h99999")->addresses[0].ToString(), "10.1.134.160");
}

TEST(TopologyLimits, MoreSiteLinksThanTheLimitAreRefused) {
  Topology topology;
  ASSERT_TRUE(topology.AddSite("a"));
  ASSERT_TRUE(topology.AddSite("b"));
  for (std::size_t i = 0; i < Topology::kMaxSiteLinks; ++i) {
    ASSERT_TRUE(topology.AddSiteLink("l" + std::to_string(i), SiteId(1), SiteId(2), 1e8, 1, 0));
  }
  EXPECT_EQ(topology.AddSiteLink("more", SiteId(1), SiteId(2), 1e8, 1, 0).error().code(),
            StatusCode::kResourceExhausted);
}

TEST(TopologyLimits, FullMeshOfManySitesIsSearched) {
  const Topology topology = Topology::MultiSite(64, 1, 1e9, 1e8);
  for (const Host& from : topology.hosts()) {
    for (const Host& to : topology.hosts()) {
      if (from.id == to.id) continue;
      EXPECT_EQ(topology.PathBetween(from.id, to.id).links.size(), 3u);
    }
  }
  EXPECT_EQ(topology.SitePaths(SiteId(1), SiteId(2)).size(), Topology::kPathsPerPair);
}

TEST(TopologyLimits, LongestChainOfSitesHasAPath) {
  Topology topology;
  for (std::size_t i = 0; i < Topology::kMaxSites; ++i) ASSERT_TRUE(topology.AddSite("s" + std::to_string(i)));
  for (std::uint64_t i = 1; i < Topology::kMaxSites; ++i) {
    ASSERT_TRUE(topology.AddSiteLink("l" + std::to_string(i), SiteId(i), SiteId(i + 1), 1e8, 1, kMillisecond));
  }
  topology.FindPaths();
  const auto paths = topology.SitePaths(SiteId(1), SiteId(Topology::kMaxSites));
  ASSERT_EQ(paths.size(), 1u);
  EXPECT_EQ(paths[0].links.size(), Topology::kMaxSites - 1);
  EXPECT_EQ(paths[0].delay, 255 * kMillisecond);
}

TEST(BigSwitch, HostsReachEachOtherOverTheirOwnLinks) {
  const Topology topology = Topology::BigSwitch(3, 1e9);
  EXPECT_EQ(topology.sites().size(), 1u);
  EXPECT_EQ(topology.links().size(), 6u);
  const Path path = topology.PathBetween(HostId(1), HostId(3));
  EXPECT_EQ(Names(topology, path), (std::vector<std::string>{"h0:out", "h2:in"}));
  EXPECT_EQ(topology.PathsBetween(HostId(1), HostId(3)).size(), 1u);
  EXPECT_DOUBLE_EQ(topology.link(path.links[0]).payload_rate(), 0.95e9);
}

TEST(LeafSpine, TrafficBetweenLeavesCrossesTheSpine) {
  const Topology topology = Topology::LeafSpine(2, 2, 1e9, 4e9);
  EXPECT_EQ(topology.hosts().size(), 4u);
  EXPECT_EQ(Names(topology, topology.PathBetween(HostId(1), HostId(4))),
            (std::vector<std::string>{"h0:out", "leaf0-spine", "spine-leaf1", "h3:in"}));
  EXPECT_EQ(topology.PathBetween(HostId(1), HostId(2)).links.size(), 2u);
}

TEST(MultiSite, EveryPairOfSitesHasALinkEachWay) {
  const Topology topology = Topology::MultiSite(3, 1, 1e9, 1e8, 5 * kMillisecond);
  EXPECT_EQ(topology.links().size(), 3u * 2 + 6);
  const auto paths = topology.PathsBetween(HostId(1), HostId(2));
  ASSERT_EQ(paths.size(), 2u);
  EXPECT_EQ(Names(topology, paths[0]), (std::vector<std::string>{"h0:out", "site0-site1", "h1:in"}));
  EXPECT_EQ(paths[1].delay, 10 * kMillisecond);
}

TEST(TopologyLookup, UnknownNamesAndAddressesAreNull) {
  const Topology topology = Topology::BigSwitch(2, 1e9);
  EXPECT_EQ(topology.FindHost("h1")->id, HostId(2));
  EXPECT_EQ(topology.FindHost(Address("10.0.0.1"))->name, "h0");
  EXPECT_EQ(topology.FindHost(Address("10.0.0.9")), nullptr);
  EXPECT_EQ(topology.FindHost("h9"), nullptr);
  EXPECT_EQ(topology.FindLink("h1:in")->id, topology.hosts()[1].in);
  EXPECT_EQ(topology.FindLink("h1"), nullptr);
}

}  // namespace
}  // namespace weir
