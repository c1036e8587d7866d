#include "transport/key_values.h"

#include <gtest/gtest.h>

#include <array>

#include "transport/dpdk/settings.h"

namespace weir::transport {
namespace {

TEST(KeyValues, AreReadAndWhatIsNoneIsRefused) {
  const auto parsed = KeyValues::Parse("--options", "a=1,b=x=y");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->Text("b"), "x=y");
  EXPECT_EQ(parsed->Text("c"), "");
  EXPECT_TRUE(parsed->Has("a"));
  EXPECT_EQ(*parsed->Number("a", 7, 0, 9), 1u);
  EXPECT_EQ(*parsed->Number("c", 7, 0, 9), 7u);
  for (const char* text : {"a", "a=", "=1", "a=1,a=2", ",", "a=1,,b=2"}) {
    EXPECT_FALSE(KeyValues::Parse("--options", text).has_value()) << text;
  }
  for (const char* number : {"x", "10", "-1", "1 ", "99999999999999999999"}) {
    const auto one = KeyValues::Parse("--options", std::string("a=") + number);
    ASSERT_TRUE(one.has_value()) << number;
    EXPECT_FALSE(one->Number("a", 7, 0, 9).has_value()) << number;
  }
}

TEST(KeyValues, ErrorsNameTheSourceTheKeyAndWhatIsAllowed) {
  constexpr std::array<std::string_view, 2> kKeys{"a", "b"};
  const auto parsed = KeyValues::Parse("WEIR_DPDK", "c=10");
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->AllowOnly(kKeys).message(), "WEIR_DPDK: found \"c\", allowed: a, b");
  EXPECT_EQ(parsed->Number("c", 0, 1, 9).error().message(), "WEIR_DPDK: c: found \"10\", allowed: 1 to 9");
}

TEST(DpdkSettings, AreReadAndWhatIsMissingOrWrongIsNamed) {
  const auto read = [](const char* text) { return DpdkOptionsFrom(*KeyValues::Parse("WEIR_DPDK", text)); };
  const auto good =
      read("device=net_memif0;role=client,address=10.9.0.1/24,gateway=10.9.0.254,mtu=1500,neighbours=ask");
  ASSERT_TRUE(good.has_value()) << good.error().message();
  EXPECT_EQ(good->port.device, "net_memif0,role=client");
  EXPECT_EQ(good->endpoint.address.ToString(), "10.9.0.1");
  EXPECT_EQ(good->endpoint.prefix_bits, 24u);
  EXPECT_EQ(good->endpoint.gateway_address.ToString(), "10.9.0.254");
  EXPECT_EQ(good->port.mtu, 1500u);
  EXPECT_TRUE(good->endpoint.ask_neighbours);
  for (const auto& [text, said] :
       {std::pair("address=10.9.0.1", "WEIR_DPDK: dpdk needs device="),
        {"device=x,address=10.9.0.1/0", "WEIR_DPDK: dpdk needs device="},
        {"device=x,address=10.9.0.1,mac=02:00", "WEIR_DPDK: mac: found \"02:00\", allowed: six bytes"},
        {"device=x,address=10.9.0.1,gateway=me", "WEIR_DPDK: gateway: found \"me\", allowed: an address, or six bytes"},
        {"device=x,address=10.9.0.1,neighbours=no", "WEIR_DPDK: neighbours: found \"no\", allowed: ask, handle"},
        {"device=x,address=10.9.0.1,mtu=1", "WEIR_DPDK: mtu: found \"1\", allowed: 562 to 9000"}}) {
    const auto wrong = read(text);
    ASSERT_FALSE(wrong.has_value()) << text;
    EXPECT_EQ(wrong.error().message().rfind(said, 0), 0u) << wrong.error().message();
  }
}

}  // namespace
}  // namespace weir::transport
