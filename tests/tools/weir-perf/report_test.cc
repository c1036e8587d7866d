#include "tools/weir-perf/report.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/weir-perf/doctor.h"
#include "tools/weir-perf/levels.h"

namespace weir::tools {
namespace {

std::string Printed(const Sheet& sheet, PerfOutput output) {
  std::ostringstream out;
  PrintSheet(sheet, output, &out);
  return out.str();
}

TEST(PerfReport, SaysTheSameAsTableJsonAndCsv) {
  const Sheet sheet = SizesSheet({{65536, 20e9, 38146.97, 0.25, 18.5, 60.25, 900}});
  EXPECT_EQ(Printed(sheet, PerfOutput::kTable),
            "size  Gbit/s  messages/s  CPU s/GB  p50 us  p99 us  pings\n"
            " 64K  20.000       38147     0.250    18.5    60.2    900\n");
  EXPECT_EQ(
      Printed(sheet, PerfOutput::kJson),
      "[\n  {\"size\": 65536, \"bits_per_second\": 20000000000, \"messages_per_second\": 38147.0, "
      "\"cpu_seconds_per_gb\": 0.2500, \"latency_p50_us\": 18.50, \"latency_p99_us\": 60.25, \"pings\": 900}\n]\n");
  EXPECT_EQ(Printed(sheet, PerfOutput::kCsv),
            "size,bits_per_second,messages_per_second,cpu_seconds_per_gb,latency_p50_us,latency_p99_us,pings\n"
            "65536,20000000000,38147.0,0.2500,18.50,60.25,900\n");
}

TEST(PerfReport, ACapIsComparedWithWhatWasSent) {
  EXPECT_NE(
      Printed(PacingSheet({{1e6, 0.99e6, 2.5}}), PerfOutput::kTable).find("1.0           0.990    -1.00        2.5"),
      std::string::npos);
}

TEST(PerfReport, WhatNeverCameIsSaidSo) {
  EXPECT_EQ(Printed(LevelsSheet({{1e9, 95.5, -1, 99, 3, 12}}), PerfOutput::kJson),
            "[\n  {\"run\": 1, \"link_bits_per_second\": 1000000000, \"high_percent\": 95.50, \"high_after_ms\": -1.0, "
            "\"recovered_percent\": 99.00, \"recovered_after_ms\": 3.0, \"away_ms\": 12.0}\n]\n");
  EXPECT_NE(Printed(LevelsSheet({{1e9, 95.5, -1, 99, 3, 12}}), PerfOutput::kTable).find("never"), std::string::npos);
}

TEST(PerfReport, TextIsQuotedWhereverItEnds) {
  Sheet sheet;
  sheet.title = "a<b";
  sheet.columns = {{"what", "what"}};
  sheet.rows = {{Text("a, \"b\"\\\n<i>&")}};
  EXPECT_EQ(Printed(sheet, PerfOutput::kJson), "[\n  {\"what\": \"a, \\\"b\\\"\\\\\\u000a<i>&\"}\n]\n");
  EXPECT_EQ(Printed(sheet, PerfOutput::kCsv), "what\n\"a, \"\"b\"\"\\\n<i>&\"\n");
  std::ostringstream html;
  PrintHtml({sheet}, "x > \"y\"", &html);
  EXPECT_NE(html.str().find("<h2>a&lt;b</h2>"), std::string::npos);
  EXPECT_EQ(html.str().find("<i>"), std::string::npos);
}

TEST(PerfReport, TheHtmlPageHasAChartAndNeedsNoOtherFile) {
  std::ostringstream html;
  PrintHtml({SizesSheet({{1024, 1e9, 1, 1, 1, 1}, {2048, 2e9, 1, 1, 1, 1}})}, "pair", &html);
  EXPECT_NE(html.str().find("<polyline"), std::string::npos);
  for (const char* reference : {"src=", "href=", "url(", "<script", "@import"}) {
    EXPECT_EQ(html.str().find(reference), std::string::npos) << reference;
  }
}

TEST(PerfReport, AnUnknownFormatIsRefused) {
  EXPECT_EQ(PerfOutputFromName("xml").error().code(), StatusCode::kInvalidArgument);
}

TEST(PerfDoctor, ABackendWithSomethingMissingIsNotUsable) {
  Diagnosis diagnosis{"some", "for a test", {{Finding::Weight::kGood, "card", "there", ""}}};
  EXPECT_TRUE(diagnosis.usable());
  diagnosis.findings.push_back({Finding::Weight::kAdvice, "MTU", "1500", "raise it"});
  EXPECT_TRUE(diagnosis.usable());
  diagnosis.findings.push_back({Finding::Weight::kMissing, "memlock", "64 KiB", "ulimit -l unlimited"});
  EXPECT_FALSE(diagnosis.usable());
  std::ostringstream out;
  PrintDoctor({diagnosis}, &out);
  EXPECT_EQ(out.str(),
            "some: not usable here (for a test)\n  + card: there\n  ~ MTU: 1500\n      raise it\n"
            "  - memlock: 64 KiB\n      ulimit -l unlimited\n");
  EXPECT_EQ(
      Printed(DoctorSheet({diagnosis}), PerfOutput::kCsv).find("some,no,missing,memlock,64 KiB,ulimit -l unlimited"),
      Printed(DoctorSheet({diagnosis}), PerfOutput::kCsv).rfind("some,no"));
}

TEST(PerfDoctor, TcpIsUsableOnEveryHostAndUnknownInterfacesAreNot) {
  BackendSettings settings;
  settings.loopback = true;
  EXPECT_TRUE(Diagnose(settings).front().usable());
  settings.interfaces = "=none-of-this-name";
  const auto diagnosis = Diagnose(settings).front();
  EXPECT_FALSE(diagnosis.usable());
  EXPECT_NE(diagnosis.findings.front().found.find("none-of-this-name"), std::string::npos);
}

TEST(PerfBackends, AreFoundByNameAndOthersRefusedWithThoseThereAre) {
  ASSERT_TRUE(FindBackend("tcp").has_value());
  ASSERT_TRUE(FindBackend("dpdk").has_value());
  EXPECT_EQ((*FindBackend("tcp"))->name, "tcp");
  const auto none = FindBackend("pigeon");
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().message().find("allowed: tcp"), std::string::npos) << none.error().message();
}

TEST(PerfBackends, WhatIsNoOptionIsRefused) {
  BackendSettings settings;
  settings.options = *transport::KeyValues::Parse("--options", "a=1");
  settings.loopback = true;
  EXPECT_EQ(FindBackend("dpdk").value()->make(settings).error().code(), StatusCode::kInvalidArgument) << "nor there";
  EXPECT_EQ(FindBackend("tcp").value()->make(settings).error().code(), StatusCode::kInvalidArgument) << "a is no key";
  EXPECT_EQ(FindBackend("rdma").value()->make(settings).error().code(), StatusCode::kInvalidArgument) << "nor there";
  for (const auto& [key, value] :
       {std::pair("gid", "256"), {"window_kb", "3"}, {"classes", "160;x"}, {"classes", "160;300"}}) {
    settings.options = *transport::KeyValues::Parse("--options", std::string(key) + "=" + value);
    const auto made = FindBackend("rdma").value()->make(settings);
    ASSERT_FALSE(made.has_value()) << key;
    EXPECT_NE(made.error().message().find(std::string("--options: ") + key), std::string::npos)
        << made.error().message();
  }
}

}  // namespace
}  // namespace weir::tools
