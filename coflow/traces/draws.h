#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <random>

namespace weir::traces {

/// Random numbers that are a function of the seed on every machine whose `log` and `cos` agree: the distributions of
/// the standard library differ between libraries, these do not. Not thread safe.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : bits_(seed) {}
  /// In [0, 1).
  double Uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  /// By Box and Muller.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }
  /// In [0, below).
  std::size_t Index(std::size_t below) { return static_cast<std::size_t>(Uniform() * static_cast<double>(below)); }

 private:
  std::mt19937_64 bits_;
};

}  // namespace weir::traces
