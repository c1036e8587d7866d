#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "agents/host/profile_learner.h"
#include "bench/turns_lab/jobs.h"
#include "scheduler/turns/policy.h"

namespace weir::lab {

struct LabOptions {
  double seconds = 120;
  double warm_s = 12;  ///< Left out of the results; the profiles are learned in it.
  double step_s = 0.00025;
  double payload_rate = 11.9e6;    ///< Bytes per second of each of the two links.
  double control_delay_s = 0.001;  ///< From an event at a host to the gate at another.
  double noise = 0.01;             ///< Relative deviation of compute times.
  std::uint64_t seed = 1;
};

struct JobResult {
  double mean_s = 0;
  double confidence = 0;  ///< Of the learned profile.
  double alone_learned_s = 0;
};

/// Plays jobs on two links (one a direction) under a policy, in virtual time: the policy and the profile learner are
/// the product's own. What it leaves out: TCP, the hosts' scheduling, everything in the network but the link.
class Lab {
 public:
  Lab(const std::vector<JobSpec>& specs, const std::vector<double>& start_s, scheduler::Policy& policy,
      const LabOptions& options);
  std::vector<JobResult> Run();

 private:
  struct Rank {
    agents::ProfileLearner learner;
    double rest = 0;
    double sent = 0;
    bool reported = false;  ///< Active, as far as the policy knows.
    bool hold = false;
    double rate = 0;
    double held_since = -1;
    double idle_since = -1;  ///< Next to nothing outstanding since then.
  };
  struct Job {
    std::unique_ptr<JobModel> model;
    Rank ranks[2];
  };
  struct Message {
    std::size_t job = 0;
    int rank = 0;
    double bytes = 0;
  };
  struct Pending {
    double at_s = 0;
    std::vector<scheduler::LaneDecision> lanes;
  };

  void Move(double now_s);
  void Report(double now_s);
  void Decide(double now_s);
  void Apply(double now_s);
  void SetHold(Rank& rank, bool hold, double now_s);

  const LabOptions options_;
  scheduler::Policy& policy_;
  std::vector<Job> jobs_;
  scheduler::FabricState state_;
  scheduler::Decision decision_;
  std::deque<Pending> pending_;
  std::vector<Message> pending_messages_;  ///< Begun since the last report.
  bool changed_ = true;
};

}  // namespace weir::lab
