#include "coflow/traces/terra.h"

#include <gtest/gtest.h>

#include <sstream>

#include "coflow/traces/flow_list_readers.h"
#include "tests/coflow/traces/trace_text.h"

namespace weir::traces {
namespace {

TEST(TerraReader, AStageIsACoflowAfterThoseOfItsSources) {
  const auto trace = Read(
      "# a job\n4 6 11\nMap1 1 HK\nMap4 2 BA NY\nReducer3 2 HK NY\nReducer2 1 NY\n"
      "3\nMap1 Reducer2 10\nMap4 Reducer2 8\nReducer2 Reducer3 6 1.5\n");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->ports, 3u);  // HK, BA, NY, as they are met
  ASSERT_EQ(trace->coflows.size(), 2u);
  const TraceCoflow& first = trace->coflows[0];
  EXPECT_EQ(first.job, 7u);
  EXPECT_EQ(first.arrival, 11 * kSecond);
  EXPECT_EQ(first.deadline, 0);
  EXPECT_TRUE(first.after.empty());
  // What goes from NY to NY is no traffic.
  EXPECT_EQ(first.flows, (std::vector<TraceFlow>{{0, 2, 10 * kMegabyte}, {1, 2, 4 * kMegabyte}}));
  const TraceCoflow& second = trace->coflows[1];
  EXPECT_EQ(second.after, std::vector<std::uint64_t>{first.id});
  EXPECT_EQ(second.flows, (std::vector<TraceFlow>{{2, 0, 3 * kMegabyte}}));
  EXPECT_EQ(second.deadline, 1500 * kMillisecond);
}

TEST(TerraReader, TasksOfOneSiteAreOneEnd) {
  const auto trace = Read("2 0 0\nA 3 X X Y\nB 2 Z Z\n1\nA B 6\n");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->coflows[0].flows, (std::vector<TraceFlow>{{0, 2, 4 * kMegabyte}, {1, 2, 2 * kMegabyte}}));
}

TEST(TerraReader, WhatStaysInASiteHandsItsDependenciesOn) {
  const auto trace = Read("4 0 0\nA 1 X\nB 1 Y\nC 1 Y\nD 1 Z\n3\nA B 1\nB C 1\nC D 1\n");
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_EQ(trace->coflows.size(), 2u);
  EXPECT_EQ(trace->coflows[1].after, std::vector<std::uint64_t>{trace->coflows[0].id});
}

TEST(TerraReader, LineEndsOfWindowsReadTheSame) {
  EXPECT_EQ(Read("2 0 0\nA 1 X\nB 1 Y\n1\nA B 1\n")->coflows,
            Read("2 0 0\r\nA 1 X\r\nB 1 Y\r\n1\r\nA B 1\r\n")->coflows);
}

TEST(TerraReader, EachKindOfBadInputHasItsOwnMessage) {
  const std::string two = "2 0 0\nA 1 X\nB 1 Y\n";
  EXPECT_EQ(Refusal("#\n"), "t:1: the file ends before the first job");
  EXPECT_EQ(Refusal("0 1 0\n"), "t:1: field 1 (stages): found \"0\", allowed: a whole number from 1 to 4096");
  EXPECT_EQ(Refusal("1 -1 0\n"),
            "t:1: field 2 (job id): found \"-1\", allowed: a whole number from 0 to 18446744073709551614");
  EXPECT_EQ(Refusal("1 1 1e3\n"),
            "t:1: field 3 (arrival in s): found \"1e3\", allowed: a whole number from 0 to 315360000");
  EXPECT_EQ(Refusal("# x\n1 1 0 4\n"),
            "t:2: field 4 (after the last field): found \"4\", allowed: the end of the line");
  EXPECT_EQ(Refusal("2 1 0\nA 1 X\n"), "t:2: the file ends inside a job, where a stage is due; it is cut short");
  EXPECT_EQ(Refusal("1 1 0\nA 2 X\n"),
            "t:2: field 4 (site): found the end of the line, allowed: a site for each of the 2 tasks");
  EXPECT_EQ(Refusal("2 1 0\nA 1 X\nA 1 X\n"),
            "t:3: field 1 (stage): found \"A\", allowed: a name that no other stage of the job has");
  EXPECT_EQ(Refusal(two), "t:3: the file ends inside a job, where the number of shuffles is due; it is cut short");
  EXPECT_EQ(Refusal(two + "1\n"), "t:4: the file ends inside a job, where a shuffle is due; it is cut short");
  EXPECT_EQ(Refusal(two + "1\nA C 1\n"), "t:5: field 2 (destination stage): found \"C\", allowed: a stage of this job");
  for (const std::string mb : {"0", "-1", "nan", "1e18"}) {
    EXPECT_EQ(Refusal(two + "1\nA B " + mb + "\n"),
              "t:5: field 3 (megabytes): found \"" + mb + "\", allowed: a number above 0 and at most 1073741824");
  }
  EXPECT_EQ(Refusal(two + "1\nA B 1 0\n"),
            "t:5: field 4 (deadline in s): found \"0\", allowed: a number above 0 and at most 315360000");
  EXPECT_EQ(Refusal(two + "2\nA B 1073741824\nA B 1\n"),
            "t:6: more than 1125899906842624 bytes from one site to another");
  EXPECT_EQ(Refusal(two + "2\nA B 1\nB A 1\n"), "t:6: the stages of job 0 wait for each other in a circle");
  EXPECT_EQ(Refusal(two + "1\nA A 1\n"), "t:5: the stages of job 0 wait for each other in a circle");
}

TEST(TerraReader, IsForReadingOnly) {
  std::ostringstream out;
  const auto trace = Read("2 0 0\nA 1 X\nB 1 Y\n1\nA B 1\n");
  const Status status = Write(*trace, Format::kTerra, &out);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
}

TEST(TerraReader, PublicTraces) {
  const auto trace = Load("terra-gaiasim/combined_traces_fb__BigBench-swan.txt");
  if (!trace && trace.error().code() == StatusCode::kNotFound) {
    GTEST_SKIP() << "Terra's traces are not in WEIR_TRACES";
  }
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->ports, 5u);
  EXPECT_EQ(trace->coflows.back().arrival, 2285 * kSecond);
  EXPECT_LE(trace->coflows.size(), 2001u);  // Of as many stages; some stay in one site.
  EXPECT_GT(trace->coflows.size(), 1500u);
}

}  // namespace
}  // namespace weir::traces
