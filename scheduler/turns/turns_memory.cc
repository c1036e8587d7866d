// What the turns policy remembers about each job from one decision to the next.
#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/turns/turns.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

constexpr double kShortest_s = 0.001;  // what is left to send counts as at least this

/// Seconds that the job's busiest link is busy per iteration.
double IterationSeconds(const FabricState& state, const JobProfile& profile) {
  return BottleneckShare(state, profile) * ToSeconds(profile.alone);
}

/// log4 of bytes x seconds; the bytes are those of the busiest link, so that the number of ranks does not count.
double SizeOf(const FabricState& state, const JobProfile& profile) {
  double busy = 0;
  double bytes = 0;
  for (const JobProfile::Link& use : profile.links) {
    const double seconds = use.bytes / state.links[use.link].rate;
    if (seconds > busy) {
      busy = seconds;
      bytes = use.bytes;
    }
  }
  return std::log2(std::max(bytes * ToSeconds(profile.alone), 1.0)) / 2;
}

}  // namespace

void TurnsPolicy::GroupLanes(const FabricState& state) {
  lane_first_.assign(state.jobs.size() + 1, 0);
  for (const LaneState& lane : state.lanes) ++lane_first_[lane.job + 1];
  for (std::size_t j = 1; j < lane_first_.size(); ++j) lane_first_[j] += lane_first_[j - 1];
  lanes_.resize(state.lanes.size());
  for (std::uint32_t i = 0; i < state.lanes.size(); ++i) lanes_[lane_first_[state.lanes[i].job]++] = i;
  // Each start has moved to its end, which is the next one's start.
  for (std::size_t j = lane_first_.size() - 1; j > 0; --j) lane_first_[j] = lane_first_[j - 1];
  lane_first_[0] = 0;
}

void TurnsPolicy::Remember(FabricState& state, Nanoseconds now) {
  entries_.clear();
  entry_of_job_.assign(state.jobs.size(), kNone);
  per_link_.resize(state.links.size(), 0.0);
  for (std::uint32_t j = 0; j < state.jobs.size(); ++j) {
    RememberJob(state, j, now);
    if (!state.jobs[j].turn.live) continue;
    entry_of_job_[j] = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back({.job = j});
  }
  Forget(state);
}

void TurnsPolicy::RememberJob(FabricState& state, std::uint32_t index, Nanoseconds now) {
  JobState& job = state.jobs[index];
  JobTurn& turn = job.turn;
  const auto lanes = LanesOf(index);
  const bool active = std::ranges::any_of(lanes, [&](std::uint32_t i) { return state.lanes[i].active; });
  std::uint64_t bytes_sent = 0;
  for (const std::uint32_t i : lanes) bytes_sent += state.lanes[i].bytes_sent;
  if (turn.active && !active) turn.silent_since = now;
  if (!active && turn.live && now - turn.silent_since >= options_.coflow_gap) turn.live = false;
  if (active && !turn.active && (!turn.live || now - turn.silent_since >= options_.coflow_gap)) {
    turn.live = true;
    turn.arrival = now;
    turn.started = false;
    ++turn.coflows;
  }
  turn.active = active;
  turn.overlapped = active && std::ranges::all_of(lanes, [&](std::uint32_t i) {
                      return !state.lanes[i].active || (state.lanes[i].due_known && state.lanes[i].overlapped);
                    });
  if (!active) turn.stalled = turn.granted = turn.waiting = turn.blocking = false;
  if (!turn.live) turn.aged_until = 0;
  RememberLease(turn, bytes_sent, now);
  RememberAge(state, job, now);
  RememberLevel(state, job, lanes, now);
}

void TurnsPolicy::RememberLease(JobTurn& turn, std::uint64_t bytes_sent, Nanoseconds now) const {
  const bool progressed = bytes_sent != turn.bytes_sent;
  turn.bytes_sent = bytes_sent;
  if (turn.stalled && progressed) {
    turn.stalled = false;
    turn.arrival = now;  // It comes back as a newcomer: its old place is gone.
    turn.started = false;
  }
  if (progressed || !turn.blocking) turn.lease_since = now;
  if (turn.blocking && now - turn.lease_since >= options_.lease) {
    turn.stalled = true;
    turn.blocking = false;
    turn.aged_until = 0;
  }
}

