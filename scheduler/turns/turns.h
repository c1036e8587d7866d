#pragma once

#include <array>
#include <span>
#include <vector>

#include "scheduler/turns/policy.h"

namespace weir::scheduler {

struct TurnOptions {
  bool levels = true;                          ///< False: FIFO only.
  Nanoseconds coflow_gap = 15 * kMillisecond;  ///< Silence of all lanes of a job that ends its coflow.
  double confident = 0.5;                      ///< Profiles with less are not used.
  double level_hysteresis = 0.15;              ///< How far past its border a size must go to change level, in log4.
  double like = 0.5;        ///< Sizes closer than this, in log4, never preempt each other whatever their levels.
  double lead = 0.2;        ///< How far the key of a preempting job must lead.
  double short_bias = 0.1;  ///< How strongly a job that has little left to send is preferred.
  /// The way of a guaranteed lane is cleared this long before it is expected to begin: what stands past the gates of
  /// others must have left by then. 0: never.
  Nanoseconds clear_ahead = 2500 * kMicrosecond;
  Nanoseconds clear_past = kMillisecond;           ///< And kept clear so long after.
  Nanoseconds clear_deviation = 2 * kMillisecond;  ///< Expectations that are off by more, on average, clear nothing.
  /// Of the lanes on which one process sends at once, the oldest goes first: together the younger ones get this much of
  /// its share, while it still has this long to send. What waits for the first message can begin that much earlier, and
  /// the last one is no later.
  double younger = 1.0 / 16;
  Nanoseconds elder_worth = 20 * kMillisecond;
  double room = 0.2;  ///< A lane goes if this share of its path's rate is left for it, else it is held.
  Nanoseconds tick = 10 * kMillisecond;            ///< How often keys are looked at while two jobs want one link.
  Nanoseconds lease = 100 * kMillisecond;          ///< A job that blocks others must make progress within this.
  double aging = 8;                                ///< Waiting longer than this many times its own transfer alone, and
  Nanoseconds aging_min = 2 * kSecond;             ///< longer than this, sends a job to the front,
  Nanoseconds aged_turn_min = 100 * kMillisecond;  ///< for as long as its own transfer takes, within these bounds.
  Nanoseconds aged_turn_max = kSecond;
};

/// Takes turns: on a link that several jobs want, one goes at its full rate and the others hold.
///
/// 1. Classes are strict.
/// 2. Among jobs of one size level, or whose profile is not known: first come, first served by coflow. Not preemptive.
/// 3. Across levels the job whose iteration would end latest goes first (see Key); only a smaller job preempts, when it
///    leads clearly. Inside a level, bursts that compute covers let pass those that a job waits for.
/// 4. Grants go in that order, each taking what it can on every link of its path; what is left is for the next. A lane
///    that finds too little is held. So no link is idle that an active lane could use, but for 7.
/// 5. A link's holder keeps its right through pauses shorter than the coflow gap; meanwhile others go.
/// 6. A holder without progress, while others wait, loses its turn; a job that waited very long goes first.
/// 7. When a guaranteed lane is about to begin, others are held a moment ahead, so that nothing of theirs is in its
/// way. Lanes that are idle are held where they would have to wait anyway, so that their first write does not get
/// between.
///
/// Cost of a decision: O(lanes x path + n^2 + n x holders), n = jobs with a coflow under way; no allocation when warm.
class TurnsPolicy final : public Policy {
 public:
  explicit TurnsPolicy(TurnOptions options = {});
  std::string_view name() const override { return options_.levels ? "turns" : "fifo"; }
  void Decide(FabricState& state, Nanoseconds now, Decision& decision) override;

 private:
  static constexpr int kLevels = 48;  ///< More than log4 of any product of bytes and seconds that a counter can hold.

  /// One job during one decision.
  struct Entry {
    std::uint32_t job = 0;
    std::uint32_t blockers = 0;  ///< Holders in its way that have not been placed yet.
    bool placed = false;
  };
  /// `holder` is placed before `entry` because it holds a link that `entry` wants; indices into entries_.
  struct Block {
    std::uint32_t holder = 0;
    std::uint32_t entry = 0;
  };

