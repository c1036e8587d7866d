#include "agents/nccl/lane_coflows.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::nccl {
namespace {

struct LaneCoflowsTest : testing::Test {
  static CoflowKey Key(std::uint64_t sequence, Function function = Function::kAllReduce) {
    return {0xabc, sequence, 0, function, Attribution::kProfiler};
  }
  /// One coflow from beginning to end; what was expected of it.
  Bytes Run(std::uint64_t sequence, Bytes estimate, Bytes real, Function function = Function::kAllReduce) {
    Bytes expected = estimate;
    EXPECT_TRUE(coflows->Begin(Key(sequence, function), &expected));
    coflows->Add(Key(sequence, function), real / 2);
    coflows->Add(Key(sequence, function), real - real / 2);
    return expected;
  }

  std::unique_ptr<LaneCoflows> coflows = std::make_unique<LaneCoflows>();
};

TEST_F(LaneCoflowsTest, OneConnectionIsTheFirst) {
  Bytes expected = 1000;
  EXPECT_TRUE(coflows->Begin(Key(1), &expected));
  EXPECT_FALSE(coflows->Begin(Key(1), &expected));
  EXPECT_TRUE(coflows->Begin(Key(2), &expected));
  EXPECT_FALSE(coflows->Begin(Key(1), &expected));
  EXPECT_EQ(expected, 1000u);
}

TEST_F(LaneCoflowsTest, AnEstimateIsCorrectedByTheOneBeforeTheLast) {
  EXPECT_EQ(Run(1, 1000, 700), 1000u);
  EXPECT_EQ(Run(2, 1000, 700), 1000u);
  EXPECT_EQ(Run(3, 1000, 700), 700u);
  EXPECT_EQ(Run(4, 1000, 800), 700u);
  EXPECT_EQ(Run(5, 1000, 800), 700u);
  EXPECT_EQ(Run(6, 1000, 800), 800u);
}

TEST_F(LaneCoflowsTest, KindsAreCorrectedEachByItsOwn) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    Run(i, 1000, 700);
    Run(i, 1000, 300, Function::kBroadcast);
    Run(100 + i, 2000, 1500);
  }
  EXPECT_EQ(Run(3, 1000, 1), 700u);
  EXPECT_EQ(Run(3, 1000, 1, Function::kBroadcast), 300u);
  EXPECT_EQ(Run(103, 2000, 1), 1500u);
}

TEST_F(LaneCoflowsTest, WhatWasForgottenIsNotCounted) {
  for (std::uint64_t i = 0; i < 10'000; ++i) Run(i, 1000, 700);
  coflows->Add(Key(1), 5000);
  EXPECT_EQ(Run(10'000, 1000, 700), 700u);
}

}  // namespace
}  // namespace weir::nccl