void TurnsPolicy::RememberAge(const FabricState& state, JobState& job, Nanoseconds now) const {
  JobTurn& turn = job.turn;
  if (turn.aged_until <= now) turn.aged_until = 0;
  if (!turn.waiting || turn.aged_until != 0) return;
  const auto transfer = static_cast<Nanoseconds>(IterationSeconds(state, job.profile) * 1e9);
  const auto patience = static_cast<Nanoseconds>(options_.aging * static_cast<double>(transfer));
  if (now - turn.waiting_since < std::max(patience, options_.aging_min)) return;
  turn.aged_until = now + std::clamp(transfer, options_.aged_turn_min, options_.aged_turn_max);
  turn.stalled = false;
  turn.lease_since = now;
  turn.waiting_since = now;
}

void TurnsPolicy::RememberLevel(const FabricState& state, JobState& job, std::span<const std::uint32_t> lanes,
                                Nanoseconds now) {
  JobTurn& turn = job.turn;
  const JobProfile& profile = job.profile;
  const double share = BottleneckShare(state, profile);
  if (!options_.levels || profile.confidence < options_.confident || share <= 0) {
    turn.level = -1;
    return;
  }
  turn.size = SizeOf(state, profile);
  const bool inside = turn.level >= 0 && turn.size >= turn.level - options_.level_hysteresis &&
                      turn.size < turn.level + 1 + options_.level_hysteresis;
  if (!inside) turn.level = std::min(static_cast<int>(turn.size), kLevels - 1);
  if (!turn.live) return;
  turn.key = Key(state, job, lanes, now);
}

/// Projected slowdown of the iteration under way if the job went now, over the root of its link share: slowdowns in
/// proportion to that root have the smallest mean on a full link. A little more for who is done soon.
double TurnsPolicy::Key(const FabricState& state, const JobState& job, std::span<const std::uint32_t> lanes,
                        Nanoseconds now) {
  const double alone_s = ToSeconds(job.profile.alone);
  const double left_s = LeftSeconds(state, lanes);
  const double late_s = LatenessSeconds(state, job, lanes, left_s, now);
  const double share = std::max(BottleneckShare(state, job.profile), 0.01);
  const double shortness = alone_s / std::max(left_s, kShortest_s);
  return (1 + late_s / alone_s) / std::sqrt(share) * std::pow(shortness, options_.short_bias);
}

/// By how much the iteration would last longer than alone if the job went now.
double TurnsPolicy::LatenessSeconds(const FabricState& state, const JobState& job, std::span<const std::uint32_t> lanes,
                                    double left_s, Nanoseconds now) const {
  double late_s = 0;
  bool known = false;
  for (const std::uint32_t i : lanes) {
    const LaneState& lane = state.lanes[i];
    if (!lane.active || !lane.due_known) continue;
    known = true;
    late_s = std::max(late_s, ToSeconds(now - lane.due) + lane.bytes_waiting / PathRate(state, lane));
  }
  if (known) return late_s;
  const double elapsed_s = ToSeconds(now - job.profile.iteration_started);
  return std::max(0.0, elapsed_s + left_s - ToSeconds(job.profile.alone));
}

/// How long the busiest link takes for what the lanes still have to send.
double TurnsPolicy::LeftSeconds(const FabricState& state, std::span<const std::uint32_t> lanes) {
  double longest = 0;
  for (const std::uint32_t i : lanes) {
    for (const LinkIndex link : state.lanes[i].links) {
      per_link_[link] += state.lanes[i].bytes_left;
      longest = std::max(longest, per_link_[link] / state.links[link].rate);
    }
  }
  for (const std::uint32_t i : lanes) {
    for (const LinkIndex link : state.lanes[i].links) per_link_[link] = 0;
  }
  return longest;
}

/// Takes links away from holders that are gone, whose coflow has ended, or that lost their turn.
void TurnsPolicy::Forget(FabricState& state) {
  holder_of_link_.assign(state.links.size(), kNone);
  for (std::uint32_t e = 0; e < entries_.size(); ++e) {
    const JobState& job = state.jobs[entries_[e].job];
    if (job.turn.stalled) continue;
    for (const std::uint32_t i : LanesOf(entries_[e].job)) {
      for (const LinkIndex link : state.lanes[i].links) {
        if (state.links[link].holder == job.id) holder_of_link_[link] = e;
      }
    }
  }
  for (LinkIndex link = 0; link < state.links.size(); ++link) {
    if (holder_of_link_[link] == kNone) state.links[link].holder = JobId();
  }
}

}  // namespace weir::scheduler
