#include "bench/turns_lab/lab.h"

#include <algorithm>

namespace weir::lab {
namespace {

constexpr double kSegments = 3 * 1448;  // a lane with no more than this outstanding counts as idle

constexpr Nanoseconds kLingerGapMax = 10 * kMillisecond;

Nanoseconds ToNanoseconds(double seconds) {
  return static_cast<Nanoseconds>(seconds * 1e9);
}

LaneId LaneOf(std::size_t job, int rank) {
  return LaneId(2 * job + static_cast<std::size_t>(rank) + 1);
}

/// How long the agent waits for the next message before it calls a lane idle.
double Linger(const agents::ProfileLearner& learner) {
  const auto gap = learner.ExpectedGap();
  return !gap || *gap > kLingerGapMax ? 0 : ToSeconds(2 * *gap + kMillisecond);
}

}  // namespace

Lab::Lab(const std::vector<JobSpec>& specs, const std::vector<double>& start_s, scheduler::Policy& policy,
         const LabOptions& options)
    : options_(options), policy_(policy), jobs_(specs.size()) {
  state_.links.assign(2, {.rate = options.payload_rate, .holder = {}});
  for (std::size_t j = 0; j < specs.size(); ++j) {
    scheduler::JobState job;
    job.id = JobId(j + 1);
    state_.jobs.push_back(job);
    for (const int rank : {0, 1}) {
      scheduler::LaneState lane;
      lane.id = LaneOf(j, rank).value;
      lane.job = static_cast<std::uint32_t>(j);
      lane.links = {static_cast<scheduler::LinkIndex>(rank)};
      state_.lanes.push_back(lane);
    }
    jobs_[j].model = std::make_unique<JobModel>(specs[j], start_s[j], options.noise, options.seed * 1000 + j,
                                                [this, j](int rank, double bytes) {
                                                  jobs_[j].ranks[rank].rest = bytes;
                                                  pending_messages_.push_back({j, rank, bytes});
                                                });
  }
}

std::vector<JobResult> Lab::Run() {
  for (double now_s = 0; now_s < options_.seconds; now_s += options_.step_s) {
    for (Job& job : jobs_) job.model->Step(now_s);
    Report(now_s);
    if (changed_ || ToNanoseconds(now_s) >= decision_.next) Decide(now_s);
    Apply(now_s);
    Move(now_s);
  }
  std::vector<JobResult> results;
  for (const Job& job : jobs_) {
    JobResult result;
    double elapsed = 0;
    std::size_t counted = 0;
    for (const double period : job.model->periods()) {
      elapsed += period;
      if (elapsed < options_.warm_s) continue;
      result.mean_s += period;
      ++counted;
    }
    if (counted > 0) result.mean_s /= static_cast<double>(counted);
    result.confidence = job.ranks[0].learner.profile().confidence;
    result.alone_learned_s = ToSeconds(job.ranks[0].learner.profile().alone);
    results.push_back(result);
  }
  return results;
}

/// Tells the learners and the policy's state what has begun and ended.
void Lab::Report(double now_s) {
  const Nanoseconds now = ToNanoseconds(now_s);
  for (const Message& message : pending_messages_) {
    Rank& rank = jobs_[message.job].ranks[message.rank];
    rank.learner.OnMessage(now, LaneOf(message.job, message.rank), static_cast<Bytes>(message.bytes));
    if (rank.hold && rank.held_since < 0) rank.held_since = now_s;
  }
  pending_messages_.clear();
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    for (const int r : {0, 1}) {
      Rank& rank = jobs_[j].ranks[r];
      if (rank.rest > kSegments) {
        rank.idle_since = -1;
      } else if (rank.idle_since < 0) {
        rank.idle_since = now_s;
      }
      const bool active = rank.idle_since < 0 || (rank.reported && now_s < rank.idle_since + Linger(rank.learner));
      if (active == rank.reported) continue;
      rank.reported = active;
      state_.lanes[2 * j + static_cast<std::size_t>(r)].active = active;
      changed_ = true;
    }
  }
}

void Lab::Decide(double now_s) {
  const Nanoseconds now = ToNanoseconds(now_s);
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    scheduler::JobProfile& profile = state_.jobs[j].profile;
    profile.links.clear();
    profile.confidence = 1;
    profile.alone = profile.iteration_started = 0;
    for (const int r : {0, 1}) {
      const Rank& rank = jobs_[j].ranks[r];
      const agents::Profile& learned = rank.learner.profile();
      profile.confidence = std::min(profile.confidence, learned.confidence);
      profile.alone = std::max(profile.alone, learned.alone);
      profile.iteration_started = std::max(profile.iteration_started, learned.iteration_started);
      profile.links.push_back({static_cast<scheduler::LinkIndex>(r), static_cast<double>(learned.bytes_total)});
      scheduler::LaneState& lane = state_.lanes[2 * j + static_cast<std::size_t>(r)];
      lane.bytes_sent = static_cast<std::uint64_t>(rank.sent);
      lane.bytes_waiting = rank.rest;
      lane.bytes_left = rank.rest + static_cast<double>(learned.bytes_left);
      const std::optional<agents::Due> due = rank.learner.CurrentDue();
      lane.due_known = due.has_value();
      lane.due = due ? due->at : 0;
      lane.overlapped = due && due->overlapped;
    }
  }
  policy_.Decide(state_, now, decision_);
  pending_.push_back({now_s + options_.control_delay_s, decision_.lanes});
  changed_ = false;
}

void Lab::Apply(double now_s) {
  while (!pending_.empty() && pending_.front().at_s <= now_s) {
    for (std::size_t i = 0; i < pending_.front().lanes.size(); ++i) {
      Rank& rank = jobs_[i / 2].ranks[i % 2];
      rank.rate = pending_.front().lanes[i].rate;
      SetHold(rank, pending_.front().lanes[i].hold, now_s);
    }
    pending_.pop_front();
  }
}

void Lab::SetHold(Rank& rank, bool hold, double now_s) {
  if (rank.held_since >= 0 && !hold) {
    rank.learner.OnHeld(ToNanoseconds(rank.held_since), ToNanoseconds(now_s));
    rank.held_since = -1;
  }
  if (hold && rank.rest > 0 && rank.held_since < 0) rank.held_since = now_s;
  rank.hold = hold;
}

/// Moves one step's worth of bytes; who may send shares the link evenly, as TCP would.
void Lab::Move(double now_s) {
  for (const int link : {0, 1}) {
    std::vector<std::size_t> senders;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      if (jobs_[j].ranks[link].rest > 0 && !jobs_[j].ranks[link].hold) senders.push_back(j);
    }
    for (const std::size_t j : senders) {
      Rank& rank = jobs_[j].ranks[link];
      const double moved = options_.payload_rate * options_.step_s / static_cast<double>(senders.size());
      rank.rest -= moved;
      rank.sent += moved;
      if (rank.rest > 0) continue;
      rank.rest = 0;
      rank.learner.OnDrained(ToNanoseconds(now_s));
      jobs_[j].model->OnSent(now_s, link);
    }
  }
}

}  // namespace weir::lab
