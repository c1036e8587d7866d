#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace weir::scheduler {

/// Counts times by size: exact below 32 ns, in steps of 1/16 to 1/32 of the time above. Adding is a few instructions
/// and memory is fixed, so it can sit on the path that is timed. Not thread-safe.
class TimeHistogram {
 public:
  void Add(std::int64_t ns) {
    const auto time = static_cast<std::uint64_t>(std::max<std::int64_t>(0, ns));
    ++counts_[BucketOf(time)];
    ++count_;
    total_ += time;
    largest_ = std::max(largest_, time);
  }

  std::uint64_t count() const { return count_; }
  double mean() const { return count_ == 0 ? 0 : static_cast<double>(total_) / static_cast<double>(count_); }
  std::uint64_t largest() const { return largest_; }

  /// A time that at least this share of the times, above 0 and at most 1, does not exceed; at most 1/16 too large.
  /// 0 if there are none.
  std::uint64_t Quantile(double share) const {
    const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen >= rank && seen > 0) {
        return std::min(largest_, Largest(bucket));
      }
    }
    return 0;
  }

 private:
  static constexpr int kExactBits = 4;
  static constexpr std::size_t kSteps = std::size_t{1} << kExactBits;  ///< In each power of two.

  static constexpr std::size_t BucketOf(std::uint64_t time) {
    if (time < 2 * kSteps) {
      return time;
    }
    const int shift = static_cast<int>(std::bit_width(time)) - 1 - kExactBits;
    return (static_cast<std::size_t>(shift) + 1) * kSteps + (time >> shift) - kSteps;
  }
  /// The largest time of a bucket.
  static constexpr std::uint64_t Largest(std::size_t bucket) {
    if (bucket < 2 * kSteps) {
      return bucket;
    }
    const std::size_t shift = bucket / kSteps - 1;
    return ((kSteps + bucket % kSteps + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kSteps*(65 - kExactBits)> counts_{};
  std::uint64_t count_ = 0, total_ = 0, largest_ = 0;
};

}  // namespace weir::scheduler
