#pragma once

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

}  // namespace weir::scheduler::coflowsim
