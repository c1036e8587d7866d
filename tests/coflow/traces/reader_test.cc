#include "coflow/traces/reader.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/coflow/traces/trace_text.h"

namespace weir::traces {
namespace {

TEST(FacebookReader, SplitsAReducerEvenlyOverItsMappers) {
  const auto trace = Read("5 1\n7 1500 2 1 3 2 0:4.0 4:2.0\n");
  ASSERT_TRUE(trace) << trace.error().message();
  ASSERT_EQ(trace->coflows.size(), 1u);
  const TraceCoflow& coflow = trace->coflows[0];
  EXPECT_EQ(coflow.id, 7u);
  EXPECT_EQ(coflow.arrival, 1500 * kMillisecond);
  EXPECT_EQ(coflow.mappers, 2u);
  EXPECT_EQ(coflow.reducers, 2u);
  const std::vector<TraceFlow> expected = {{1, 0, 2'097'152}, {3, 0, 2'097'152}, {1, 4, 1'048'576}, {3, 4, 1'048'576}};
  EXPECT_EQ(coflow.flows, expected);
}

TEST(FacebookReader, OddBytesGoToTheFirstMappers) {
  const auto trace = Read("4 1\n1 0 3 0 1 2 1 3:1.0\n");
  ASSERT_TRUE(trace) << trace.error().message();
  EXPECT_EQ(trace->TotalBytes(), 1'048'576u);
  EXPECT_EQ(trace->coflows[0].flows[0].bytes, 349'526u);
  EXPECT_EQ(trace->coflows[0].flows[2].bytes, 349'525u);
}

TEST(FacebookReader, LineEndsOfWindowsReadTheSame) {
  const auto unix_file = Read("2 1\n1 0 1 0 1 1:1.0\n");
  const auto windows_file = Read("2 1\r\n1 0 1 0 1 1:1.0\r\n");
  ASSERT_TRUE(unix_file);
  ASSERT_TRUE(windows_file) << windows_file.error().message();
  EXPECT_EQ(unix_file->coflows, windows_file->coflows);
}

TEST(FacebookReader, EachKindOfBadInputHasItsOwnMessage) {
  EXPECT_EQ(Refusal("2 1\n1 0 1 0 1 1:nan\n"),
            "t:2: field 6 (megabytes): found \"nan\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal("2 1\n1 0 1 0 1 1:-1\n"),
            "t:2: field 6 (megabytes): found \"-1\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal("2 1\n1 0 1 0 1 1:0\n"),
            "t:2: field 6 (megabytes): found \"0\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal("2 1\n1 0 1 0 1 1:953674316406.25\n"),
            "t:2: field 6 (megabytes): found \"953674316406.25\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal("2 1\n1 0 1 2 1 1:1\n"),
            "t:2: field 4 (mapper port): found \"2\", allowed: a whole number from 0 to 1");
  EXPECT_EQ(Refusal("2 2\n1 0 1 0 1 1:1\n"),
            "t:2: the file ends after 1 coflows, its first line promises 2; it is cut short");
  EXPECT_EQ(Refusal("2 1\n1 0 1 0 2 1:1\n"),
            "t:2: field 7 (reducer): found the end of the line, allowed: port:megabytes, for example 12:48.0");
  EXPECT_EQ(Refusal("2 1\n1 0 0 1 1:1\n"),
            "t:2: field 3 (mappers): found \"0\", allowed: a whole number from 1 to 16777216");
  EXPECT_EQ(Refusal("2 2\n1 0 1 0 1 1:1\n1 5 1 0 1 1:1\n"),
            "t:3: coflow id 1 occurs twice, first on line 2; ids must be unique");
  EXPECT_EQ(
      Refusal("GIF89a\x01\n"),
      "t:1: not a trace: a trace starts with \"ports coflows\" (two numbers), \"stages job arrival\" (three) or a "
      "JSON object");
  EXPECT_EQ(Refusal(""), "t: the file is empty, not a trace");
}

TEST(SincroniaReader, ReadsExplicitFlows) {
  const auto trace = Read("5 2\n0 8 2 2 1 1 0 1 3 0 2\n1 10 1 1 1 1 4 7\n");
  ASSERT_TRUE(trace) << trace.error().message();
  const std::vector<TraceFlow> expected = {{1, 0, 1'048'576}, {3, 0, 2'097'152}};
  EXPECT_EQ(trace->coflows[0].flows, expected);
  EXPECT_EQ(trace->coflows[1].flows[0].bytes, 7u * 1'048'576);
}

TEST(SincroniaReader, EachKindOfBadInputHasItsOwnMessage) {
  const std::string good = "5 2\n0 8 2 2 1 1 0 1 3 0 2\n";
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 5 4 7\n"),
            "t:3: field 6 (source port): found \"5\", allowed: a whole number from 0 to 4");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 nan\n"),
            "t:3: field 8 (megabytes): found \"nan\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 -7\n"),
            "t:3: field 8 (megabytes): found \"-7\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 0\n"),
            "t:3: field 8 (megabytes): found \"0\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 1e18\n"),
            "t:3: field 8 (megabytes): found \"1e18\", allowed: a number above 0 and at most 1073741824");
  EXPECT_EQ(Refusal(good + "1 10 0 1 1 1 4 7\n"),
            "t:3: field 3 (flows): found \"0\", allowed: a whole number from 1 to 16777216");
  EXPECT_EQ(Refusal(good + "1 10 2 1 1 1 4 7\n"),
            "t:3: field 9 (source port): found the end of the line, allowed: a whole number from 0 to 4");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 7 8\n"),
            "t:3: field 9 (after the last flow): found \"8\", allowed: the end of the line");
  EXPECT_EQ(Refusal(good + "0 10 1 1 1 1 4 7\n"), "t:3: coflow id 0 occurs twice, first on line 2; ids must be unique");
  EXPECT_EQ(Refusal(good + "1 10 1 1 1 1 4 7\n2 10 1 1 1 1 4 7\n"),
            "t:4: more coflows than the 2 the first line promises");
  EXPECT_EQ(Refusal(good), "t:2: the file ends after 1 coflows, its first line promises 2; it is cut short");
}

