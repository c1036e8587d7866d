#include "scheduler/sim/coflowsim/fair_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <random>
#include <vector>

namespace weir::scheduler::coflowsim {
namespace {

constexpr std::uint64_t kSeeds = 2000;

/// A step of up to forty senders; some flows have ended, some end in it.
struct RandomStep {
  explicit RandomStep(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto bytes = [&] { return random() % 4 == 0 ? 0.0 : static_cast<double>(random() % 1'000'003) / 7; };
    const auto count = static_cast<std::uint32_t>(1 + random() % 40);
    for (std::uint32_t s = 0; s < count; ++s) {
      senders.push_back(s);
      up.push_back(bytes());
      for (std::size_t lane = 0; lane < FairStep::kLanes; ++lane) {
        remaining.push_back(bytes());
      }
      if (random() % 5 != 0) {
        rows.push_back({s, 0xFF});
      }
    }
    for (std::size_t lane = 0; lane < FairStep::kLanes; ++lane) {
      step.down[lane] = bytes();
      step.left[lane] = bytes();
    }
  }

  /// The bits of all that a step writes.
  std::vector<std::uint64_t> After(FairKernel kernel) {
    step.rows = rows;
    step.senders = senders.data();
    step.up = up.data();
    step.remaining = remaining.data();
    kernel(&step);
    std::vector<std::uint64_t> bits;
    bits.reserve(remaining.size() + 2 * FairStep::kLanes);
    for (const double value : remaining) {
      bits.push_back(std::bit_cast<std::uint64_t>(value));
    }
    for (std::size_t lane = 0; lane < FairStep::kLanes; ++lane) {
      bits.push_back(std::bit_cast<std::uint64_t>(step.left[lane]));
      bits.push_back(step.ending[lane] > 0 ? 1 : 0);
    }
    return bits;
  }

  std::vector<std::uint32_t> senders;
  std::vector<double> up, remaining;
  std::vector<FairStep::Row> rows;
  FairStep step;
};

TEST(FairKernels, AllThatTheProcessorCanRunLeaveTheSameBits) {
  ASSERT_FALSE(FairKernels().empty());
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto expected = RandomStep(seed).After(FairKernels().back());
    for (const FairKernel kernel : FairKernels()) {
      ASSERT_EQ(RandomStep(seed).After(kernel), expected) << "seed " << seed;
    }
  }
}

TEST(FairKernels, AFlowMovesTheLeastOfItsPortsAndOfWhatItHas) {
  for (const FairKernel kernel : FairKernels()) {
    const std::array<std::uint32_t, 1> senders = {0};
    const std::array<double, 1> up = {100};
    std::array<double, FairStep::kLanes> remaining = {1000, 1000, 30, 100, 0, 0, 0, 0};
    const std::array<FairStep::Row, 1> rows = {{{0, 0xFF}}};
    FairStep step;
    step.rows = rows;
    step.senders = senders.data();
    step.up = up.data();
    step.remaining = remaining.data();
    const std::array<double, FairStep::kLanes> down = {200, 50, 200, 200, 200, 200, 200, 200};
    std::copy(down.begin(), down.end(), step.down);
    std::copy(remaining.begin(), remaining.end(), step.left);
    kernel(&step);
    EXPECT_EQ(remaining, (std::array<double, FairStep::kLanes>{900, 950, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(step.left[0], 900);
    EXPECT_EQ(step.left[1], 950);
    EXPECT_EQ(step.ending[0], 0);
    EXPECT_EQ(step.ending[2], 30);
    EXPECT_EQ(step.ending[3], 100);
    EXPECT_EQ(step.ending[4], 0);
  }
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
