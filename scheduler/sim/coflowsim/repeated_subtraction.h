#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace weir::scheduler::coflowsim {

/// What is left of `value` after subtracting `amounts` one after the other, `times` times over, each difference rounded
/// to the nearest double: the very bits that a loop leaves, in time that grows with the number of powers of two that
/// the value comes down through and not with `times`. `value` must stay above zero; amounts must not be negative.
///
/// Between two powers of two, doubles are equally far apart, so a difference is rounded by the same every time; only
/// when it falls halfway between two doubles does it matter whether the last bit of the value was set, and then the
/// result has an even last bit. So from the second round on all rounds in between take away the same.
double SubtractRepeatedly(double value, std::span<const double> amounts, std::int64_t times);

/// Half of what lies between two doubles, relative to the power of two below them.
inline constexpr double kHalfDistance = 0x1p-53;

/// The power of two at or below `value`, which is positive and not denormal.
inline double PowerBelow(double value) {
  constexpr std::uint64_t kExponent = 0x7FF0'0000'0000'0000;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kExponent);
}

/// The same for one amount; FallingValue is faster where no power of two is near.
double SubtractOneNearPower(double value, double amount, std::int64_t times);

/// A value from which one amount after the other is subtracted, each some times over, as above. No call where no power
/// of two is near: while the value stays above one, each difference takes away the amount rounded to the distance of
/// the doubles there, as adding it to the power of two rounds it; unless it falls halfway between two. The product is a
/// multiple of that distance, so nothing else is rounded.
class FallingValue {
 public:
  explicit FallingValue(double value) : value_(value), power_(PowerBelow(value)) {}

  double value() const { return value_; }

  void Subtract(const double& amount, std::int64_t times) {
    const double taken = (power_ + amount) - power_;
    const double after = value_ - static_cast<double>(times) * taken;
    if (after > power_ && std::abs(amount - taken) != power_ * kHalfDistance) {
      value_ = after;
    } else {
      SubtractNearPower(amount, times);
    }
  }

 private:
  void SubtractNearPower(const double& amount, std::int64_t times) {
    constexpr std::int64_t kFew = 12;  // A loop is faster.
    if (times > kFew) {
      value_ = SubtractOneNearPower(value_, amount, times);
    } else {
      for (; times > 0; --times) {
        value_ -= amount;
      }
    }
    power_ = PowerBelow(value_);
  }

  double value_;
  double power_;
};

/// The same for one amount.
inline double SubtractOneRepeatedly(double value, const double& amount, std::int64_t times) {
  FallingValue falling(value);
  falling.Subtract(amount, times);
  return falling.value();
}

}  // namespace weir::scheduler::coflowsim
