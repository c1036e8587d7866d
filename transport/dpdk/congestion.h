#pragma once

#include <memory>
#include <string_view>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/dpdk/options.h"

namespace weir::transport::dpdk {

/// The shortest round trip to a peer, as all channels to it saw it: one that starts while others fill the queue never
/// sees the path without. Kept by those channels together; under their endpoint's guard.
class RoundTripFloor {
 public:
  /// Returns the shortest one.
  Nanoseconds Measure(Nanoseconds now, Nanoseconds round_trip) noexcept {
    if (shortest_ == 0 || round_trip <= shortest_ || now - seen_at_ > kHolds) {
      shortest_ = round_trip;
      seen_at_ = now;
    }
    return shortest_;
  }
  Nanoseconds shortest() const noexcept { return shortest_; }  ///< 0: none yet.

 private:
  /// After so long, a path may have become another one, and what was the shortest round trip may not come back.
  static constexpr Nanoseconds kHolds = 10 * kSecond;

  Nanoseconds shortest_ = 0;
  Nanoseconds seen_at_ = 0;
};

/// How much a sender may have on the way. Pure: told what came back and when. One for each sender, on its thread; no
/// allocation after it is made.
class CongestionControl {
 public:
  /// What an acknowledgement says.
  struct Sample {
    Nanoseconds now = 0;
    Nanoseconds round_trip = 0;  ///< 0: not measured.
    bool late = false;           ///< It has time in it in which an end did not look, so it says nothing of the path.
    Bytes bytes = 0;             ///< Newly acknowledged.
    bool limited = true;         ///< More would have been on the way, had the window been larger.
    Bytes lost = 0;              ///< Found to be lost.
    double marked = 0;           ///< Share of the segments since the last one that routers marked, 0 .. 1.
  };

  virtual ~CongestionControl() = default;
  virtual void OnAck(const Sample& sample) noexcept = 0;
  /// Nothing came back for too long.
  virtual void OnTimeout() noexcept = 0;
  /// What the last timeout was about has come after all.
  virtual void OnTimeoutUndone() noexcept = 0;
  /// Bytes that may be on the way.
  virtual Bytes window() const noexcept = 0;
};

/// "fixed": options.window_max, whatever happens; for wires that nobody shares.
///
/// "delay": keeps the queue on the path below options.queue_target, after Swift (Kumar et al., SIGCOMM 2020, section 3:
/// at most one decrease a round trip, in proportion to what is above the target) with the decrease of DCTCP (RFC 8257,
/// section 3.3) for marks. Two things are for long fat paths: while the queue is less than half of the target, the
/// window grows by an eighth a round trip and not by a segment; and a loss then counts as damage, not as congestion,
/// unless more than an eighth of a window is lost. And one is for hosts that share their cores: a round trip in which
/// an end had no core is no queue, and the target is as long
/// as the ends were seen to be away lately, 3 ms at most, so that the link has something meanwhile. A window that
/// nobody filled does not grow: nothing is known of a larger one.
///
/// `segment` is the largest segment; `floor` belongs to all channels to the peer. Error kInvalidArgument: no such name.
Result<std::unique_ptr<CongestionControl>> MakeCongestionControl(
    const EndpointOptions& options, Bytes segment,
    std::shared_ptr<RoundTripFloor> floor = std::make_shared<RoundTripFloor>());

}  // namespace weir::transport::dpdk
