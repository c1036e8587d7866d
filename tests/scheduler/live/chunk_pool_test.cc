#include "scheduler/live/chunk_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weir::scheduler {
namespace {

TEST(ChunkPool, ChunksKeepWhatTheyHold) {
  std::mt19937_64 random(7);  // The seed of everything below.
  ChunkPool<std::uint32_t> pool;
  std::vector<Chunk> chunks(20);
  std::vector<std::vector<std::uint32_t>> expected(chunks.size());
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    const std::size_t i = random() % chunks.size();
    const std::size_t at = random() % (expected[i].size() + 1);
    const auto position = expected[i].begin() + static_cast<std::ptrdiff_t>(at);
    switch (random() % 8) {
      case 0:
        pool.Release(&chunks[i]);
        expected[i].clear();
        break;
      case 1:
      case 2:
        if (at < expected[i].size()) {
          pool.Erase(&chunks[i], at, 1);
          expected[i].erase(position);
        }
        break;
      case 3:
      case 4:
        pool.Insert(&chunks[i], at, step);
        expected[i].insert(position, step);
        break;
      default:
        pool.Append(&chunks[i], step);
        expected[i].push_back(step);
    }
    const auto found = pool.Of(chunks[i]);
    ASSERT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()), expected[i]) << "step " << step;
  }
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto found = pool.Of(chunks[i]);
    EXPECT_EQ(std::vector<std::uint32_t>(found.begin(), found.end()), expected[i]);
  }
}

TEST(ChunkPool, AReleasedChunkIsUsedAgain) {
  ChunkPool<std::uint32_t> pool;
  Chunk first;
  for (std::uint32_t i = 0; i < 8; ++i) {
    pool.Append(&first, i);
  }
  const std::uint32_t begin = first.begin;
  pool.Release(&first);
  Chunk second;
  for (std::uint32_t i = 0; i < 8; ++i) {
    pool.Append(&second, i);
  }
  EXPECT_EQ(second.begin, begin);
}

}  // namespace
}  // namespace weir::scheduler