  // turns_memory.cc: what the state remembers.
  void GroupLanes(const FabricState& state);
  void Remember(FabricState& state, Nanoseconds now);
  void RememberJob(FabricState& state, std::uint32_t job, Nanoseconds now);
  void RememberLease(JobTurn& turn, std::uint64_t bytes_sent, Nanoseconds now) const;
  void RememberAge(const FabricState& state, JobState& job, Nanoseconds now) const;
  void RememberLevel(const FabricState& state, JobState& job, std::span<const std::uint32_t> lanes, Nanoseconds now);
  double LeftSeconds(const FabricState& state, std::span<const std::uint32_t> lanes);
  double LatenessSeconds(const FabricState& state, const JobState& job, std::span<const std::uint32_t> lanes,
                         double left_s, Nanoseconds now) const;
  double Key(const FabricState& state, const JobState& job, std::span<const std::uint32_t> lanes, Nanoseconds now);
  void Forget(FabricState& state);

  // turns_order.cc: who goes before whom.
  void Order(const FabricState& state, Nanoseconds now);
  void FindBlocks(const FabricState& state, Nanoseconds now);
  bool Beats(const JobState& challenger, const JobState& holder, Nanoseconds now) const;
  std::uint32_t Select(const FabricState& state, Nanoseconds now, bool blocked_too) const;
  void Place(std::uint32_t entry);

  // turns_grant.cc: what each gets.
  void Grant(const FabricState& state, Nanoseconds now, Decision& decision);
  void GrantJob(const FabricState& state, std::uint32_t job, Decision& decision);
  void Weigh(const FabricState& state);
  void Hold(const FabricState& state, std::uint32_t lane, Decision& decision) const;
  void GrantIdle(const FabricState& state, std::uint32_t lane, Decision& decision) const;
  void ReservePaused(const FabricState& state);
  bool ClearsAhead(const FabricState& state, const LaneState& lane) const;
  void ReserveExpected(const FabricState& state, Nanoseconds now);
  void GrantAdopted(const FabricState& state, Decision& decision) const;
  void Settle(FabricState& state, Nanoseconds now, Decision& decision);
  void SettleJob(FabricState& state, std::uint32_t job, Nanoseconds now, const Decision& decision);
  void SettleHolders(FabricState& state, Nanoseconds now, const Decision& decision);
  void MarkProgress(const FabricState& state, Decision& decision);
  Nanoseconds NextLook(const FabricState& state, Nanoseconds now) const;

  Nanoseconds ClearFrom(const LaneState& lane) const { return lane.next - lane.next_deviation - options_.clear_ahead; }
  Nanoseconds ClearUntil(const LaneState& lane) const {
    return lane.next + 2 * lane.next_deviation + options_.clear_past;
  }
  bool HasRoom(const FabricState& state, const LaneState& lane, BytesPerSecond& room) const;
  std::span<const std::uint32_t> LanesOf(std::uint32_t job) const;

  TurnOptions options_;
  MaxMin max_min_;
  std::vector<std::uint32_t> lane_first_,
      lanes_;                                  ///< Lanes grouped by job: lanes_[lane_first_[j] .. lane_first_[j+1]).
  std::vector<Entry> entries_;                 ///< Jobs with a coflow under way.
  std::vector<std::uint32_t> entry_of_job_;    ///< kNone, or an index into entries_.
  std::vector<std::uint32_t> holder_of_link_;  ///< kNone, or an index into entries_.
  std::vector<std::uint32_t> order_;           ///< Jobs, first to last.
  std::vector<Block> blocks_;
  std::vector<BytesPerSecond> room_;    ///< Left on each link.
  std::vector<ShareFlow> flows_;        ///< Of the job being granted,
  std::vector<std::uint32_t> granted_;  ///< and their lanes.
  std::vector<BytesPerSecond> rates_;
  std::vector<double> per_link_;        ///< Scratch; all 0 between uses.
  std::vector<std::uint32_t> stamp_;    ///< Scratch per link: last job seen there.
  std::vector<std::uint32_t> wanting_;  ///< Per link: jobs with a coflow under way and a lane on it.
  std::vector<std::uint32_t> waiting_;  ///< Per link: lanes held on it.
};

}  // namespace weir::scheduler
