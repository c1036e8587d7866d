#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "coflow/units.h"

namespace weir::transport {

/// Lets bytes pass at a rate, with a bounded burst. Credit is counted in billionths of a byte, so that what a
/// nanosecond brings at R bytes per second is exactly R units: whole numbers, nothing is rounded, nothing drifts.
///
/// In any span of T nanoseconds at one rate, at most `burst + rate * T / 10^9` bytes pass, or `late` instead of `burst`
/// when the owner had more to send all the time (Want). Credit is lost only when the bucket is full, that is when
/// nobody asked for longer than `burst / rate`, or `late / rate`.
///
/// A value; one thread. Limits: burst and late 1 byte .. kBurstMax, rate 1 .. kRateMax bytes per second.
class TokenBucket {
 public:
  static constexpr Bytes kBurstMax = Bytes{1} << 30;
  static constexpr std::uint64_t kRateMax = 1'000'000'000'000;

  /// Sets rate and burst from now on; what was earned until now counts at the old rate, and is cut to the new burst.
  /// The first call fills the bucket. `late` is at least the burst, or counts as much.
  void Set(std::uint64_t bytes_per_second, Bytes burst, Nanoseconds now, Bytes late = 0) noexcept {
    const bool first = rate_ == 0;
    if (!first) Earn(now);
    now_ = now;
    const auto rate = static_cast<std::int64_t>(std::clamp<std::uint64_t>(bytes_per_second, 1, kRateMax));
    const bool same = rate == std::exchange(rate_, rate);
    full_ = kUnits * static_cast<std::int64_t>(std::clamp<Bytes>(burst, 1, kBurstMax));
    late_ = std::max(full_, kUnits * static_cast<std::int64_t>(std::min(late, kBurstMax)));
    credit_ = first ? full_ : std::min(credit_, same ? Limit() : full_);
  }

  /// The owner has more to send than it may: what it earns until it comes back is kept up to `late`.
  void Want() noexcept { wants_ = true; }
  /// The owner has nothing to send, or may not for other reasons: from here on, and of what there is, `burst` is kept.
  void Rest() noexcept {
    wants_ = false;
    credit_ = std::min(credit_, full_);
  }

  /// Up to `wanted` bytes, as many as there is credit for; 0 when there is none for `least` of them. `least` is at most
  /// the burst, or nothing ever passes.
  Bytes Take(Bytes wanted, Bytes least, Nanoseconds now) noexcept {
    Earn(now);
    const Bytes have = static_cast<Bytes>(credit_ / kUnits);
    if (have < least) return 0;
    const Bytes granted = std::min(wanted, have);
    credit_ -= static_cast<std::int64_t>(granted) * kUnits;
    return granted;
  }

  /// Whether Take(bytes, bytes, now) would succeed.
  bool Has(Bytes bytes, Nanoseconds now) noexcept {
    Earn(now);
    return static_cast<Bytes>(credit_ / kUnits) >= bytes;
  }

  /// Gives back bytes that were taken and not sent. They are never worth more than a full bucket.
  void Return(Bytes bytes) noexcept {
    credit_ = std::min(Limit(), credit_ + static_cast<std::int64_t>(std::min(bytes, kBurstMax)) * kUnits);
  }

  /// The first time at which Take(bytes, bytes) succeeds if nothing is taken before; bytes at most the burst.
  Nanoseconds ReadyAt(Bytes bytes) const noexcept {
    const std::int64_t missing = static_cast<std::int64_t>(bytes) * kUnits - credit_;
    return missing <= 0 ? now_ : now_ + (missing + rate_ - 1) / rate_;
  }

 private:
  static constexpr std::int64_t kUnits = kSecond;  ///< Units in a byte.
  // Credit plus a returned burst, and a span's earning on top of a full bucket, stay within 63 bits.
  static_assert(2 * static_cast<std::int64_t>(kBurstMax) * kUnits + static_cast<std::int64_t>(kRateMax) > 0);

  void Earn(Nanoseconds now) noexcept {
    const Nanoseconds elapsed = now - now_;
    if (elapsed <= 0) return;  // A clock that stands still or jumps back brings nothing.
    now_ = now;
    const std::int64_t missing = Limit() - credit_;
    credit_ = elapsed > missing / rate_ ? Limit() : credit_ + elapsed * rate_;
  }
  std::int64_t Limit() const noexcept { return wants_ ? late_ : full_; }

  std::int64_t rate_ = 0;  ///< Bytes per second, which is units per nanosecond; 0: never set.
  std::int64_t full_ = 0;
  std::int64_t late_ = 0;  ///< At least as much.
  bool wants_ = false;
  std::int64_t credit_ = 0;
  Nanoseconds now_ = 0;
};

}  // namespace weir::transport
