#pragma once

#include <cstdint>

namespace weir::scheduler::coflowsim {

/// The numbers that java.util.Random draws, by the formulas that the Java class library documents: a 48-bit linear
/// congruential generator (Knuth, The Art of Computer Programming, volume 2, section 3.2.1). Not thread safe.
class JavaRandom {
 public:
  explicit JavaRandom(std::uint64_t seed) : state_((seed ^ kMultiplier) & kMask) {}

  /// In [0, 1).
  double NextDouble() {
    const std::uint64_t high = Next(26) << 27;
    return static_cast<double>(high + Next(27)) * 0x1p-53;
  }

 private:
  static constexpr std::uint64_t kMultiplier = 0x5DEECE66D;
  static constexpr std::uint64_t kMask = (std::uint64_t{1} << 48) - 1;

  std::uint64_t Next(int bits) {
    state_ = (state_ * kMultiplier + 11) & kMask;
    return state_ >> (48 - bits);
  }

  std::uint64_t state_;
};

}  // namespace weir::scheduler::coflowsim
