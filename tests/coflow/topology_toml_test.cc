#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "coflow/topology.h"

namespace weir {
namespace {

constexpr std::string_view kTwoSites = R"([[site]]
name = "east"
[[site]]
name = "west"
[[host]]
name = "e0"
site = "east"
addresses = ["10.0.0.1"]
nic = "200 Mbit/s"
[[link]]
name = "east-west"
from = "east"
to = "west"
capacity = "100 Mbit/s"
payload = 0.9
delay = "10 ms"
)";

/// kTwoSites with the first `what` replaced by `with`.
std::string Changed(std::string_view what, std::string_view with) {
  std::string text(kTwoSites);
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

std::string Complaint(std::string_view text) {
  const auto result = Topology::FromToml(text, "t.toml");
  EXPECT_FALSE(result) << text;
  return result ? "" : result.error().message();
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void ExpectEqual(const Topology& a, const Topology& b) {
  ASSERT_EQ(a.sites().size(), b.sites().size());
  ASSERT_EQ(a.hosts().size(), b.hosts().size());
  ASSERT_EQ(a.links().size(), b.links().size());
  for (std::size_t i = 0; i < a.sites().size(); ++i) EXPECT_EQ(a.sites()[i].name, b.sites()[i].name);
  for (std::size_t i = 0; i < a.hosts().size(); ++i) {
    EXPECT_EQ(a.hosts()[i].name, b.hosts()[i].name);
    EXPECT_EQ(a.hosts()[i].site, b.hosts()[i].site);
    EXPECT_EQ(a.hosts()[i].addresses, b.hosts()[i].addresses);
    EXPECT_EQ(a.hosts()[i].out, b.hosts()[i].out);
    EXPECT_EQ(a.hosts()[i].in, b.hosts()[i].in);
  }
  for (std::size_t i = 0; i < a.links().size(); ++i) {
    EXPECT_EQ(a.links()[i].name, b.links()[i].name);
    EXPECT_EQ(a.links()[i].capacity, b.links()[i].capacity) << a.links()[i].name;
    EXPECT_EQ(a.links()[i].payload_share, b.links()[i].payload_share);
    EXPECT_EQ(a.links()[i].delay, b.links()[i].delay);
  }
}

TEST(TopologyFile, ValuesArriveInBaseUnits) {
  const Topology topology = Topology::FromToml(kTwoSites, "t.toml").value();
  const Link& wan = *topology.FindLink("east-west");
  EXPECT_DOUBLE_EQ(wan.capacity, 12.5e6);
  EXPECT_DOUBLE_EQ(wan.payload_rate(), 11.25e6);
  EXPECT_EQ(wan.delay, 10 * kMillisecond);
  const Link& nic = *topology.FindLink("e0:out");
  EXPECT_DOUBLE_EQ(nic.capacity, 25e6);
  EXPECT_DOUBLE_EQ(nic.payload_share, kDefaultPayloadShare);
  EXPECT_EQ(nic.delay, 0);
}

TEST(TopologyFile, EveryUnitOfRateIsUnderstood) {
  const std::pair<const char*, double> kRates[] = {{"8000 bit/s", 1e3},
                                                   {"8 kbit/s", 1e3},
                                                   {"8 Mbit/s", 1e6},
                                                   {"1.5 Gbit/s", 187.5e6},
                                                   {"0.8 Tbit/s", 1e11},
                                                   {"125 B/s", 125},
                                                   {"2 kB/s", 2e3},
                                                   {"2 MB/s", 2e6},
                                                   {"2 GB/s", 2e9},
                                                   {"2 KiB/s", 2048},
                                                   {"128 MiB/s", 128.0 * 1048576},
                                                   {"1 GiB/s", 1073741824},
                                                   {"8Mbit/s", 1e6},
                                                   {"1000 Tbit/s", kMaxCapacity},
                                                   {"1 kbit/s", kMinCapacity},
                                                   {"1e3 Mbit/s", 125e6}};
  for (const auto& [text, rate] : kRates) {
    const auto topology = Topology::FromToml(Changed("100 Mbit/s", text), "t.toml");
    ASSERT_TRUE(topology) << text << ": " << topology.error().message();
    EXPECT_DOUBLE_EQ(topology->FindLink("east-west")->capacity, rate) << text;
  }
}

TEST(TopologyFile, RateThatIsNoneIsRefusedWithTheAllowedForms) {
  for (const char* value : {"100", "100.5", "\"100\"", "\"Mbit/s\"", "\"100 mbit/s\"", "\"100 Mbps\"", "\"\"",
                            "\"0 Mbit/s\"", "\"-1 Mbit/s\"", "\"nan Mbit/s\"", "\"inf Mbit/s\"", "\"1e999 Mbit/s\"",
                            "\"1e308 Tbit/s\"", "\"2000 Tbit/s\"", "\"1 bit/s\"", "\"100 Mbit/s \"", "true", "[]"}) {
    const std::string message = Complaint(Changed("\"100 Mbit/s\"", value));
    EXPECT_TRUE(message.starts_with("t.toml:14: capacity = ")) << message;
    EXPECT_NE(message.find("\"100 Mbit/s\", \"1.5 Gbit/s\" or \"128 MiB/s\""), std::string::npos) << message;
  }
  EXPECT_TRUE(Complaint(Changed("nic = \"200 Mbit/s\"", "nic = 25e6")).starts_with("t.toml:9: nic = "));
}

TEST(TopologyFile, PayloadOutsideItsRangeIsRefused) {
  for (const char* value : {"0", "0.0", "-0.1", "1.0001", "\"0.9\"", "nan", "inf", "true"}) {
    const std::string message = Complaint(Changed("payload = 0.9", std::string("payload = ") + value));
    EXPECT_TRUE(message.starts_with("t.toml:15: payload = ")) << message;
    EXPECT_TRUE(message.ends_with("must be a number above 0 and at most 1")) << message;
  }
  EXPECT_TRUE(Topology::FromToml(Changed("payload = 0.9", "payload = 1"), "t.toml"));
}

TEST(TopologyFile, DelayThatIsNoneIsRefused) {
  for (const char* value : {"10", "\"10\"", "\"10 min\"", "\"-1 ms\"", "\"61 s\"", "\"nan s\"", "1979-05-27"}) {
    const std::string message = Complaint(Changed("\"10 ms\"", value));
    EXPECT_TRUE(message.starts_with("t.toml:16: delay = ")) << message;
    EXPECT_NE(message.find("(ns, us, ms, s), 0 to 60 s"), std::string::npos) << message;
  }
  const auto topology = Topology::FromToml(Changed("10 ms", "1.5 us"), "t.toml");
  EXPECT_EQ(topology->FindLink("east-west")->delay, 1500);
}

TEST(TopologyFile, UnknownKeysAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(Complaint("sites = 3\n"), "t.toml:1: unknown key \"sites\" in the file; allowed: site, host, link");
  EXPECT_EQ(Complaint(Changed("name = \"east\"", "nmae = \"east\"")),
            "t.toml:2: unknown key \"nmae\" in [[site]]; allowed: name");
  EXPECT_EQ(Complaint(Changed("nic = ", "NIC = ")),
            "t.toml:9: unknown key \"NIC\" in [[host]]; allowed: name, site, addresses, nic, payload");
  EXPECT_EQ(Complaint(Changed("delay", "latency")),
            "t.toml:16: unknown key \"latency\" in [[link]]; allowed: name, from, to, capacity, payload, delay");
}

TEST(TopologyFile, MissingKeysAreNamed) {
  EXPECT_EQ(Complaint("[[site]]\n"), "t.toml:1: \"name\" is missing");
  EXPECT_EQ(Complaint(Changed("site = \"east\"\n", "")), "t.toml:5: \"site\" is missing");
  EXPECT_EQ(Complaint(Changed("addresses = [\"10.0.0.1\"]\n", "")), "t.toml:5: \"addresses\" is missing");
  EXPECT_TRUE(Complaint(Changed("nic = \"200 Mbit/s\"\n", "")).starts_with("t.toml:5: \"nic\" is missing"));
  EXPECT_EQ(Complaint(Changed("to = \"west\"\n", "")), "t.toml:10: \"to\" is missing");
}

TEST(TopologyFile, WrongTypesAreRefused) {
  EXPECT_EQ(Complaint("site = 3\n"), "t.toml:1: \"site\" must be a list of tables, written [[site]]");
  EXPECT_EQ(Complaint("site = [3]\n"), "t.toml:1: \"site\" must be a list of tables, written [[site]]");
  EXPECT_EQ(Complaint("[site]\nname = \"east\"\n"), "t.toml:1: \"site\" must be a list of tables, written [[site]]");
  EXPECT_EQ(Complaint("[[site]]\nname = 3\n"), "t.toml:2: name = 3 must be a text that is not empty");
  EXPECT_EQ(Complaint("[[site]]\nname = \"\"\n"), "t.toml:2: name = '' must be a text that is not empty");
}

TEST(TopologyFile, NamesThatMustBeQuotedElsewhereAreRefused) {
  for (const char* name : {"a b", "a\\tb", "a\\\"b", "<b>", "\\u00fc", "a\\u0000b"}) {
    const std::string message = Complaint("[[site]]\nname = \"" + std::string(name) + "\"\n");
    EXPECT_NE(message.find("is no name for a site; allowed: 1 to 128 of"), std::string::npos) << message;
  }
}

TEST(TopologyFile, DuplicatesAreRefusedAtTheSecond) {
  EXPECT_EQ(Complaint(Changed("\"west\"", "\"east\"")), "t.toml:3: site \"east\" is defined twice");
  const std::string host = "[[host]]\nname = \"e1\"\nsite = \"east\"\naddresses = [\"10.0.0.1\"]\nnic = \"1 Gbit/s\"\n";
  EXPECT_EQ(Complaint(std::string(kTwoSites) + host),
            "t.toml:17: host \"e1\": address 10.0.0.1 belongs to host \"e0\" already");
  EXPECT_EQ(Complaint(Changed("east-west", "e0:in")), "t.toml:10: link \"e0:in\" is defined twice");
}

TEST(TopologyFile, AddressesMustBeAListOfAddresses) {
  for (const char* value : {"\"10.0.0.1\"", "[]", "3"}) {
    EXPECT_EQ(Complaint(Changed("[\"10.0.0.1\"]", value)),
              std::string("t.toml:8: addresses = ") +
                  (value[0] == '"'   ? "'10.0.0.1'"
                   : value[0] == '[' ? "[]"
                                     : "3") +
                  " must be a list of at least one address, such as [\"10.0.0.1\"]");
  }
  EXPECT_EQ(Complaint(Changed("[\"10.0.0.1\"]", "[10]")), "t.toml:8: addresses: 10 must be a text");
  EXPECT_EQ(Complaint(Changed("[\"10.0.0.1\"]", "[\"10.0.0.1/24\"]")),
            "t.toml:8: addresses: \"10.0.0.1/24\" is not an IPv4 or IPv6 address (expected for example 10.0.0.1 or "
            "fd00::1)");
}

TEST(TopologyFile, UnknownSitesAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(Complaint(Changed("to = \"west\"", "to = \"north\"")),
            "t.toml:13: to = \"north\" is not a site; defined: east, west");
  EXPECT_EQ(Complaint(Changed("site = \"east\"", "site = \"north\"")),
            "t.toml:7: site = \"north\" is not a site; defined: east, west");
  EXPECT_EQ(Complaint(Changed("to = \"west\"", "to = \"east\"")),
            "t.toml:10: link \"east-west\" leads from site \"east\" to itself");
}

TEST(TopologyFile, NothingDefinedIsRefused) {
  EXPECT_EQ(Complaint(""), "t.toml: no [[site]] is defined");
  EXPECT_EQ(Complaint("[[site]]\nname = \"a\"\n"), "t.toml: no [[host]] is defined");
}

TEST(TopologyFile, BrokenTomlIsRefusedWithItsLine) {
  EXPECT_TRUE(Complaint("[[site]]\nname = \n").starts_with("t.toml:2: not valid TOML: "));
  EXPECT_TRUE(Complaint("\xff\xfe").starts_with("t.toml:1: not valid TOML: "));
}

TEST(TopologyFile, FileThatIsNotThereIsNamed) {
  const auto result = Topology::Load("/nonexistent/t.toml");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().ToString(),
            "not found: cannot open topology file \"/nonexistent/t.toml\": No such file or directory");
  const auto directory = Topology::Load("/");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().ToString(), "not found: cannot read topology file \"/\": Is a directory");
  EXPECT_EQ(Topology::Load("/dev/zero").error().ToString(),
            "limit reached: topology file \"/dev/zero\" is larger than 67108864 bytes");
}

TEST(TopologyFile, FileOnDiskIsReadWhole) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "weir_topology_file_test.toml";
  const Topology many = Topology::BigSwitch(2000, 1e9);  // More than one read.
  std::ofstream(path) << many.ToToml();
  const auto topology = Topology::Load(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(topology) << topology.error().message();
  ExpectEqual(many, *topology);
}

TEST(TopologyFile, GeneratedTopologiesReadBackEqual) {
  const Topology kAll[] = {Topology::BigSwitch(5, BitsPerSecond(1e11 / 3)),
                           Topology::LeafSpine(3, 2, BitsPerSecond(2.5e10), BitsPerSecond(1e11)),
                           Topology::MultiSite(4, 3, BitsPerSecond(2.5e10), BitsPerSecond(123456789), 12'345'678),
                           Topology::FromToml(kTwoSites, "t.toml").value()};
  for (const Topology& topology : kAll) {
    const auto back = Topology::FromToml(topology.ToToml(), "generated");
    ASSERT_TRUE(back) << back.error().message();
    ExpectEqual(topology, *back);
    EXPECT_EQ(topology.ToToml(), back->ToToml());
  }
}

TEST(TopologyFile, ExampleOfTheDocumentationLoads) {
  const std::string page = ReadFile(std::filesystem::path(WEIR_SOURCE_DIR) / "docs/topology.md");
  const std::size_t begin = page.find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```\n", begin + 8);
  const std::string example = page.substr(begin + 8, end - begin - 8);
  const auto topology = Topology::FromToml(example, "docs/topology.md");
  ASSERT_TRUE(topology) << topology.error().message();
  const Host& from = *topology->FindHost("e1");
  const Host& to = *topology->FindHost("w0");
  const Path path = topology->PathBetween(from.id, to.id);
  ASSERT_EQ(path.links.size(), 3u);
  EXPECT_EQ(topology->link(path.links[1]).name, "east-west");
  EXPECT_EQ(path.delay, 10 * kMillisecond);
  EXPECT_EQ(topology->FindHost("e0")->addresses.size(), 2u);
}

}  // namespace
}  // namespace weir
