#pragma once

#include "coflow/units.h"

namespace weir::transport::tcp {

/// How much a channel leaves in the kernel, unsent or unacknowledged. Enough to keep the path full, and no more: what
/// lies there is out of reach for a directive, and on a short path it is copied out of the cache by one core before
/// another copies it in again (docs/decisions/0014). The limit is what the path took in the last milliseconds, for
/// `queue_time` and two round trips, and two segments:
///
///   limit = rate * (queue_time + 2 * round trip) + 2 segments, at least kSegments segments,
///           at most the larger of `most` and kFastest * round trip
///
/// Before the first sample it is the most. While nothing else waits on the path, the next limit is at least twice the
/// rate times the round trip, so it doubles until the path is full. Where N channels share it, what waits grows until
/// the round trip is about queue_time + N * 2 segments / rate of the path; then the limits are equal, as the two
/// segments are for all the same, and what a channel has above others shrinks with each sample.
///
/// Pure arithmetic, no system call; owned by a sender, on its thread.
class SendWindow {
 public:
  struct Options {
    Bytes most = 1024 * 1024;                   ///< On a path so short that its round trip needs no more.
    Nanoseconds queue_time = 3 * kMillisecond;  ///< What may wait in front of the narrowest link.
  };

  static constexpr Bytes kSegments = 4;  ///< A receiver acknowledges every second one at once.
  static constexpr BytesPerSecond kFastest = 25e9;

  explicit SendWindow(const Options& options) : options_(options) { Limit(); }

  /// What the path is like: the least round trip seen, and bytes of a segment.
  void OnPath(Nanoseconds round_trip, Bytes segment) noexcept;
  /// `acknowledged` bytes in all until now. Called now and then; takes a sample when enough has happened.
  void OnAcknowledged(Nanoseconds now, Bytes acknowledged) noexcept;
  /// The channel waits for something else than the network: nothing to send, or not allowed to. A low rate since the
  /// last sample says nothing about the path.
  void OnPause() noexcept { paused_ = true; }

  /// In all connections of the channel together.
  Bytes limit() const { return limit_; }
  /// The same while a message of `message` bytes is sent: on a short path no more than the message, a quarter of the
  /// most at least. The memory of small messages stays in the cache if little lies beside it; that of large ones does
  /// not, and what lies in the kernel lets both ends work at once.
  Bytes LimitFor(Bytes message) const;
  /// The least that one connection must be allowed to hold.
  Bytes least() const;
  /// Bytes a second that the path took lately; 0: no sample yet.
  BytesPerSecond rate() const { return rate_; }

 private:
  void Limit() noexcept;
  Bytes LongPath() const;

  Options options_;
  Nanoseconds round_trip_ = 0;
  Bytes segment_ = 1448;
  BytesPerSecond rate_ = 0;
  Bytes limit_ = 0;
  bool paused_ = true;
  Nanoseconds since_ = 0;  ///< When the sample began,
  Bytes before_ = 0;       ///< and what was acknowledged then.
};

}  // namespace weir::transport::tcp
