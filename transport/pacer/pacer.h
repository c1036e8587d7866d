#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "coflow/directive.h"
#include "coflow/units.h"
#include "transport/directive_source.h"
#include "transport/pacer/token_bucket.h"

namespace weir::transport {

/// Sizes and times of the pacer. The defaults suit links from 1 Mbit/s to 100 Gbit/s.
struct PacerOptions {
  /// A capped lane waits until it may send a piece of rate * piece_time, within the two bounds.
  Nanoseconds piece_time = 250 * kMicrosecond;
  Bytes piece_min = 1024;
  Bytes piece_max = 256 * 1024;
  /// And saves up to rate * burst_time while it has nothing to send, at least two pieces and at most burst_max.
  Nanoseconds burst_time = 5 * kMillisecond;
  Bytes burst_max = 1024 * 1024;
  /// One that has more to send saves up to rate * late_time, beside the piece that it waits for, for when its owner
  /// comes late: on a host that shares its cores, a thread may be late by some milliseconds, and what is not saved then
  /// is lost. 2 % of a second, so that a cap is kept within 2 % over each second however late the owner comes, up to so
  /// much.
  Nanoseconds late_time = 20 * kMillisecond;
  /// A level whose lanes did not ask for this long holds nobody back: its owner is busy elsewhere. On a host that
  /// shares its cores a thread may be away for some milliseconds; what the levels below sent meanwhile would be in its
  /// way.
  Nanoseconds stale_after = 10 * kMillisecond;
  /// A lane that has nothing more to send holds lower levels back for this much longer for each byte it sent since it
  /// began, and linger_max at most: the next message of a burst comes as soon as its owner saw the end of the one
  /// before.
  double linger_ns_per_byte = 1;
  Nanoseconds linger_max = 2 * kMillisecond;
  /// The floor under lower levels: one byte for each this many that passed, shared by the lanes that are held back, and
  /// for each lane one piece every aging_min at most. One that was held back for aging_max sends a piece in any case.
  std::uint32_t floor_divisor = 64;
  Nanoseconds aging_min = 10 * kMillisecond;
  Nanoseconds aging_max = kSecond;
  Bytes floor_piece = 16 * 1024;
};

/// What the lanes of a process know of each other: which levels have something to send. Shared by the lanes of all
/// threads, without a lock. Owns nothing, outlives its lanes.
class Pacer {
 public:
  explicit Pacer(const PacerOptions& options = {}) : options_(options) {}
  const PacerOptions& options() const { return options_; }

 private:
  friend class Lane;

  struct alignas(64) Level {
    std::atomic<std::int32_t> contending{0};  ///< Lanes that could send and have something.
    std::atomic<Nanoseconds> asked{0};        ///< When one of them last asked.
    std::atomic<Nanoseconds> lingers_until{0};
  };

  PacerOptions options_;
  std::array<Level, kQueueLevels> levels_;
  alignas(64) std::atomic<Bytes> passed_{0};  ///< By all lanes together; wraps around.
  std::atomic<std::uint32_t> held_{0};        ///< Lanes that wait for a higher level.
};

/// What a lane did and why it waited; counted, never reset.
struct LaneCounters {
  Bytes bytes = 0;                    ///< Admitted and sent.
  Bytes repeated = 0;                 ///< Of these, such as had been sent before and were lost.
  std::uint64_t waits_for_rate = 0;   ///< Refusals: no credit,
  std::uint64_t waits_for_gate = 0;   ///< closed by phase or hold,
  std::uint64_t waits_for_level = 0;  ///< a higher level has something to send.
  std::uint64_t floor_pieces = 0;     ///< Pieces sent by grace of the floor.
  std::uint64_t gates_ignored = 0;    ///< Directives whose phase gate was out of range, and left open.
};

/// The pacer of everything that goes to one peer: asks the directive, the rate and the levels before each piece. Used
/// by the channels of one thread; not for any other. Owned by the caller, and outlives the channels that were given it.
/// Where there are several, each has a LaneShare, so that one that is done does not speak for all.
///
/// Promises: at a rate R, no more than `R * (late_time + T)` bytes and a piece in any span T, or `burst + R * T` after
/// it had nothing to send, with PacerOptions; a new rate holds from the next piece on; a lane is never held by its hold
/// or its phase for longer than kGateClosedMax at a time, nor by other lanes for longer than aging_max.
class Lane {
 public:
  /// `source` may be null: level 0, no cap, no gate.
  Lane(Pacer* pacer, const DirectiveSource* source);
  ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// How many of `wanted` bytes may go now; 0: ask again later. Wanted is not 0. About 10 ns, no allocation.
  Bytes Admit(Bytes wanted, Nanoseconds now) noexcept;
  /// Bytes that were admitted and that the device did not take.
  void Return(Bytes unsent) noexcept;
  /// Of what was admitted, so much was sent once more: it takes its share of the rate, and is nothing new.
  void Repeated(Bytes bytes) noexcept { counters_.repeated += bytes; }
  /// The lane has more to send, and waits for something else, such as room on the way: it keeps its place, so that
  /// lanes of lower levels do not fill the way that it waits for. No effect on one that does not hold others back
  /// already: whose gate is shut, or that has no credit.
  void Waits(Nanoseconds now) noexcept;
  /// The lane has nothing more to send for now: it soon holds no other back, see linger_ns_per_byte.
  void Drained(Nanoseconds now) noexcept;
  /// The lane sends nothing more, or cannot: it holds no other back.
  void Idle() noexcept;
  /// When to ask again after a refusal at `now`: never later than what was refused would pass. For callers that sleep.
  Nanoseconds AskAgainAt(Nanoseconds now) const noexcept;
  /// Whether the last refusal ends at AskAgainAt by nothing but time: for its rate or its gate. Nothing needs to be
  /// asked before then, unless the directive has Changed.
  bool WaitsForTime() const noexcept { return refusal_ == Refusal::kRate || refusal_ == Refusal::kGate; }
  /// Whether there is a directive that was not heeded yet. A load and a comparison.
  bool Changed() const noexcept { return source_ != nullptr && (!fresh_ || source_->Version() != version_); }

