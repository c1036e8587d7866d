#include "coflow/traces/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "coflow/traces/reader.h"
#include "coflow/traces/transform.h"

namespace weir::traces {
namespace {

double LoadOf(const Trace& trace, const FacebookLikeOptions& options) {
  return static_cast<double>(trace.TotalBytes()) / (options.ports * options.port_rate * ToSeconds(options.span));
}

double WideShare(const Trace& trace) {
  const auto wide =
      std::count_if(trace.coflows.begin(), trace.coflows.end(), [](const auto& c) { return c.flows.size() > 50; });
  return static_cast<double>(wide) / static_cast<double>(trace.coflows.size());
}

TEST(FacebookLike, HasTheOrderOfFiguresOfThePublicTrace) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    FacebookLikeOptions options;
    options.seed = seed;
    const auto trace = GenerateFacebookLike(options);
    ASSERT_TRUE(trace) << trace.error().message();
    EXPECT_EQ(trace->coflows.size(), 526u);
    EXPECT_EQ(trace->ports, 150u);
    EXPECT_EQ(trace->coflows.front().arrival, 0);
    EXPECT_EQ(trace->coflows.back().arrival, options.span);
    EXPECT_NEAR(LoadOf(*trace, options), options.load, 0.05 * options.load);
    EXPECT_NEAR(WideShare(*trace), 0.24, 0.08);
    std::vector<Bytes> sizes;
    for (const TraceCoflow& coflow : trace->coflows) {
      Bytes bytes = 0;
      for (const TraceFlow& flow : coflow.flows) bytes += flow.bytes;
      sizes.push_back(bytes);
    }
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    Bytes largest = 0;
    for (std::size_t i = 0; i < 52; ++i) largest += sizes[i];
    EXPECT_GT(static_cast<double>(largest), 0.9 * static_cast<double>(trace->TotalBytes()));
  }
}

TEST(FacebookLike, IsAFunctionOfItsSeed) {
  FacebookLikeOptions options;
  const auto first = GenerateFacebookLike(options);
  const auto again = GenerateFacebookLike(options);
  options.seed = 2;
  const auto other = GenerateFacebookLike(options);
  ASSERT_TRUE(first && again && other);
  EXPECT_EQ(first->coflows, again->coflows);
  EXPECT_NE(first->coflows, other->coflows);
}

TEST(FacebookLike, FitsTheFacebookFormatExactly) {
  const auto trace = GenerateFacebookLike({});
  ASSERT_TRUE(trace);
  auto text = std::make_unique<std::stringstream>();
  ASSERT_TRUE(Write(*trace, Format::kFacebook, text.get()).ok());
  const auto back = LoadStream(std::move(text), "t");
  ASSERT_TRUE(back) << back.error().message();
  ASSERT_EQ(back->coflows.size(), trace->coflows.size());
  EXPECT_EQ(back->TotalBytes(), trace->TotalBytes());
  for (std::size_t i = 0; i < trace->coflows.size(); ++i) {
    EXPECT_EQ(BottleneckBytes(back->coflows[i], 150), BottleneckBytes(trace->coflows[i], 150));
  }
}

TEST(FacebookLike, LoadAndWidthAreTurnedByTheirOptions) {
  FacebookLikeOptions options;
  options.load = 1.2;
  const auto loaded = GenerateFacebookLike(options);
  ASSERT_TRUE(loaded);
  EXPECT_NEAR(LoadOf(*loaded, options), 1.2, 0.06);
  options.width = 0.1;
  const auto narrow = GenerateFacebookLike(options);
  ASSERT_TRUE(narrow);
  EXPECT_LT(WideShare(*narrow), WideShare(*loaded));
}

