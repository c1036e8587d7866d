#pragma once

#include <memory>
#include <string_view>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/dpdk/options.h"

namespace weir::transport::dpdk {

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
/// an end had no core is no queue.
///
/// `segment` is the largest segment. Error kInvalidArgument: no such name.
Result<std::unique_ptr<CongestionControl>> MakeCongestionControl(const EndpointOptions& options, Bytes segment);

}  // namespace weir::transport::dpdk
