#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "coflow/units.h"

/// Training jobs as the lab plays them: two ranks, one in each site; rank 0 sends on link 0, rank 1 on link 1.
namespace weir::lab {

/// One bucket of a data-parallel job: ready `at` into the iteration, cut into the messages of a ring all-reduce.
struct Bucket {
  double at_s = 0;
  std::vector<double> messages;
};

struct JobSpec {
  std::string name;
  bool pipeline = false;
  double overhead_s = 0.005;  ///< Optimiser and the like, at the end of an iteration.
  // Data parallel.
  double compute_s = 0;
  std::vector<Bucket> buckets;
  // Pipeline of two stages.
  int micro_batches = 0;
  double activation_bytes = 0;
  double forward_s = 0;  ///< Of one micro-batch.
  double backward_s = 0;

  double BytesPerIteration() const;  ///< On each link.
};

/// The buckets that PyTorch's DistributedDataParallel makes of `layers` equal layers: the first holds at least 1 MiB,
/// the others at least 25 MiB; ring all-reduce over two ranks sends each bucket in four messages.
JobSpec DataParallel(std::string name, double grad_mb, double compute_ms, int layers = 8);
JobSpec Pipeline(std::string name, double activation_kb, int micro_batches, double compute_ms);

/// Something a job does at a time. Deterministic for one seed.
class JobModel {
 public:
  /// Called when a rank begins a message: rank 0 or 1, bytes.
  using Begin = std::function<void(int rank, double bytes)>;

  JobModel(const JobSpec& spec, double start_s, double noise, std::uint64_t seed, Begin begin);
  /// Lets everything happen that is due at `now`; call often.
  void Step(double now_s);
  /// The message that `rank` sent last has left.
  void OnSent(double now_s, int rank);
  const std::vector<double>& periods() const { return periods_; }

 private:
  void StartIteration(double now_s);
  void FinishIteration(double now_s);
  void StepDataParallel(double now_s);
  void StepPipeline(double now_s);
  double Jitter();

  const JobSpec spec_;
  const double noise_;
  std::mt19937_64 random_;
  const Begin begin_;
  std::vector<double> periods_;
  double started_s_ = 0;
  double jitter_ = 1;
  // Data parallel: the ring's messages go in step on both ranks.
  std::size_t next_bucket_ = 0;
  std::deque<double> ring_;
  int ring_pending_ = 0;
  // Pipeline.
  struct Worker {
    int forward_done = 0;
    int backward_done = 0;
    int received = 0;
    double busy_until_s = -1;
  };
  Worker workers_[2];
  std::deque<double> sends_[2];
  bool sending_[2] = {false, false};
};

}  // namespace weir::lab
