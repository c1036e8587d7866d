#include "bench/turns_lab/jobs.h"

#include <cmath>

namespace weir::lab {
namespace {

constexpr double kFirstBucketBytes = 1 << 20;
constexpr double kBucketBytes = 25.0 * (1 << 20);
constexpr int kRingMessages = 4;               // at least: gloo's ring keeps two segments a rank under way
constexpr double kRingMessageBytes = 1 << 20;  // at most: gloo's largest segment

}  // namespace

double JobSpec::BytesPerIteration() const {
  if (pipeline) return activation_bytes * micro_batches;
  double bytes = 0;
  for (const Bucket& bucket : buckets) {
    for (const double message : bucket.messages) bytes += message;
  }
  return bytes;
}

JobSpec DataParallel(std::string name, double grad_mb, double compute_ms, int layers) {
  JobSpec spec;
  spec.name = std::move(name);
  spec.compute_s = compute_ms / 1e3;
  const double side = std::floor(std::sqrt(grad_mb * 1e6 / 4 / layers));
  double open = 0;
  for (int layer = 1; layer <= layers; ++layer) {
    open += side * side * 4;
    const double limit = spec.buckets.empty() ? kFirstBucketBytes : kBucketBytes;
    if (open < limit && layer < layers) continue;
    const double at = spec.compute_s / 3 + 2 * spec.compute_s / 3 * layer / layers;
    const double messages = std::max<double>(kRingMessages, std::ceil(open / kRingMessageBytes));
    spec.buckets.push_back({at, std::vector<double>(static_cast<std::size_t>(messages), open / messages)});
    open = 0;
  }
  return spec;
}

JobSpec Pipeline(std::string name, double activation_kb, int micro_batches, double compute_ms) {
  JobSpec spec;
  spec.name = std::move(name);
  spec.pipeline = true;
  spec.micro_batches = micro_batches;
  spec.activation_bytes = activation_kb * 1e3;
  spec.forward_s = compute_ms / 3e3 / micro_batches;
  spec.backward_s = 2 * spec.forward_s;
  return spec;
}

JobModel::JobModel(const JobSpec& spec, double start_s, double noise, std::uint64_t seed, Begin begin)
    : spec_(spec), noise_(noise), random_(seed), begin_(std::move(begin)) {
  StartIteration(start_s);
}

double JobModel::Jitter() {
  return std::max(0.1, std::normal_distribution<double>(1.0, noise_)(random_));
}

void JobModel::StartIteration(double now_s) {
  started_s_ = now_s;
  jitter_ = Jitter();
  next_bucket_ = 0;
  workers_[0] = workers_[1] = Worker{};
}

void JobModel::FinishIteration(double now_s) {
  periods_.push_back(now_s + spec_.overhead_s - started_s_);
  StartIteration(now_s + spec_.overhead_s);
}

void JobModel::Step(double now_s) {
  if (now_s < started_s_) return;
  if (spec_.pipeline) {
    StepPipeline(now_s);
  } else {
    StepDataParallel(now_s);
  }
}

void JobModel::StepDataParallel(double now_s) {
  while (next_bucket_ < spec_.buckets.size() && now_s >= started_s_ + spec_.buckets[next_bucket_].at_s * jitter_) {
    for (const double message : spec_.buckets[next_bucket_].messages) ring_.push_back(message);
    ++next_bucket_;
  }
  if (ring_pending_ > 0) return;
  if (!ring_.empty()) {
    ring_pending_ = 2;
    for (const int rank : {0, 1}) begin_(rank, ring_.front());
    ring_.pop_front();
  } else if (next_bucket_ == spec_.buckets.size() && now_s >= started_s_ + spec_.compute_s * jitter_) {
    FinishIteration(now_s);
  }
}

void JobModel::StepPipeline(double now_s) {
  const int all = spec_.micro_batches;
  for (const int stage : {0, 1}) {
    Worker& worker = workers_[stage];
    if (worker.busy_until_s >= 0) {
      if (now_s < worker.busy_until_s) continue;
      worker.busy_until_s = -1;
      const bool forward = worker.forward_done < all;
      ++(forward ? worker.forward_done : worker.backward_done);
      if (stage == (forward ? 0 : 1)) sends_[stage].push_back(spec_.activation_bytes);
    }
    const bool forward = worker.forward_done < all;
    const int needed = forward ? worker.forward_done : worker.backward_done;
    const bool waits = stage == (forward ? 1 : 0);  // for what the other stage sends
    if ((forward || worker.backward_done < all) && (!waits || worker.received > needed)) {
      worker.busy_until_s = now_s + (forward ? spec_.forward_s : spec_.backward_s) * Jitter();
    }
  }
  for (const int stage : {0, 1}) {
    if (sending_[stage] || sends_[stage].empty()) continue;
    sending_[stage] = true;
    begin_(stage, sends_[stage].front());
    sends_[stage].pop_front();
  }
  if (workers_[0].backward_done == all) FinishIteration(now_s);
}

void JobModel::OnSent(double now_s, int rank) {
  if (spec_.pipeline) {
    sending_[rank] = false;
    ++workers_[1 - rank].received;
  } else {
    --ring_pending_;
  }
  Step(now_s);
}

}  // namespace weir::lab
