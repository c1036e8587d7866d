#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace weir::scheduler {

/// A short sequence inside a ChunkPool. Starts empty and without memory.
struct Chunk {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  std::uint32_t capacity = 0;
};

/// Many short sequences in one array. Capacities are powers of two; a chunk that is given back is used again for the
/// next one of its capacity, so once the pool has seen its largest use it allocates no more. Spans into it are valid
/// until the next Append or Insert on any of its chunks. Thread: one at a time.
template <typename T>
class ChunkPool {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) >= sizeof(std::uint32_t), "a free chunk holds a link");

 public:
  ChunkPool() { free_.fill(kNone); }

  /// Memory for so many elements, counted with the slack of every chunk; more are still possible, with an allocation.
  void Reserve(std::size_t elements) { data_.reserve(elements); }

  std::span<T> Of(const Chunk& chunk) { return {data_.data() + chunk.begin, chunk.size}; }
  std::span<const T> Of(const Chunk& chunk) const { return {data_.data() + chunk.begin, chunk.size}; }

  void Append(Chunk* chunk, const T& value) {
    if (chunk->size == chunk->capacity) {
      Grow(chunk);
    }
    data_[chunk->begin + chunk->size++] = value;
  }

  /// At most O(size) elements move.
  void Insert(Chunk* chunk, std::size_t at, const T& value) {
    Append(chunk, value);
    const auto all = Of(*chunk);
    std::copy_backward(all.begin() + static_cast<std::ptrdiff_t>(at), all.end() - 1, all.end());
    all[at] = value;
  }

  void Erase(Chunk* chunk, std::size_t at, std::size_t count) {
    const auto all = Of(*chunk);
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(at + count), all.end(),
              all.begin() + static_cast<std::ptrdiff_t>(at));
    chunk->size -= static_cast<std::uint32_t>(count);
  }

  void Release(Chunk* chunk) {
    if (chunk->capacity > 0) {
      std::uint32_t& head = free_[ClassOf(chunk->capacity)];
      std::memcpy(static_cast<void*>(&data_[chunk->begin]), &head, sizeof head);
      head = chunk->begin;
    }
    *chunk = {};
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kSmallest = 2;

  static std::size_t ClassOf(std::uint32_t capacity) { return static_cast<std::size_t>(std::countr_zero(capacity)); }

  Chunk Take(std::uint32_t capacity) {
    std::uint32_t& head = free_[ClassOf(capacity)];
    Chunk chunk{head, 0, capacity};
    if (head != kNone) {
      std::memcpy(&head, static_cast<const void*>(&data_[chunk.begin]), sizeof head);
    } else {
      chunk.begin = static_cast<std::uint32_t>(data_.size());
      data_.resize(data_.size() + capacity);
    }
    return chunk;
  }

  void Grow(Chunk* chunk) {
    Chunk larger = Take(std::max(kSmallest, chunk->capacity * 2));
    larger.size = chunk->size;
    std::ranges::copy(Of(*chunk), data_.begin() + larger.begin);
    Release(chunk);
    *chunk = larger;
  }

  std::vector<T> data_;
  std::array<std::uint32_t, 32> free_;  ///< First free chunk of each capacity, by its logarithm.
};

}  // namespace weir::scheduler
