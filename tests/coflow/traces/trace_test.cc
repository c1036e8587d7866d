#include "coflow/traces/trace.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace weir::traces {
namespace {

using Ports = std::vector<std::uint32_t>;

Ports Sorted(Ports ports) {
  SortDistinct(&ports);
  return ports;
}

TEST(SortDistinct, LeavesEachPortOnceInOrder) {
  EXPECT_EQ(Sorted({}), Ports());
  EXPECT_EQ(Sorted({0}), Ports({0}));
  EXPECT_EQ(Sorted({3, 1, 3, 0, 1}), Ports({0, 1, 3}));
  EXPECT_EQ(Sorted({UINT32_MAX, 7, UINT32_MAX}), Ports({7, UINT32_MAX}));
}

TEST(SortDistinct, FewPortsOfManyAndManyOfFewAreTreatedAlike) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    std::mt19937_64 random(seed);
    const std::uint64_t limit = std::uint64_t{1} << (1 + random() % 32);
    Ports ports(1 + random() % 300);
    for (std::uint32_t& port : ports) {
      port = static_cast<std::uint32_t>(random() % limit);
    }
    const std::set<std::uint32_t> distinct(ports.begin(), ports.end());
    ASSERT_EQ(Sorted(ports), Ports(distinct.begin(), distinct.end())) << "seed " << seed;
  }
}

}  // namespace
}  // namespace weir::traces
