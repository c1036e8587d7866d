#include "scheduler/rate/port_shares.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

constexpr std::uint64_t kSeeds = 2000;

/// The rooms and weights of 64 positions and those behind them, to which a kernel may write.
struct RandomRow {
  explicit RandomRow(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 72; ++i) {
      room.push_back(static_cast<double>(random() % 1'000'003) / 7);
      weight.push_back(static_cast<double>(random() % 300));
    }
    bits = random() & random() & (seed % 2 == 0 ? random() : ~std::uint64_t{0});
    rate = static_cast<double>(random() % 1'000'003) / 11;
    step = static_cast<double>(1 + random() % 3);
  }

  /// The bits of all rooms and weights.
  std::vector<std::uint64_t> After(PortShares::TakeAllKernel kernel) {
    kernel(room.data(), weight.data(), bits, rate, step);
    std::vector<std::uint64_t> all;
    for (const auto* column : {&room, &weight}) {
      for (const double value : *column) {
        all.push_back(std::bit_cast<std::uint64_t>(value));
      }
    }
    return all;
  }

  std::vector<double> room, weight;
  std::uint64_t bits = 0;
  double rate = 0;
  double step = 0;
};

TEST(PortShares, AllKernelsThatTheProcessorCanRunLeaveTheSameBits) {
  ASSERT_FALSE(PortShares::TakeAllKernels().empty());
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto expected = RandomRow(seed).After(PortShares::TakeAllKernels().back());
    for (const auto kernel : PortShares::TakeAllKernels()) {
      ASSERT_EQ(RandomRow(seed).After(kernel), expected) << "seed " << seed;
    }
  }
}

TEST(PortShares, TakenTogetherIsTakenOneByOne) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    const std::size_t positions = 1 + random() % 200;
    PortShares together;
    PortShares one_by_one;
    for (PortShares* shares : {&together, &one_by_one}) {
      shares->Open(positions);
      for (std::size_t i = 0; i < positions; ++i) {
        shares->Set(i, 1000 + static_cast<double>(i * 37 % 101), 100);
      }
    }
    while (one_by_one.FindFull() < std::numeric_limits<double>::infinity()) {
      const double share = together.FindFull();
      const std::vector<std::uint32_t> full(one_by_one.full().begin(), one_by_one.full().end());
      ASSERT_EQ(std::vector<std::uint32_t>(together.full().begin(), together.full().end()), full) << "seed " << seed;
      together.Close(full.front());
      one_by_one.Close(full.front());
      const std::size_t first = random() % positions;
      std::uint64_t bits = 0;
      for (std::size_t i = 0; i < 64 && first + i < positions; ++i) {
        if (one_by_one.weight(first + i) > 1 && random() % 2 == 0) {
          bits |= std::uint64_t{1} << i;
          one_by_one.Take(first + i, share, 1);
        }
      }
      together.TakeAll(first, bits, share, 1);
    }
  }
}

TEST(PortShares, AllKernelsSpreadBitsOverThePlacesInOrder) {
  ASSERT_FALSE(PortShares::SpreadKernels().empty());
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t bits = random();
    const std::uint64_t among = seed % 100 == 0 ? ~std::uint64_t{0} : random() & (seed % 2 == 0 ? random() : ~seed);
    std::uint64_t expected = 0;
    int next = 0;
    for (int place = 0; place < 64; ++place) {
      if ((among >> place & 1) != 0) {
        expected |= (bits >> next++ & 1) << place;
      }
    }
    for (const auto kernel : PortShares::SpreadKernels()) {
      ASSERT_EQ(kernel(bits, among), expected) << "seed " << seed;
    }
  }
}

TEST(PortShares, TakenAmongOthersIsTakenFromThosePlacesOnly) {
  PortShares shares;
  shares.Open(80);
  for (std::size_t i = 0; i < 80; ++i) {
    shares.Set(i, 10, 10);
  }
  // Of the positions 10, 12, 13 and 73 the second and the last one.
  shares.TakeAmong(10, 0b1101 | std::uint64_t{1} << 63, 0b1010, 1, 2);
  for (std::size_t i = 0; i < 80; ++i) {
    EXPECT_EQ(shares.room(i), i == 12 || i == 73 ? 9 : 10) << i;
    EXPECT_EQ(shares.weight(i), i == 12 || i == 73 ? 8 : 10) << i;
  }
}

TEST(PortShares, NothingIsTakenForNoBits) {
  PortShares shares;
  shares.Open(3);
  shares.Set(2, 6, 2);
  shares.TakeAll(2, 0, 1, 1);
  EXPECT_EQ(shares.room(2), 6);
  EXPECT_EQ(shares.FindFull(), 3);
}

}  // namespace
}  // namespace weir::scheduler