  const LaneCounters& counters() const { return counters_; }
  const LaneDirective& directive() const { return directive_; }

 private:
  friend class LaneShare;
  enum class Refusal : std::uint8_t { kNone, kGate, kRate, kLevel };

  void Refresh(Nanoseconds now) noexcept;
  void RefreshRate(Nanoseconds now) noexcept;
  Nanoseconds ClosedUntil(Nanoseconds now) const noexcept;  ///< At most `now` when open.
  bool HeldByLevel(Nanoseconds now) const noexcept;
  bool TakeFloor(Nanoseconds now) noexcept;
  void StopWaiting() noexcept;
  void Contend(Nanoseconds now) noexcept;
  void Leave() noexcept;

  Pacer& pacer_;
  const DirectiveSource* source_;
  std::uint64_t version_ = 0;
  bool fresh_ = false;  ///< The directive was read once.
  bool capped_ = false;
  bool contending_ = false;
  Refusal refusal_ = Refusal::kNone;
  Bytes piece_ = 0;
  Bytes burst_bytes_ = 0;          ///< Sent since it last was drained.
  Bytes refused_ = 0;              ///< Bytes that the last refusal for rate waits for.
  std::uint32_t wanting_ = 0;      ///< Shares that have something to send.
  bool held_ = false;              ///< By a higher level.
  Nanoseconds waiting_since_ = 0;  ///< While held: since when, or when the floor served it last,
  Bytes passed_then_ = 0;          ///< and Pacer::passed_ at that time.
  LaneDirective directive_;
  TokenBucket bucket_;
  LaneCounters counters_;
};

/// What one of several channels has of a lane: the lane is drained, or idle, when all who share it are. Else a channel
/// that has nothing to send would take the place of the lane and the credit that it saved from one that has, whenever
/// it is asked. Owned by the channel; the lane outlives it. Thread: the lane's.
class LaneShare {
 public:
  /// `lane` may be null, and then nothing may be called.
  explicit LaneShare(Lane* lane) : lane_(lane) {}
  ~LaneShare() {
    if (lane_ != nullptr) Idle();
  }
  LaneShare(const LaneShare&) = delete;
  LaneShare& operator=(const LaneShare&) = delete;

  /// As those of Lane.
  Bytes Admit(Bytes wanted, Nanoseconds now) noexcept {
    Want();
    return lane_->Admit(wanted, now);
  }
  void Waits(Nanoseconds now) noexcept {
    Want();
    lane_->Waits(now);
  }
  void Drained(Nanoseconds now) noexcept {
    if (Rest()) lane_->Drained(now);
  }
  void Idle() noexcept {
    if (Rest()) lane_->Idle();
  }

 private:
  void Want() noexcept {
    if (!wants_) lane_->wanting_++;
    wants_ = true;
  }
  /// Whether nobody wants any more.
  bool Rest() noexcept {
    if (wants_) lane_->wanting_--;
    wants_ = false;
    return lane_->wanting_ == 0;
  }

  Lane* lane_;
  bool wants_ = false;
};

}  // namespace weir::transport