TEST(FacebookLike, OptionsOutOfRangeAreRefused) {
  const auto refusal = [](const FacebookLikeOptions& options) {
    const auto trace = GenerateFacebookLike(options);
    return trace ? std::string() : trace.error().message();
  };
  EXPECT_EQ(refusal({.ports = 1}), "ports: found 1, allowed: 2 to 65536");
  EXPECT_EQ(refusal({.coflows = 1}), "coflows: found 1, allowed: 2 to 1000000");
  EXPECT_EQ(refusal({.width = -1}), "width: found -1, allowed: 0.01 to 100");
  EXPECT_NE(refusal({.load = std::nan("")}).find("load: found nan"), std::string::npos);
  EXPECT_NE(refusal({.skew = 6}).find("skew: found 6"), std::string::npos);
  EXPECT_NE(refusal({.span = 0}).find("span in seconds: found 0"), std::string::npos);
  EXPECT_NE(refusal({.ports = 60'000, .coflows = 1'000'000, .width = 100}).find("flows"), std::string::npos);
}

TrainingOptions Small(Pattern pattern) {
  TrainingOptions options;
  options.pattern = pattern;
  options.ports = 6;
  options.jobs = 2;
  options.ranks = 4;
  options.iterations = 3;
  options.micro_batches = 2;
  options.bytes = 1000;
  return options;
}

TEST(Training, EachIterationWaitsForTheOneBefore) {
  for (const Pattern pattern : {Pattern::kRing, Pattern::kTree, Pattern::kAllToAll, Pattern::kServers}) {
    const auto trace = GenerateTraining(Small(pattern));
    ASSERT_TRUE(trace) << trace.error().message();
    const std::size_t steps = pattern == Pattern::kServers ? 6 : 3;
    EXPECT_EQ(trace->coflows.size(), 2 * steps);
    for (const TraceCoflow& coflow : trace->coflows) {
      const bool first = (coflow.id - 1) % steps == 0;
      EXPECT_EQ(coflow.job, (coflow.id - 1) / steps + 1);
      EXPECT_EQ(coflow.after, first ? std::vector<std::uint64_t>() : std::vector<std::uint64_t>{coflow.id - 1});
    }
  }
}

TEST(Training, RingMovesWhatTheCollectiveMoves) {
  const auto trace = GenerateTraining(Small(Pattern::kRing));
  ASSERT_TRUE(trace);
  for (const TraceCoflow& coflow : trace->coflows) {
    ASSERT_EQ(coflow.flows.size(), 4u);
    EXPECT_EQ(coflow.mappers, 4u);
    for (const TraceFlow& flow : coflow.flows) EXPECT_EQ(flow.bytes, 1500u);
  }
}

TEST(Training, PipelineSendsFollowTheirMicroBatch) {
  const auto trace = GenerateTraining(Small(Pattern::kPipeline));
  ASSERT_TRUE(trace) << trace.error().message();
  // Two jobs x three iterations x two micro-batches x three links, there and back.
  ASSERT_EQ(trace->coflows.size(), 72u);
  std::vector<TraceCoflow> job;
  for (const TraceCoflow& coflow : trace->coflows) {
    if (coflow.job == 1) job.push_back(coflow);
  }
  std::sort(job.begin(), job.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  const std::vector<std::vector<std::uint64_t>> expected = {{},  {1}, {2},    {1},     {2, 4},  {3, 5}, {3},
                                                            {7}, {8}, {7, 6}, {8, 10}, {9, 11}, {12}};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(job[i].after, expected[i]) << i + 1;
}

TEST(Training, OptionsOutOfRangeAreRefused) {
  const auto refusal = [](const TrainingOptions& options) {
    const auto trace = GenerateTraining(options);
    return trace ? std::string() : trace.error().message();
  };
  EXPECT_EQ(refusal({.ports = 4, .ranks = 5}), "ranks: found 5, allowed: 2 to 4");
  EXPECT_EQ(refusal({.jobs = 0}), "jobs: found 0, allowed: 1 to 1000000");
  EXPECT_NE(refusal({.bytes = 0}).find("bytes: found 0"), std::string::npos);
  EXPECT_NE(refusal({.period = -1}).find("period in ns"), std::string::npos);
  EXPECT_NE(refusal({.jobs = 1'000'000}).find("more than"), std::string::npos);
  EXPECT_NE(
      refusal({.pattern = Pattern::kAllToAll, .ports = 2000, .jobs = 1, .ranks = 1025, .iterations = 1}).find("1024"),
      std::string::npos);
  EXPECT_FALSE(PatternFromName("star"));
  EXPECT_EQ(*PatternFromName("ps"), Pattern::kServers);
}

}  // namespace
}  // namespace weir::traces
