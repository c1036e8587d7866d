#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::scheduler {

/// Calls visit(index) for every bit that is set in `word`, the first of which has the index `base`, ascending.
template <typename Visit>
void ForBits(std::uint64_t word, std::uint32_t base, Visit&& visit) {
  for (; word != 0; word &= word - 1) {
    visit(base + static_cast<std::uint32_t>(__builtin_ctzll(word)));
  }
}

/// A matrix of bits whose rows begin at whole words. A plain value; Reset() reuses its memory. No bounds checks.
class BitRows {
 public:
  /// All clear.
  void Reset(std::size_t rows, std::size_t columns) {
    words_ = (columns + 63) / 64;
    bits_.assign(rows * words_, 0);
  }
  void ClearAll() { std::fill(bits_.begin(), bits_.end(), 0); }
  std::size_t words() const { return words_; }
  const std::uint64_t* Row(std::size_t row) const { return bits_.data() + row * words_; }
  void Set(std::size_t row, std::size_t column) { Word(row, column) |= Bit(column); }
  void Clear(std::size_t row, std::size_t column) { Word(row, column) &= ~Bit(column); }
  bool IsSet(std::size_t row, std::size_t column) const {
    return (bits_[row * words_ + column / 64] & Bit(column)) != 0;
  }
  /// How many bits of the row are also in `mask`, which has words() words.
  std::uint32_t CountIn(std::size_t row, const std::uint64_t* mask) const {
    const std::uint64_t* bits = Row(row);
    std::uint32_t count = 0;
    for (std::size_t word = 0; word < words_; ++word) {
      count += static_cast<std::uint32_t>(__builtin_popcountll(bits[word] & mask[word]));
    }
    return count;
  }
  /// How many bits of the row are set in front of `column`.
  std::uint32_t Rank(std::size_t row, std::size_t column) const {
    const std::uint64_t* bits = Row(row);
    auto count = static_cast<std::uint32_t>(__builtin_popcountll(bits[column / 64] & (Bit(column) - 1)));
    for (std::size_t word = 0; word < column / 64; ++word) {
      count += static_cast<std::uint32_t>(__builtin_popcountll(bits[word]));
    }
    return count;
  }

 private:
  static std::uint64_t Bit(std::size_t column) { return std::uint64_t{1} << (column % 64); }
  std::uint64_t& Word(std::size_t row, std::size_t column) { return bits_[row * words_ + column / 64]; }

  std::size_t words_ = 0;
  std::vector<std::uint64_t> bits_;
};

}  // namespace weir::scheduler
