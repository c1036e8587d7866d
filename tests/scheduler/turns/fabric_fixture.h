#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/turns/turns.h"

namespace weir::scheduler {

/// A fabric built by hand, and a policy that is asked about it. Times in ms, rates in bytes/s.
class FabricFixture : public ::testing::Test {
 protected:
  static constexpr BytesPerSecond kRate = 10e6;

  explicit FabricFixture(std::string_view policy = "turns") : policy_(std::move(*MakePolicy(policy))) {}

  LinkIndex Link(BytesPerSecond rate = kRate) {
    state_.links.push_back({.rate = rate, .holder = {}});
    return static_cast<LinkIndex>(state_.links.size() - 1);
  }
  std::uint32_t Job(JobClass job_class = JobClass::kBestEffort) {
    JobState job;
    job.id = JobId(state_.jobs.size() + 1);
    job.job_class = job_class;
    state_.jobs.push_back(job);
    return static_cast<std::uint32_t>(state_.jobs.size() - 1);
  }
  std::uint32_t Lane(std::uint32_t job, std::vector<LinkIndex> links, bool active = false) {
    LaneState lane;
    lane.id = state_.lanes.size() + 1;
    lane.job = job;
    lane.links = std::move(links);
    lane.active = active;
    state_.lanes.push_back(lane);
    return static_cast<std::uint32_t>(state_.lanes.size() - 1);
  }
  /// The job moves `bytes` over each of `links` in an iteration that lasts `alone_ms` alone.
  void Profile(std::uint32_t job, double bytes, double alone_ms, std::vector<LinkIndex> links) {
    JobProfile& profile = state_.jobs[job].profile;
    profile.confidence = 1;
    profile.alone = static_cast<Nanoseconds>(alone_ms * 1e6);
    profile.iteration_started = now_;
    profile.links.clear();
    for (const LinkIndex link : links) profile.links.push_back({link, bytes});
  }
  void Due(std::uint32_t lane, double in_ms, bool overlapped = false) {
    state_.lanes[lane].due_known = true;
    state_.lanes[lane].due = now_ + static_cast<Nanoseconds>(in_ms * 1e6);
    state_.lanes[lane].overlapped = overlapped;
  }
  void Left(std::uint32_t lane, double bytes) {
    state_.lanes[lane].bytes_left = state_.lanes[lane].bytes_waiting = bytes;
  }
  const Decision& Decide(double after_ms = 0) {
    now_ += static_cast<Nanoseconds>(after_ms * 1e6);
    policy_->Decide(state_, now_, decision_);
    return decision_;
  }
  void Start(std::uint32_t lane) { state_.lanes[lane].active = true; }
  void Stop(std::uint32_t lane) { state_.lanes[lane].active = false; }
  bool Held(std::uint32_t lane) const { return decision_.lanes[lane].hold; }
  BytesPerSecond RateOf(std::uint32_t lane) const { return decision_.lanes[lane].rate; }

  FabricState state_;
  Decision decision_;
  Nanoseconds now_ = kSecond;
  std::unique_ptr<Policy> policy_;
};

}  // namespace weir::scheduler
