#include "transport/tcp/interfaces.h"

#include <gtest/gtest.h>

namespace weir::transport {
namespace {

Interface Of(const char* name, const char* address) {
  return {name, 1, *IpAddress::Parse(address)};
}

const std::vector<Interface> kHost = {Of("lo", "127.0.0.1"), Of("lo", "::1"),           Of("docker0", "172.17.0.1"),
                                      Of("eth0", "fe80::1"), Of("eth0", "2001:db8::1"), Of("eth0", "10.0.0.1"),
                                      Of("eth1", "fe80::2"), Of("eth1", "2001:db8::2"), Of("eth10", "10.0.1.1")};

std::string Chosen(const std::vector<Interface>& found, std::string_view rule, std::string_view family = "") {
  const auto chosen = SelectInterfaces(found, rule, family);
  if (!chosen) return std::string(StatusCodeName(chosen.error().code()));
  std::string text;
  for (const Interface& one : *chosen) text += (text.empty() ? "" : " ") + one.name + "=" + one.address.ToString();
  return text;
}

TEST(SelectInterfaces, WithoutARuleTakesAllButDockerAndLoopback) {
  EXPECT_EQ(Chosen(kHost, ""), "eth0=10.0.0.1 eth1=2001:db8::2 eth10=10.0.1.1");
}

TEST(SelectInterfaces, WithoutARulePrefersInfiniband) {
  auto found = kHost;
  found.push_back(Of("ib0", "10.9.0.1"));
  EXPECT_EQ(Chosen(found, ""), "ib0=10.9.0.1");
}

TEST(SelectInterfaces, FallsBackToDockerThenLoopback) {
  EXPECT_EQ(Chosen({kHost[0], kHost[2]}, ""), "docker0=172.17.0.1");
  EXPECT_EQ(Chosen({kHost[0], kHost[1]}, ""), "lo=127.0.0.1");
  EXPECT_EQ(Chosen({}, ""), "not found");
}

TEST(SelectInterfaces, ARuleIsPrefixesUnlessItSaysWholeNames) {
  EXPECT_EQ(Chosen(kHost, "eth1"), "eth1=2001:db8::2 eth10=10.0.1.1");
  EXPECT_EQ(Chosen(kHost, "=eth1"), "eth1=2001:db8::2");
  EXPECT_EQ(Chosen(kHost, "=eth10,lo"), "lo=127.0.0.1 eth10=10.0.1.1");
  EXPECT_EQ(Chosen(kHost, "doc,,lo,"), "lo=127.0.0.1 docker0=172.17.0.1");
}

TEST(SelectInterfaces, ACaretExcludes) {
  EXPECT_EQ(Chosen(kHost, "^eth,docker"), "lo=127.0.0.1");
  EXPECT_EQ(Chosen(kHost, "^=eth1,lo,docker0"), "eth0=10.0.0.1 eth10=10.0.1.1");
}

TEST(SelectInterfaces, TheFamilyNarrows) {
  EXPECT_EQ(Chosen(kHost, "eth", "AF_INET6"), "eth0=2001:db8::1 eth1=2001:db8::2");
  EXPECT_EQ(Chosen(kHost, "=eth1", "AF_INET"), "not found");
  EXPECT_EQ(Chosen(kHost, "eth", "inet"), "invalid argument");
}

TEST(SelectInterfaces, AnErrorNamesTheRuleAndWhatThereIs) {
  const auto chosen = SelectInterfaces(kHost, "bond0", "AF_INET");
  ASSERT_FALSE(chosen.has_value());
  EXPECT_NE(chosen.error().message().find("\"bond0\" with AF_INET"), std::string::npos) << chosen.error().message();
  EXPECT_NE(chosen.error().message().find("eth0 (10.0.0.1)"), std::string::npos) << chosen.error().message();
}

TEST(SelectInterfaces, TakesAtMostItsLimit) {
  std::vector<Interface> many;
  many.reserve(100);
  for (int i = 0; i < 100; ++i) many.push_back(Of(("eth" + std::to_string(i)).c_str(), "10.0.0.1"));
  EXPECT_EQ(SelectInterfaces(many, "", "")->size(), kMaxInterfaces);
}

TEST(ListInterfaces, FindsLoopback) {
  const auto found = ListInterfaces();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(Chosen(*found, "=lo", "AF_INET"), "lo=127.0.0.1");
}

TEST(IsWithinHost, AnAddressOfTheHostIsWhicheverInterfaceHasIt) {
  for (const char* own : {"10.0.0.1", "10.0.1.1", "2001:db8::2", "172.17.0.1", "127.0.0.1", "127.0.0.9", "::1"}) {
    EXPECT_TRUE(IsWithinHost(kHost, *IpAddress::Parse(own))) << own;
  }
  for (const char* other : {"10.0.0.2", "2001:db8::3", "fe80::1", "fe80::9"}) {
    EXPECT_FALSE(IsWithinHost(kHost, *IpAddress::Parse(other))) << other;
  }
}

TEST(IsWithinHost, WithoutInterfacesOnlyLoopbackIs) {
  EXPECT_TRUE(IsWithinHost({}, *IpAddress::Parse("127.0.0.1")));
  EXPECT_FALSE(IsWithinHost({}, *IpAddress::Parse("10.0.0.1")));
}

}  // namespace
}  // namespace weir::transport
