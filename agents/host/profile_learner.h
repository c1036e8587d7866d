#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "coflow/ids.h"
#include "coflow/units.h"

namespace weir::agents {

/// What one process does each iteration. All zero until something was learned.
struct Profile {
  std::uint64_t iteration = 0;        ///< Iterations seen since the pattern was found.
  Nanoseconds iteration_started = 0;  ///< When the last iteration's traffic ended (CLOCK_MONOTONIC).
  Nanoseconds period = 0;             ///< Of the last whole iteration.
  Nanoseconds alone = 0;              ///< Estimated period without contention.
  double confidence = 0;              ///< 0..1; below 0.5 the profile must not be used to order.
  Bytes bytes_total = 0;              ///< Per iteration, all lanes.
  Bytes bytes_left = 0;               ///< Messages of the current iteration not begun yet.
  struct Lane {
    LaneId lane;
    Bytes bytes = 0;
    Bytes bytes_left = 0;
  };
  std::vector<Lane> lanes;
};

/// Learns a process's iteration from the messages it begins: training repeats the same messages in the same order, so
/// the sequence of (lane, size) is periodic whatever contention does to its timing. Where sizes alone leave the period
/// open (all messages equal), the rhythm of think times decides. The iteration's border is where the process thinks
/// longest.
///
/// Not for: telling overlap from dependency, or anything across processes; the coordinator joins the ranks of a job.
/// Pure bookkeeping: no clock, no IO. Owned by AgentEngine, one per process. Thread: the agent's loop.
/// Cost: O(1) a message while the pattern holds, O(kPeriodMax * kCompared) while it is sought.
class ProfileLearner {
 public:
  static constexpr std::size_t kHistory = 1024;   ///< Messages remembered.
  static constexpr std::size_t kPeriodMax = 256;  ///< Messages in one iteration, at most.
  static constexpr std::size_t kIterations = 64;  ///< Iterations whose duration is remembered.

  /// A data message was begun at `time`. Times never decrease; bytes > 0.
  void OnMessage(Nanoseconds time, LaneId lane, Bytes bytes);
  /// Every message begun so far has been taken by the kernel and has left the host, at `time`.
  void OnDrained(Nanoseconds time);
  /// The process had bytes to send and no turn during [from, to). Intervals do not overlap and come in order.
  void OnHeld(Nanoseconds from, Nanoseconds to);

  const Profile& profile() const { return profile_; }
  /// Expected think time between the end of the messages begun and the next message; 0 if unknown. Lets the agent tell
  /// a pause inside a coflow from its end.
  Nanoseconds ExpectedGap() const;

 private:
  struct Message {
    LaneId lane;
    Bytes bytes = 0;
    Nanoseconds time = 0;  ///< First write.
    Nanoseconds gap = 0;   ///< Think time before it: from the last drain, 0 if the message before was still in flight.
    Nanoseconds held = 0;  ///< Time without a turn between the message before and this one.
  };
  struct Iteration {
    Nanoseconds period = 0;
    Nanoseconds held = 0;
  };

  bool Matches(std::size_t back, std::size_t lag) const;
  double RhythmError(std::size_t lag) const;
  std::size_t FindPeriod() const;
  void Lock(std::size_t period);
  void Unlock();
  std::size_t LongestGapOffset() const;
  void OnBorder();
  void AppendIteration(std::size_t back);
  void RebuildIterations();
  void FillTimes();
  void FillTemplate();
  void FillBytesLeft();
  Nanoseconds EstimateAlone() const;

  std::deque<Message> messages_;      ///< Newest last.
  std::deque<Iteration> iterations_;  ///< Newest last.
  Nanoseconds last_message_ = 0;
  Nanoseconds last_drained_ = 0;
  bool in_flight_ = false;  ///< Begun and not drained.

  std::size_t period_ = 0;            ///< Messages per iteration, 0 while unknown.
  std::size_t position_ = 0;          ///< Messages begun in the current iteration, 1..period_; valid if period_ > 0.
  std::uint64_t cycles_matched_ = 0;  ///< Whole repetitions seen in a row.
  std::vector<Message> template_;     ///< One iteration; gaps are means over the history.
  Nanoseconds held_since_message_ = 0;
  Profile profile_;
};

}  // namespace weir::agents
