#include "transport/tcp/send_window.h"

#include <algorithm>

namespace weir::transport::tcp {
namespace {

constexpr Nanoseconds kSampleMin = 2 * kMillisecond;
/// A sample of fewer segments says more about when acknowledgements come than about the rate, unless it is this long.
constexpr Nanoseconds kSampleMax = 20 * kMillisecond;
constexpr Bytes kSampleSegments = 16;
/// Of the rate, in each sample that is lower: a single bad one must not starve the path.
constexpr double kFall = 0.75;
constexpr Bytes kLeast = 16 * 1024;

}  // namespace

void SendWindow::OnPath(Nanoseconds round_trip, Bytes segment) noexcept {
  round_trip_ = round_trip;
  segment_ = segment;
  Limit();
}

void SendWindow::OnAcknowledged(Nanoseconds now, Bytes acknowledged) noexcept {
  const Nanoseconds span = now - since_;
  const Bytes bytes = acknowledged - before_;
  if (since_ != 0) {
    if (span < std::max(kSampleMin, round_trip_)) return;
    if (bytes < kSampleSegments * segment_ && span < std::max(kSampleMax, round_trip_)) return;
    const double sample = static_cast<double>(bytes) / ToSeconds(span);
    if (sample > rate_) {
      rate_ = sample;
    } else if (!paused_) {
      rate_ = std::max(sample, rate_ * kFall);
    }
    Limit();
  }
  since_ = now;
  before_ = acknowledged;
  paused_ = false;
}

Bytes SendWindow::least() const {
  return std::max(kLeast, kSegments * segment_);
}

Bytes SendWindow::LongPath() const {
  return static_cast<Bytes>(kFastest * ToSeconds(round_trip_));
}

Bytes SendWindow::LimitFor(Bytes message) const {
  return std::min(limit_, std::max({message, options_.most / 4, LongPath(), least()}));
}

void SendWindow::Limit() noexcept {
  const Bytes most = std::max({options_.most, LongPath(), least()});
  const double wanted = rate_ * ToSeconds(options_.queue_time + 2 * round_trip_) + static_cast<double>(least() / 2);
  limit_ = rate_ == 0 ? most
                      : static_cast<Bytes>(std::clamp(wanted, static_cast<double>(least()), static_cast<double>(most)));
}

}  // namespace weir::transport::tcp
