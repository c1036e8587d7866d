#include "transport/dpdk/congestion.h"

#include <fmt/format.h>

#include <algorithm>

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
  DelayWindow(const EndpointOptions& options, Bytes segment)
      : target_(options.queue_target),
        segment_(static_cast<double>(segment)),
        most_(std::max(static_cast<double>(options.window_max), kLeastSegments * segment_)),
        window_(std::min(most_, kFirstSegments * segment_)) {}

  void OnAck(const Sample& sample) noexcept override {
    if (sample.round_trip > 0) {
      round_ = round_ == 0 ? sample.round_trip : round_ + (sample.round_trip - round_) / 8;
      if (!sample.late) Measure(sample.now, sample.round_trip);
    }
    marked_ += kMarkedGain * (sample.marked - marked_);
    acked_ += static_cast<double>(sample.bytes);
    lost_ += static_cast<double>(sample.lost);
    const Nanoseconds queue = sample.late ? 0 : smooth_ - base_;  // Not known is as good as none: losses still count.
    if (sample.now >= round_ends_) EndRound(sample, queue);
    if (queue < target_ && (lost_ == 0 || 2 * queue < target_)) Grow(static_cast<double>(sample.bytes), queue);
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
  /// A peer without a core looks like a long queue, and each of its turns should be worth something.
  static constexpr double kLeastSegments = 16;
  static constexpr double kCutMost = 0.5;
  static constexpr double kCutSlope = 0.8;
  static constexpr double kMarkedGain = 1.0 / 16;
  static constexpr double kLossShare = 1.0 / 8;
  /// After so long, a path may have become another one, and what was the shortest round trip may not come back.
  static constexpr Nanoseconds kBaseHolds = 10 * kSecond;

  void Measure(Nanoseconds now, Nanoseconds round_trip) noexcept {
    if (base_ == 0 || round_trip <= base_ || now - base_at_ > kBaseHolds) {
      base_ = round_trip;
      base_at_ = now;
    }
    smooth_ = smooth_ == 0 ? round_trip : smooth_ + (round_trip - smooth_) / 8;
    smooth_ = std::max(smooth_, base_);
  }

  void Grow(double bytes, Nanoseconds queue) noexcept {
    if (starting_ || window_ < before_timeout_) {
      window_ += bytes;
    } else {
      const double round = 2 * queue < target_ ? std::max(segment_, window_ / 8) : segment_;
      window_ += round * bytes / window_;
    }
  }

  /// Once a round trip: less, if there was too much.
  void EndRound(const Sample& sample, Nanoseconds queue) noexcept {
    double cut = 0;
    if (queue > target_) {
      cut = std::min(kCutMost, kCutSlope * static_cast<double>(queue - target_) / static_cast<double>(smooth_));
    }
    if (marked_ > 0.01) cut = std::max(cut, marked_ / 2);
    const bool shallow = lost_ > kLossShare * (acked_ + lost_);
    if (lost_ > 0 && (shallow || 2 * queue >= target_)) cut = kCutMost;
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
  Nanoseconds base_ = 0;  ///< The shortest round trip.
  Nanoseconds base_at_ = 0;
  Nanoseconds smooth_ = 0;
  Nanoseconds round_ = 0;  ///< A round trip and all that the ends add to it.
  Nanoseconds round_ends_ = 0;
};

}  // namespace

Result<std::unique_ptr<CongestionControl>> MakeCongestionControl(const EndpointOptions& options, Bytes segment) {
  if (options.congestion == "fixed") return std::make_unique<FixedWindow>(options.window_max);
  if (options.congestion == "delay") return std::make_unique<DelayWindow>(options, segment);
  return Error(StatusCode::kInvalidArgument,
               fmt::format("congestion control: found \"{}\", allowed: delay, fixed", options.congestion));
}

}  // namespace weir::transport::dpdk
