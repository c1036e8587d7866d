#include "coflow/ip_address.h"

#include <gtest/gtest.h>

#include <unordered_set>

namespace weir {
namespace {

IpAddress Parsed(std::string_view text) {
  return IpAddress::Parse(text).value();
}

TEST(IpAddress, BothFamiliesAreWrittenInTheirShortestForm) {
  EXPECT_EQ(Parsed("10.200.0.10").ToString(), "10.200.0.10");
  EXPECT_TRUE(Parsed("10.200.0.10").is_v4());
  EXPECT_EQ(Parsed("FD00:0:0::1").ToString(), "fd00::1");
  EXPECT_FALSE(Parsed("fd00::1").is_v4());
  EXPECT_EQ(IpAddress().ToString(), "0.0.0.0");
}

TEST(IpAddress, MappedIpv4IsTheIpv4Address) {
  EXPECT_EQ(Parsed("::ffff:10.0.0.1"), Parsed("10.0.0.1"));
  EXPECT_TRUE(Parsed("::ffff:10.0.0.1").is_v4());
  EXPECT_NE(Parsed("::10.0.0.1"), Parsed("10.0.0.1"));
}

TEST(IpAddress, WhatIsNoAddressIsRefusedWithTheText) {
  for (const std::string_view text : {"", "10.0.0", "10.0.0.256", "10.0.0.1:80", "fe80::1%eth0", "host", "1:2:3"}) {
    const auto result = IpAddress::Parse(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(result.error().message(), "\"" + std::string(text) +
                                            "\" is not an IPv4 or IPv6 address (expected for example 10.0.0.1 or "
                                            "fd00::1)");
  }
}

TEST(IpAddress, NulInTheTextIsRefused) {
  EXPECT_FALSE(IpAddress::Parse(std::string_view("10.0.0.1\0x", 10)));
}

TEST(IpAddress, LoopbackIsRecognised) {
  EXPECT_TRUE(Parsed("127.0.0.1").is_loopback());
  EXPECT_TRUE(Parsed("127.9.9.9").is_loopback());
  EXPECT_TRUE(Parsed("::1").is_loopback());
  EXPECT_FALSE(Parsed("::2").is_loopback());
  EXPECT_FALSE(Parsed("10.0.0.1").is_loopback());
  EXPECT_FALSE(Parsed("::").is_loopback());
}

TEST(IpAddress, LinkLocalIsFe80WithTenBits) {
  EXPECT_TRUE(Parsed("fe80::1").is_link_local());
  EXPECT_TRUE(Parsed("febf:ffff::1").is_link_local());
  EXPECT_FALSE(Parsed("fec0::1").is_link_local());
  EXPECT_FALSE(Parsed("fe00::1").is_link_local());
  EXPECT_FALSE(Parsed("::1").is_link_local());
  EXPECT_FALSE(Parsed("254.128.0.1").is_link_local());
}

TEST(IpAddress, OrderIsIpv4FirstThenByBytes) {
  EXPECT_LT(Parsed("255.255.255.255"), Parsed("::"));
  EXPECT_LT(Parsed("9.0.0.1"), Parsed("10.0.0.0"));
  EXPECT_GT(Parsed("fd00::2"), Parsed("fd00::1"));
}

TEST(IpAddress, SameBytesOfTwoFamiliesAreTwoKeys) {
  const std::unordered_set<IpAddress> set = {Parsed("10.0.0.1"), Parsed("a00:1::"), Parsed("::ffff:10.0.0.1")};
  EXPECT_EQ(set.size(), 2u);
  EXPECT_TRUE(set.contains(Parsed("10.0.0.1")));
}

}  // namespace
}  // namespace weir
