// A program of its own, because it counts every allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/scheduler/live/churn.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* Allocate(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) {
    return memory;
  }
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) {
  return Allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return Allocate(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace weir::scheduler {
namespace {

TEST(LiveAllocations, TheCounterCounts) {
  const std::uint64_t before = allocations;
  const std::vector<int> memory(3);
  EXPECT_EQ(allocations, before + 1);
}

TEST(LiveAllocations, RunningAllocatesNothing) {
  for (const LiveRates rates : {LiveRates::kGreedy, LiveRates::kMaxMin}) {
    Churn churn(200, 1000, rates, 1);
    std::uint64_t most = 0;
    for (int i = 0; i < 5000; ++i) {
      churn.Prepare();
      const std::uint64_t before = allocations;
      churn.Apply();
      most = std::max<std::uint64_t>(most, allocations - before);
    }
    EXPECT_EQ(most, 0u);
    const std::uint64_t before = allocations;
    churn.live().Recompute();
    EXPECT_EQ(allocations, before);
  }
}

}  // namespace
}  // namespace weir::scheduler
