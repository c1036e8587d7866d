#include "transport/rdma/gid.h"

#include <gtest/gtest.h>

namespace weir::transport::rdma {
namespace {

Gid Of(const char* address) {
  const IpAddress parsed = IpAddress::Parse(address).value();
  Gid gid{};
  if (!parsed.is_v4()) return parsed.bytes();
  gid[10] = gid[11] = 0xff;
  std::copy_n(parsed.bytes().begin(), 4, gid.begin() + 12);
  return gid;
}

/// A usual table of a card with one IPv4 and one IPv6 address: each of them for both versions of RoCE.
std::vector<GidEntry> Usual() {
  return {{0, Of("fe80::1"), GidType::kRoceV1, 2},  {1, Of("fe80::1"), GidType::kRoceV2, 2},
          {2, Of("10.1.0.7"), GidType::kRoceV1, 2}, {3, Of("10.1.0.7"), GidType::kRoceV2, 2},
          {4, Of("fd00::7"), GidType::kRoceV2, 2},  {5, Gid{}, GidType::kRoceV2, 0}};
}

std::uint32_t Chosen(const std::vector<GidEntry>& entries, const GidRule& rule) {
  const auto choice = ChooseGid(entries, rule);
  EXPECT_TRUE(choice.has_value()) << choice.error().ToString();
  return choice ? choice->entry.index : 99;
}

TEST(ChooseGid, RoceV2AndIpv4GoFirst) {
  EXPECT_EQ(Chosen(Usual(), {}), 3u);
}

TEST(ChooseGid, TheVersionOfRoceAndTheFamilyMayBePreferred) {
  GidRule rule;
  rule.prefers_v1 = true;
  EXPECT_EQ(Chosen(Usual(), rule), 2u);
  rule.prefers_v1 = false;
  rule.prefers_ipv6 = true;
  EXPECT_EQ(Chosen(Usual(), rule), 4u);
}

TEST(ChooseGid, TheChoiceIsExplained) {
  const auto choice = ChooseGid(Usual(), {});
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->why.rfind("10.1.0.7 (RoCE v2, entry 3) of fe80::1 (RoCE v1, entry 0), ", 0), 0u) << choice->why;
}

TEST(ChooseGid, AnEntryThatIsNamedIsTakenWhateverItIs) {
  EXPECT_EQ(Chosen(Usual(), {0, {}, {}}), 0u);
}

TEST(ChooseGid, AnEntryOfZerosIsNone) {
  const auto choice = ChooseGid(Usual(), {5, {}, {}});
  ASSERT_FALSE(choice.has_value());
  EXPECT_EQ(choice.error().code(), StatusCode::kNotFound);
  EXPECT_NE(choice.error().message().find("wanted entry 5, there are: fe80::1"), std::string::npos);
}

TEST(ChooseGid, OnlyTheNetworkThatIsNamedIsChosenFrom) {
  EXPECT_EQ(Chosen(Usual(), {-1, Subnet::Parse("fd00::/16").value(), {}}), 4u);
  const auto choice = ChooseGid(Usual(), {-1, Subnet::Parse("10.2.0.0/16").value(), {}});
  ASSERT_FALSE(choice.has_value());
  EXPECT_NE(choice.error().message().find("wanted one in 10.2.0.0/16"), std::string::npos);
}

TEST(ChooseGid, OfSeveralAddressesTheOneClosestToThePeerIsChosen) {
  std::vector<GidEntry> entries = Usual();
  entries.push_back({6, Of("10.2.0.7"), GidType::kRoceV2, 3});
  EXPECT_EQ(Chosen(entries, {}), 3u);
  EXPECT_EQ(Chosen(entries, {-1, {}, IpAddress::Parse("10.2.0.9").value()}), 6u);
  EXPECT_EQ(Chosen(entries, {-1, {}, IpAddress::Parse("fd00::9").value()}), 4u);
}

TEST(ChooseGid, AnEmptyTableIsSaidToBe) {
  const auto choice = ChooseGid({}, {});
  ASSERT_FALSE(choice.has_value());
  EXPECT_EQ(choice.error().message(), "no address of the port fits: wanted any, there are: none");
}

TEST(ChooseGid, OnInfinibandTheFirstEntryIsTaken) {
  EXPECT_EQ(Chosen({{0, Of("fe80::2"), GidType::kInfiniband, 0}, {1, Of("fe80::3"), GidType::kInfiniband, 0}}, {}), 0u);
}

TEST(Subnet, WhatIsNoNetworkIsRefusedWithTheText) {
  for (const char* text :
       {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "ten/8", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129"}) {
    const auto subnet = Subnet::Parse(text);
    ASSERT_FALSE(subnet.has_value()) << text;
    EXPECT_NE(subnet.error().message().find(text), std::string::npos);
  }
}

TEST(Subnet, HasWhatSharesItsBits) {
  const Subnet subnet = Subnet::Parse("10.64.0.0/10").value();
  EXPECT_TRUE(subnet.Has(IpAddress::Parse("10.127.255.255").value()));
  EXPECT_FALSE(subnet.Has(IpAddress::Parse("10.128.0.0").value()));
  EXPECT_FALSE(subnet.Has(IpAddress::Parse("fd00::1").value()));
  EXPECT_TRUE(Subnet{}.Has(IpAddress::Parse("fd00::1").value()));
  EXPECT_FALSE(Subnet::Parse("0.0.0.0/0").value().Has(IpAddress::Parse("fd00::1").value()));
}

}  // namespace
}  // namespace weir::transport::rdma
