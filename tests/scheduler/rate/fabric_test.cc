#include "scheduler/rate/fabric.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace weir::scheduler {
namespace {

TEST(Fabric, ABigSwitchHasNoInnerLinks) {
  const Fabric fabric = Fabric::BigSwitch(3, 2.0);
  EXPECT_EQ(fabric.links(), 6u);
  EXPECT_TRUE(fabric.InnerLinks(0, 2).empty());
  EXPECT_EQ(fabric.capacity()[5], 2.0);
  EXPECT_TRUE(fabric.IsUplink(2));
  EXPECT_TRUE(fabric.IsDownlink(3));
}

TEST(Fabric, ALeafSpineTopologyCrossesTwoInnerLinksBetweenLeaves) {
  const auto fabric = Fabric::FromTopology(Topology::LeafSpine(2, 2, 1e9, 4e9), 0.95e9);
  ASSERT_TRUE(fabric) << fabric.error().message();
  EXPECT_EQ(fabric->ports(), 4u);
  EXPECT_TRUE(fabric->InnerLinks(0, 1).empty());
  const auto inner = fabric->InnerLinks(1, 2);
  ASSERT_EQ(inner.size(), 2u);
  EXPECT_NE(inner[0], inner[1]);
  for (const std::uint32_t link : inner) {
    EXPECT_GE(link, 8u);
    EXPECT_DOUBLE_EQ(fabric->capacity()[link], 4.0);
  }
  EXPECT_DOUBLE_EQ(fabric->capacity()[0], 1.0);
}

TEST(Fabric, PairsOfPortsAreSpreadOverPathsOfEqualLengthAndKeepToTheirs) {
  Topology topology;
  const auto east = topology.AddSite("east");
  const auto west = topology.AddSite("west");
  const auto far = topology.AddSite("far");
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(topology.AddHost("e" + std::to_string(i), *east, {}, 1e9, 1.0));
    ASSERT_TRUE(topology.AddHost("w" + std::to_string(i), *west, {}, 1e9, 1.0));
  }
  ASSERT_TRUE(topology.AddSiteLink("north", *east, *west, 2e9, 1.0, 0));
  ASSERT_TRUE(topology.AddSiteLink("south", *east, *west, 3e9, 1.0, 5));
  ASSERT_TRUE(topology.AddSiteLink("east-far", *east, *far, 4e9, 1.0, 0));
  ASSERT_TRUE(topology.AddSiteLink("far-west", *far, *west, 4e9, 1.0, 0));
  ASSERT_TRUE(topology.AddSiteLink("back", *west, *east, 4e9, 1.0, 0));
  topology.FindPaths();
  const auto fabric = Fabric::FromTopology(topology, 1e9);
  ASSERT_TRUE(fabric) << fabric.error().message();
  std::map<double, int> pairs;  // By the capacity of the link taken.
  for (std::uint32_t source = 0; source < 16; source += 2) {
    for (std::uint32_t destination = 1; destination < 16; destination += 2) {
      const auto inner = fabric->InnerLinks(source, destination);
      ASSERT_EQ(inner.size(), 1u) << "the way over a third site is longer";
      EXPECT_EQ(inner.data(), fabric->InnerLinks(source, destination).data());
      ++pairs[fabric->capacity()[inner[0]]];
    }
  }
  EXPECT_EQ(pairs.size(), 2u);
  EXPECT_GE(pairs[2.0], 16);
  EXPECT_GE(pairs[3.0], 16);
}

TEST(Fabric, TwoSitesWithoutAPathAreNamed) {
  Topology topology;
  const auto east = topology.AddSite("east");
  const auto west = topology.AddSite("west");
  ASSERT_TRUE(topology.AddHost("e1", *east, {}, 1e9, 1.0));
  ASSERT_TRUE(topology.AddHost("w1", *west, {}, 1e9, 1.0));
  topology.FindPaths();
  const auto fabric = Fabric::FromTopology(topology, 1e9);
  ASSERT_FALSE(fabric);
  EXPECT_NE(fabric.error().message().find("no path from site east to site west"), std::string::npos);
}

}  // namespace
}  // namespace weir::scheduler
