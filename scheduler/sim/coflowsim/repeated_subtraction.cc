#include "scheduler/sim/coflowsim/repeated_subtraction.h"

#include <cstring>

namespace weir::scheduler::coflowsim {
namespace {

double SubtractOnce(double value, std::span<const double> amounts) {
  for (const double amount : amounts) {
    value -= amount;
  }
  return value;
}

using Lane = double __attribute__((vector_size(16)));
using Mask = decltype(Lane{} == Lane{});

Lane Load(const double* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof(lane));
  return lane;
}

/// What amounts take, one after the other, from a value that stays above `power`, the power of two below it: each is
/// rounded to the distance of the doubles there. All sums are multiples of that distance and small enough to be exact,
/// so their order does not matter.
class Round {
 public:
  Round(double power, std::span<const double> amounts)
      : power_(Lane{power, power}), half_distance_(power_ * kHalfDistance) {
    const double* at = amounts.data();
    const double* const end = at + amounts.size();
    for (; end - at >= 4; at += 4) {
      Add(Load(at), &taken_);
      Add(Load(at + 2), &taken_too_);
    }
    for (; at != end; ++at) {
      Add(Lane{*at, 0}, &taken_);
    }
  }

  double taken() const { return (taken_[0] + taken_[1]) + (taken_too_[0] + taken_too_[1]); }
  /// Some difference falls halfway between two doubles; then it depends on the value how it is rounded.
  bool halfway() const { return (halfway_[0] | halfway_[1]) != 0; }

 private:
  void Add(Lane amount, Lane* taken) {
    const Lane rounded = (power_ + amount) - power_;
    const Lane off = amount - rounded;
    halfway_ |= (off == half_distance_) | (off == -half_distance_);
    *taken += rounded;
  }

  Lane power_, half_distance_;
  Lane taken_ = {}, taken_too_ = {};
  Mask halfway_ = {};
};

/// The same for one amount.
class RoundOfOne {
 public:
  RoundOfOne(double power, double amount)
      : taken_((power + amount) - power), halfway_(std::abs(amount - taken_) == power * kHalfDistance) {}
  double taken() const { return taken_; }
  bool halfway() const { return halfway_; }

 private:
  double taken_;
  bool halfway_;
};

/// Rounds after each of which a value is above `power` still.
std::int64_t RoundsAbove(double power, double value, double taken, std::int64_t times) {
  const double room = (value - power) / taken;
  auto rounds = room < static_cast<double>(times) ? static_cast<std::int64_t>(room) : times;
  while (rounds > 0 && value - static_cast<double>(rounds) * taken <= power) {
    --rounds;
  }
  return rounds;
}

/// SubtractRepeatedly, with what one round does: `once(value)` returns what it leaves, `round_above(power)` what it
/// takes from a value that stays above that.
template <typename Once, typename RoundAbove>
double SubtractRounds(double value, std::int64_t times, Once once, RoundAbove round_above) {
  while (times > 0) {
    const double power = PowerBelow(value);
    const auto round = round_above(power);
    double taken = round.taken();
    if (round.halfway()) {
      const double first = once(value);
      if (--times == 0) {
        return first;
      }
      value = once(first);
      --times;
      taken = first - value;
      if (value <= power) {
        continue;
      }
    }
    if (taken == 0) {
      return value;
    }
    const std::int64_t rounds = RoundsAbove(power, value, taken, times);
    value -= static_cast<double>(rounds) * taken;
    times -= rounds;
    if (times > 0) {  // Across the power of two, below which doubles are closer.
      value = once(value);
      --times;
    }
  }
  return value;
}

}  // namespace

double SubtractRepeatedly(double value, std::span<const double> amounts, std::int64_t times) {
  return SubtractRounds(
      value, times, [amounts](double from) { return SubtractOnce(from, amounts); },
      [amounts](double power) { return Round(power, amounts); });
}

double SubtractOneNearPower(double value, double amount, std::int64_t times) {
  return SubtractRounds(
      value, times, [amount](double from) { return from - amount; },
      [amount](double power) { return RoundOfOne(power, amount); });
}

}  // namespace weir::scheduler::coflowsim
