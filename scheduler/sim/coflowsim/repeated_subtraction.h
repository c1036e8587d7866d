#pragma once

#include <bit>
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

/// The power of two at or below `value`, which is positive and not denormal.
inline double PowerBelow(double value) {
  constexpr std::uint64_t kExponent = 0x7FF0'0000'0000'0000;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) & kExponent);
}

/// The same for one amount and two times at least, without a call and a division where no power of two is near.
inline double SubtractOneRepeatedly(double value, const double& amount, std::int64_t times) {
  const double first = value - amount;
  const double second = first - amount;
  const double taken = first - second;
  const double power = PowerBelow(second);
  const auto rest = static_cast<double>(times);
  if (first < 2 * power && second - power >= rest * taken) {
    return second - (rest - 2) * taken;
  }
  return SubtractRepeatedly(value, {&amount, 1}, times);
}

}  // namespace weir::scheduler::coflowsim