TEST(JsonLines, WhatIsWrittenReadsBackTheSame) {
  Trace trace;
  trace.ports = 8;
  TraceCoflow first{.id = 1, .arrival = 5, .flows = {{0, 1, 10}, {2, 3, 20}}};
  TraceCoflow second{.id = 2,
                     .job = 9,
                     .arrival = 6,
                     .deadline = 100,
                     .weight = 2.5,
                     .size_known = false,
                     .after = {1},
                     .flows = {{7, 0, 1}}};
  CountEnds(&first);
  CountEnds(&second);
  trace.coflows = {first, second};
  std::ostringstream out;
  ASSERT_TRUE(Write(trace, Format::kWeir, &out).ok());
  const auto back = Read(out.str());
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(back->coflows, trace.coflows);
}

TEST(JsonLines, EachKindOfBadInputHasItsOwnMessage) {
  const std::string header = "{\"weir_trace\":1,\"ports\":4}\n";
  EXPECT_EQ(Refusal(header + "{\"id\":1,\"flows\":[]}\n"),
            "t:2: coflow 1 has no flows, allowed: at least one [source, destination, bytes]");
  EXPECT_EQ(Refusal(header + "{\"id\":1,\"flows\":[[0,4,1]]}\n"),
            "t:2: key \"flows: destination port\": missing or wrong, allowed: a whole number from 0 to 3");
  EXPECT_EQ(Refusal(header + "{\"id\":1,\"flows\":[[0,1,1000000000000000000]]}\n"),
            "t:2: key \"flows: bytes\": missing or wrong, allowed: a whole number from 1 to 1125899906842624");
  EXPECT_EQ(Refusal(header + "{\"id\":1,\"after\":[2],\"flows\":[[0,1,1]]}\n"),
            "t:2: coflow 1 is after coflow 2, which is not in the trace");
  EXPECT_EQ(
      Refusal(header + "{\"id\":1,\"after\":[2],\"flows\":[[0,1,1]]}\n{\"id\":2,\"after\":[1],\"flows\":[[0,1,1]]}\n"),
      "t:2: coflow 1 waits for itself through its dependencies; break the cycle in \"after\"");
  EXPECT_NE(Refusal(header + "{\"id\":1,\"flows\":[[0,1").find("may be cut short"), std::string::npos);
  EXPECT_NE(Refusal(header + "{\"id\":1,\"size\":3,\"flows\":[[0,1,1]]}\n").find("key \"size\" is not known"),
            std::string::npos);
}

TEST(JsonLines, ACoflowBehindACycleIsNotTakenForOneOnIt) {
  const std::string header = "{\"weir_trace\":1,\"ports\":4}\n";
  EXPECT_EQ(Refusal(header + "{\"id\":1,\"after\":[3],\"flows\":[[0,1,1]]}\n"
                             "{\"id\":2,\"after\":[3],\"flows\":[[0,1,1]]}\n"
                             "{\"id\":3,\"after\":[2],\"flows\":[[0,1,1]]}\n"),
            "t:4: coflow 3 waits for itself through its dependencies; break the cycle in \"after\"");
}

TEST(Writer, RefusesWhatTheFacebookFormatCannotHold) {
  Trace trace;
  trace.ports = 4;
  trace.coflows.push_back({.id = 3, .flows = {{0, 2, 100}, {1, 2, 900}}});
  CountEnds(&trace.coflows[0]);
  std::ostringstream out;
  EXPECT_EQ(Write(trace, Format::kFacebook, &out).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace weir::traces
