#pragma once

#include <cstdint>
#include <vector>

#include "coflow/ids.h"
#include "coflow/job.h"
#include "coflow/units.h"
#include "scheduler/share/max_min.h"

/// What a policy sees and what it answers. Plain data: no policy knows of sockets, threads, clocks or logs.
namespace weir::scheduler {

struct LinkState {
  BytesPerSecond rate = 0;  ///< Payload it can carry, > 0.
  JobId holder;             ///< Memory of the policy: whose turn it is; none while nobody's.
};

/// What a job does each iteration, joined over its processes.
struct JobProfile {
  double confidence = 0;              ///< Below kConfident a policy must not order by it.
  Nanoseconds alone = 0;              ///< Period without contention.
  Nanoseconds period = 0;             ///< Of the last iteration; for people.
  Nanoseconds iteration_started = 0;  ///< When the last iteration ended.
  std::uint64_t iteration = 0;
  struct Link {
    LinkIndex link = 0;
    double bytes = 0;  ///< Per iteration.
  };
  std::vector<Link> links;
};

/// Memory of the turns policy about one job. A new job starts with all defaults.
struct JobTurn {
  bool live = false;              ///< A coflow is under way: active now, or silent for less than the coflow gap.
  bool active = false;            ///< At the last decision.
  Nanoseconds arrival = 0;        ///< When the coflow began; decides among equals.
  Nanoseconds silent_since = 0;   ///< When the last lane went idle.
  bool started = false;           ///< The coflow has had a turn.
  std::uint64_t coflows = 0;      ///< Begun so far.
  int level = -1;                 ///< Size level; -1 while the profile is not known.
  double size = 0;                ///< log4 of bytes x seconds, what the level is the floor of.
  double key = 0;                 ///< Who is further behind; larger is more urgent.
  bool overlapped = false;        ///< Compute covers all it sends now: the job itself does not wait for it.
  bool granted = false;           ///< Some active lane may send.
  bool waiting = false;           ///< Some active lane may not.
  bool blocking = false;          ///< It sends where others wait.
  bool stalled = false;           ///< Lost its turn for want of progress, until it moves again.
  std::uint64_t bytes_sent = 0;   ///< At the last progress, over all lanes.
  Nanoseconds lease_since = 0;    ///< Last progress, or when others began to wait.
  Nanoseconds waiting_since = 0;  ///< Valid while waiting.
  Nanoseconds aged_until = 0;     ///< Goes first until then, because it waited too long.
};

struct JobState {
  JobId id;
  JobClass job_class = JobClass::kBestEffort;
  double weight = 1;  ///< > 0; shares of the max-min policy.
  JobProfile profile;
  JobTurn turn;
};

struct LaneState {
  std::uint64_t id = 0;          ///< Unique in the state; breaks ties.
  std::uint32_t job = 0;         ///< Index into FabricState::jobs.
  std::uint64_t sender = 0;      ///< The process that sends; 0 if not known.
  std::vector<LinkIndex> links;  ///< Its path, at least one link, none twice.
  bool active = false;           ///< Wants the network now,
  Nanoseconds since = 0;         ///< and has so since; valid while active.
  bool adopted = false;          ///< Paced from outside: takes rates, cannot be held.
  std::uint64_t bytes_sent = 0;
  double bytes_left = 0;     ///< Of the current iteration, begun or not; 0 if unknown.
  double bytes_waiting = 0;  ///< Of the messages begun.
  bool due_known = false;
  Nanoseconds due = 0;      ///< By then the messages begun must have left for the iteration to last as long as alone.
  bool overlapped = false;  ///< Compute goes on meanwhile: being late is free until `due`.
  bool next_known = false;
  Nanoseconds next = 0;            ///< When the idle lane is expected to begin, and
  Nanoseconds next_deviation = 0;  ///< how far such expectations have been off, on average.
};

struct FabricState {
  std::vector<LinkState> links;  ///< Index = LinkIndex.
  std::vector<JobState> jobs;    ///< Any order.
  std::vector<LaneState> lanes;  ///< Any order.
};

struct LaneDecision {
  bool hold = false;
  BytesPerSecond rate = 0;  ///< Cap; 0 means none.
  std::uint8_t level = 0;   ///< Queue level 0 (first) .. 7. Follows the class alone, so live sockets never change it.
  bool progress = false;    ///< Others may come to wait for this lane: its progress matters.
  friend bool operator==(const LaneDecision&, const LaneDecision&) = default;
};

struct Decision {
  std::vector<LaneDecision> lanes;  ///< Parallel to FabricState::lanes.
  Nanoseconds next = 0;             ///< Decide again by then even if nothing happens; kNever if there is no need.
};

inline constexpr Nanoseconds kNever = INT64_MAX;
/// Smallest cap on lanes that cannot be held: one can live with it if it outlives us. 1 Mbit/s.
inline constexpr BytesPerSecond kAdoptedFloor = 125'000;

/// Queue level by class, for fabrics with priority queues.
constexpr std::uint8_t QueueLevel(JobClass job_class) {
  return job_class == JobClass::kGuaranteed ? 0 : job_class == JobClass::kBestEffort ? 3 : 7;
}

/// The slowest link of the lane's path.
BytesPerSecond PathRate(const FabricState& state, const LaneState& lane);

/// The seconds per iteration that the job keeps its busiest link busy, over the time alone; 0 if not known.
double BottleneckShare(const FabricState& state, const JobProfile& profile);

}  // namespace weir::scheduler
