#include "transport/dpdk/congestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace weir::transport::dpdk {
namespace {

class FixedWindow final : public CongestionControl {
 public:
  explicit FixedWindow(Bytes window) : window_(window) {}
  void OnAck(const Sample&) noexcept override {}
  void OnTimeout() noexcept override {}
  void OnTimeoutUndone() noexcept override {}
  Bytes window() const noexcept override { return window_; }

 private:
  Bytes window_;
};

class DelayWindow final : public CongestionControl {
 public:
  DelayWindow(const EndpointOptions& options, Bytes segment, std::shared_ptr<RoundTripFloor> floor)
      : floor_(std::move(floor)),
        target_(options.queue_target),
        segment_(static_cast<double>(segment)),
        most_(std::max(static_cast<double>(options.window_max), kLeastSegments * segment_)),
        window_(std::min(most_, kFirstSegments * segment_)) {}

  void OnAck(const Sample& sample) noexcept override {
    if (sample.round_trip > 0) {
      round_ = round_ == 0 ? sample.round_trip : round_ + (sample.round_trip - round_) / 8;
      if (!sample.late) Measure(sample.now, sample.round_trip);
      SeeAway(sample);
    }
    marked_ += kMarkedGain * (sample.marked - marked_);
    acked_ += static_cast<double>(sample.bytes);
    lost_ += static_cast<double>(sample.lost);
    const Nanoseconds queue =
        sample.late ? 0 : smooth_ - floor_->shortest();  // Not known is as good as none: losses still count.
    if (sample.now >= round_ends_) EndRound(sample, queue);
    if (sample.limited && queue < target() && (lost_ == 0 || 2 * queue < target()))
      Grow(static_cast<double>(sample.bytes), queue);
    window_ = std::clamp(window_, kLeastSegments * segment_, most_);
  }

  void OnTimeout() noexcept override {
    undo_window_ = std::max(undo_window_, window_);
    starting_ = false;
    before_timeout_ = std::max(before_timeout_, window_ / 2);
    window_ = kLeastSegments * segment_;
  }

  void OnTimeoutUndone() noexcept override {
    window_ = std::max(window_, undo_window_);
    undo_window_ = 0;
  }

  Bytes window() const noexcept override { return static_cast<Bytes>(window_); }

 private:
  static constexpr double kFirstSegments = 32;
  /// Of each channel: those of a job that is to leave the link to another one stay in front of it.
  static constexpr double kLeastSegments = 4;
  /// How long an absence is remembered, and what of it counts.
  static constexpr Nanoseconds kAwayHolds = 200 * kMillisecond;
  static constexpr Nanoseconds kAwayMax = 3 * kMillisecond;
  static constexpr double kCutMost = 0.5;
  static constexpr double kCutSlope = 0.8;
  static constexpr double kMarkedGain = 1.0 / 16;
  static constexpr double kLossShare = 1.0 / 8;

  void Measure(Nanoseconds now, Nanoseconds round_trip) noexcept {
    const Nanoseconds shortest = floor_->Measure(now, round_trip);
    smooth_ = smooth_ == 0 ? round_trip : smooth_ + (round_trip - smooth_) / 8;
    smooth_ = std::max(smooth_, shortest);
  }

  /// An end that is away leaves the link empty when less is on the way than the link carries meanwhile.
  void SeeAway(const Sample& sample) noexcept {
    const Nanoseconds passed = std::clamp<Nanoseconds>(sample.now - away_at_, 0, kAwayHolds);
    away_at_ = sample.now;
    away_ -= away_ * passed / kAwayHolds;
    const Nanoseconds shortest = floor_->shortest();
    if (sample.late && shortest != 0) away_ = std::max(away_, std::min(sample.round_trip - shortest, kAwayMax));
  }
  Nanoseconds target() const noexcept { return std::max(target_, away_); }

  void Grow(double bytes, Nanoseconds queue) noexcept {
    if (starting_ || window_ < before_timeout_) {
      window_ += bytes;
    } else {
      const double round = 2 * queue < target() ? std::max(segment_, window_ / 8) : segment_;
      window_ += round * bytes / window_;
    }
  }

  /// Once a round trip: less, if there was too much.
  void EndRound(const Sample& sample, Nanoseconds queue) noexcept {
    double cut = 0;
    if (queue > target()) {
      cut = std::min(kCutMost, kCutSlope * static_cast<double>(queue - target()) / static_cast<double>(smooth_));
    }
    if (marked_ > 0.01) cut = std::max(cut, marked_ / 2);
    const bool shallow = lost_ > kLossShare * (acked_ + lost_);
    if (lost_ > 0 && (shallow || 2 * queue >= target())) cut = kCutMost;
    undo_window_ = 0;
    if (cut > 0) {
      starting_ = false;
      before_timeout_ = 0;
      window_ *= 1 - cut;
    }
    acked_ = 0;
    lost_ = 0;
    round_ends_ = sample.now + round_;
  }

  std::shared_ptr<RoundTripFloor> floor_;  ///< Shared, since whichever channel comes first makes it.
  Nanoseconds target_;
  double segment_;
  double most_;
  double window_;
  bool starting_ = true;       ///< The window doubles each round trip until there is a queue.
  double before_timeout_ = 0;  ///< It also doubles up to this, half of what it was before a timeout.
  double undo_window_ = 0;     ///< What it was before timeouts that no round trip has followed.
  double marked_ = 0;
  double acked_ = 0;  ///< In this round trip.
  double lost_ = 0;
  Nanoseconds smooth_ = 0;
  Nanoseconds away_ = 0;  ///< The longest time for which an end did not look, fading.
  Nanoseconds away_at_ = 0;
  Nanoseconds round_ = 0;  ///< A round trip and all that the ends add to it.
  Nanoseconds round_ends_ = 0;
};

}  // namespace

Result<std::unique_ptr<CongestionControl>> MakeCongestionControl(const EndpointOptions& options, Bytes segment,
                                                                 std::shared_ptr<RoundTripFloor> floor) {
  if (options.congestion == "fixed") return std::make_unique<FixedWindow>(options.window_max);
  if (options.congestion == "delay") return std::make_unique<DelayWindow>(options, segment, std::move(floor));
  return Error(StatusCode::kInvalidArgument,
               fmt::format("congestion control: found \"{}\", allowed: delay, fixed", options.congestion));
}

}  // namespace weir::transport::dpdk
