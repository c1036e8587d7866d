#include "scheduler/sim/coflowsim/repeated_subtraction.h"

#include <algorithm>

namespace weir::scheduler::coflowsim {
namespace {

double SubtractOnce(double value, std::span<const double> amounts) {
  for (const double amount : amounts) {
    value -= amount;
  }
  return value;
}

}  // namespace

double SubtractRepeatedly(double value, std::span<const double> amounts, std::int64_t times) {
  while (times > 0) {
    const double first = SubtractOnce(value, amounts);
    if (times == 1) {
      return first;
    }
    value = SubtractOnce(first, amounts);
    times -= 2;
    const double taken = first - value;
    if (taken == 0) {
      return value;
    }
    const double power = PowerBelow(value);
    if (first >= 2 * power) {
      continue;
    }
    // One round less than there is room for, so that no difference comes near the power of two, below which doubles are
    // closer. The product is a multiple of their distance here and smaller than the value, so it is exact.
    const double room = (value - power) / taken - 1;
    const std::int64_t rounds = room < static_cast<double>(times) ? static_cast<std::int64_t>(room) : times;
    if (rounds > 0) {
      value -= static_cast<double>(rounds) * taken;
      times -= rounds;
    }
  }
  return value;
}

}  // namespace weir::scheduler::coflowsim
