#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "coflow/ids.h"
#include "coflow/units.h"

namespace weir::agents {

/// What one process does each iteration. All zero until something was learned. Times are CLOCK_MONOTONIC.
struct Profile {
  std::uint64_t iteration = 0;        ///< Iterations seen since the pattern was found.
  Nanoseconds iteration_started = 0;  ///< When the traffic of the iteration before ended.
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

/// By when the messages begun must have left for the iteration to last no longer than alone.
struct Due {
  Nanoseconds at = 0;  ///< CLOCK_MONOTONIC.
  bool overlapped =
      false;  ///< The process computes on meanwhile: these messages have slack, delaying them is free until `at`.
};

/// The message that is expected next.
struct NextMessage {
  LaneId lane;
  Nanoseconds at = 0;         ///< CLOCK_MONOTONIC.
  Nanoseconds deviation = 0;  ///< Mean absolute error of the like of it.
};

/// Learns a process's iteration from the messages it begins: training repeats the same messages, so the sequence of
/// (lane, size) is periodic whatever contention does to its timing. Where sizes alone leave the period open (all
/// messages equal), think times decide: every iteration must begin after one like the others'. The iteration's border
/// is where the process thinks longest; the messages between two longer think times are a burst.
///
/// Times without contention are estimated from iterations with it: what was seen is never shorter than alone, and what
/// was seen less the time held is never longer where the hold was exposed. Whether a burst is overlapped with compute
/// is learned from holds too: if the next burst begins on time and the iteration ends on time although this one was
/// held, nobody waited for it.
///
/// Not for: anything across processes; the coordinator joins the ranks of a job. Pure bookkeeping: no clock, no IO.
/// Owned by AgentEngine, one per process. Thread: the agent's loop.
/// Cost: O(period) a message while the pattern holds, O(kPeriodMax * kPeriodMax) at most while it is sought.
class ProfileLearner {
 public:
  static constexpr std::size_t kHistory = 1024;   ///< Messages remembered.
  static constexpr std::size_t kPeriodMax = 256;  ///< Messages in one iteration, at most.
  static constexpr std::size_t kIterations = 32;  ///< Iterations remembered.

  /// A data message was begun at `time`. Times never decrease; bytes > 0.
  void OnMessage(Nanoseconds time, LaneId lane, Bytes bytes);
  /// Every message begun so far has been taken by the kernel and has left the host, at `time`.
  void OnDrained(Nanoseconds time);
  /// The process had bytes to send and no turn during [from, to). Intervals do not overlap and come in order.
  void OnHeld(Nanoseconds from, Nanoseconds to);

  const Profile& profile() const { return profile_; }
  /// Expected think time between the end of the messages begun and the next message. Lets the agent tell a pause inside
  /// a coflow from its end.
  std::optional<Nanoseconds> ExpectedGap() const;
  /// Which message comes next and when; nothing while messages are in flight or the profile is not known well enough.
  std::optional<NextMessage> ExpectedNext() const;
  /// When the messages in flight are due; nothing while the profile is not known well enough.
  std::optional<Due> CurrentDue() const;

 private:
  struct Message {
    LaneId lane;
    Bytes bytes = 0;
    Nanoseconds time = 0;  ///< First write.
    Nanoseconds gap = 0;   ///< Think time before it: from the last drain, 0 if the message before was still in flight.
    Nanoseconds held = 0;  ///< Time without a turn since the process was first seen, up to the first write.
    Nanoseconds drained = 0;       ///< When everything up to this message had left, 0 if the next began before that.
    Nanoseconds drained_held = 0;  ///< Like `held`, up to `drained`.
  };
  /// One step of the iteration. Offsets count from the end of the iteration before.
  struct Step {
    LaneId lane;
    Bytes bytes = 0;
    Nanoseconds gap = 0;        ///< Mean think time before it,
    Nanoseconds deviation = 0;  ///< and how far it is off, on average.
    Nanoseconds begin = 0;      ///< Estimated offset of its first write, alone.
    Nanoseconds drained = 0;    ///< Estimated offset of its end, alone; 0 if never seen.
    std::size_t burst_end = 0;  ///< The step after the last one of its burst.
    bool overlapped = false;    ///< Its burst is.
  };
  /// One whole iteration: per step what was seen (in the order of the steps, not of time).
  struct Iteration {
    Nanoseconds started = 0;  ///< End of the traffic of the iteration before, 0 if not seen.
    Nanoseconds held = 0;     ///< `held` at `started`.
    Nanoseconds period = 0;   ///< From first message to the next iteration's first message; 0 while it runs.
    Nanoseconds period_held = 0;
    std::vector<std::optional<Message>> steps;
  };

  bool Matches(std::size_t back, std::size_t lag) const;
  bool SameMultiset(std::size_t lag) const;
  Nanoseconds BorderGap(std::size_t period, std::size_t stretch) const;
  bool BordersAlternate(std::size_t period, std::size_t shorter, Nanoseconds gap, std::size_t stretch) const;
  std::size_t FindPeriod() const;
  std::size_t LongestGapOffset(std::size_t period) const;
  void Lock(std::size_t period);
  void LookAgain();
  void Unlock();
  void Replay();
  bool Place(const Message& message);
  void OnBorder(const Message& first);
  void Estimate();
  void EstimateBursts();
  void EstimateOverlap(std::size_t burst_begin, std::size_t burst_end);
  void FillProfile();
  Nanoseconds EstimateAlone() const;

  std::deque<Message> messages_;  ///< Newest last.
  std::uint64_t messages_seen_ = 0;
  Nanoseconds last_message_ = 0;
  Nanoseconds last_drained_ = 0;
  Nanoseconds held_ = 0;    ///< Total.
  bool in_flight_ = false;  ///< Begun and not drained.

  std::vector<Step> steps_;           ///< One iteration; empty while the period is unknown.
  std::deque<Iteration> iterations_;  ///< Whole ones, newest last.
  Iteration current_;
  std::size_t begun_ = 0;             ///< Steps of the current iteration begun.
  std::size_t newest_ = 0;            ///< Index of the step begun last.
  std::uint64_t cycles_matched_ = 0;  ///< Repetitions seen in a row.
  Profile profile_;
};

}  // namespace weir::agents
