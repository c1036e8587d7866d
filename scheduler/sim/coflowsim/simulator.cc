#include "scheduler/sim/coflowsim/simulator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {
namespace {

constexpr double kFreeZeroMax = 1e6;
constexpr double kDefaultFactor = 1;  ///< Of the deadlines that are drawn although nobody keeps them.

Status CheckOptions(const Options& options) {
  if (options.epoch_ms <= 0 || options.epoch_ms % kStepMs != 0 || options.epoch_ms > kEndMs) {
    return Status(StatusCode::kInvalidArgument, fmt::format("epoch: found {} ms, allowed: multiples of {} up to {}",
                                                            options.epoch_ms, kStepMs, kEndMs));
  }
  if (!(options.free_zero >= kZero) || options.free_zero > kFreeZeroMax) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("capacity taken for none: found {} bit/s, allowed: {} to {}", options.free_zero, kZero,
                              kFreeZeroMax));
  }
  if (!options.deadline_factor) {
    return Status::Ok();
  }
  if (!(*options.deadline_factor >= 0) || *options.deadline_factor > 1000) {
    return Status(StatusCode::kInvalidArgument, "deadline factor: allowed: 0 to 1000");
  }
  if (options.policy != Policy::kFifo) {
    return Status(StatusCode::kInvalidArgument,
                  "deadlines: CoflowSim takes coflows in order of arrival then; allowed: policy FIFO");
  }
  return Status::Ok();
}

std::unique_ptr<Model> MakeModel(const Options& options, std::uint32_t ports) {
  switch (options.policy) {
    case Policy::kFair:
      return MakeFairModel(ports);
    case Policy::kPfp:
      return MakePfpModel(ports);
    case Policy::kDark:
      return MakeDarkModel(ports);
    default:
      return MakeMaddModel(options, ports);
  }
}

/// A coflow that arrives in (T, T + epoch] is looked at in T; the one that arrives at 0, in 0.
std::int64_t EpochOf(const Coflow& coflow, std::int64_t epoch_ms) {
  const double epochs = std::ceil(coflow.arrival_ms / static_cast<double>(epoch_ms));
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(epochs) - 1) * epoch_ms;
}

/// A coflow of `trace` as it is run from `start_ms` on.
traces::TraceCoflow AsRun(const Coflow& coflow, const traces::Trace& trace, std::int64_t start_ms) {
  traces::TraceCoflow run;
  run.id = trace.coflows[coflow.index].id;
  run.arrival = start_ms * kMillisecond;
  for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
    const auto bytes = static_cast<Bytes>(coflow.bytes[r]) / coflow.senders.size();
    for (const std::uint32_t sender : coflow.senders) {
      run.flows.push_back({sender, coflow.receivers[r], bytes});
    }
  }
  traces::CountEnds(&run);
  return run;
}

/// The loop over epochs and steps. Epochs without a candidate change nothing and are passed over.
class Loop {
 public:
  Loop(const traces::Trace& trace, const Options& options, std::vector<Coflow> coflows)
      : trace_(trace), options_(options), coflows_(std::move(coflows)), model_(MakeModel(options, trace.ports)) {
    start_ms_.assign(coflows_.size(), -1);
    end_ms_.assign(coflows_.size(), -1);
  }

  Result<Outcome> Run();

 private:
  std::int64_t NextEpoch() const;
  void AdmitUpTo(std::int64_t epoch);
  void RunUntil(std::int64_t now, std::int64_t horizon);
  Outcome Collect() const;
  CoflowOutcome OutcomeOf(const Coflow& coflow) const;
  bool IsMet(const Coflow& coflow) const;

  const traces::Trace& trace_;
  Options options_;
  std::vector<Coflow> coflows_;
  std::unique_ptr<Model> model_;
  std::size_t next_ = 0;
  std::size_t active_ = 0;
  std::size_t active_max_ = 0;
  std::vector<std::int64_t> start_ms_, end_ms_;  ///< By index in the trace; -1: not.
};

std::int64_t Loop::NextEpoch() const {
  return next_ == coflows_.size() ? kEndMs : EpochOf(coflows_[next_], options_.epoch_ms);
}

void Loop::AdmitUpTo(std::int64_t epoch) {
  const std::size_t active_before = active_;
  for (; next_ < coflows_.size() && NextEpoch() <= epoch; ++next_) {
    const Coflow& coflow = coflows_[next_];
    if (model_->Admits(coflow)) {
      model_->Start(coflow, epoch);
      start_ms_[coflow.index] = epoch;
      ++active_;
    }
  }
  active_max_ = std::max(active_max_, active_);
  if (active_ > active_before) {
    model_->AfterAdmission(epoch);
  }
}

void Loop::RunUntil(std::int64_t now, std::int64_t horizon) {
  std::vector<std::size_t> ended;
  while (now < horizon && active_ > 0) {
    ended.clear();
    now += model_->Advance((horizon - now) / kStepMs, &ended) * kStepMs;
    for (const std::size_t index : ended) {
      end_ms_[index] = now;
    }
    active_ -= ended.size();
    if (!ended.empty()) {
      model_->AfterDeparture(now - kStepMs);
    }
  }
}

Result<Outcome> Loop::Run() {
  for (std::int64_t epoch = NextEpoch(); epoch < kEndMs; epoch = NextEpoch()) {
    AdmitUpTo(epoch);
    RunUntil(epoch, std::min(NextEpoch(), kEndMs));
  }
  for (const Coflow& coflow : coflows_) {
    const bool waits = &coflow >= coflows_.data() + next_;
    if (waits || (!options_.deadline_factor && end_ms_[coflow.index] < 0)) {
      return Error(
          StatusCode::kUnsupported,
          fmt::format("coflow {} has not ended after {} ms, when CoflowSim's day is over; scale the trace down",
                      trace_.coflows[coflow.index].id, kEndMs));
    }
  }
  return Collect();
}

CoflowOutcome Loop::OutcomeOf(const Coflow& coflow) const {
  CoflowOutcome outcome;
  outcome.id = trace_.coflows[coflow.index].id;
  outcome.arrival = start_ms_[coflow.index] * kTicksPerMs;
  outcome.end = end_ms_[coflow.index] * kTicksPerMs;
  outcome.isolation = std::llround(coflow.bottleneck);
  if (options_.deadline_factor) {
    outcome.deadline = std::llround(coflow.deadline_ms * static_cast<double>(kTicksPerMs));
    outcome.admitted = true;
  }
  return outcome;
}

/// Less than 100 ms late, or less than 3 % by a measure that has 1,000 milliseconds to the second for the deadline. The
/// time of what has not ended is -1.
bool Loop::IsMet(const Coflow& coflow) const {
  const std::int64_t end_ms = end_ms_[coflow.index];
  const double duration = end_ms < 0 ? -1.0 : static_cast<double>(end_ms - start_ms_[coflow.index]);
  return duration - coflow.deadline_ms < 100 || (duration / 8.0) / (coflow.deadline_ms * 128.0 / 1000.0) - 1.0 < 0.03;
}

Outcome Loop::Collect() const {
  Outcome outcome;
  outcome.ended.name = trace_.name;
  outcome.ended.ports = trace_.ports;
  std::int64_t last_end = 0;
  for (const Coflow& coflow : coflows_) {
    if (start_ms_[coflow.index] < 0) {
      ++outcome.refused;
      continue;
    }
    outcome.met += options_.deadline_factor && IsMet(coflow) ? 1U : 0U;
    if (end_ms_[coflow.index] < 0) {
      ++outcome.stuck;
      continue;
    }
    outcome.sim.coflows.push_back(OutcomeOf(coflow));
    outcome.ended.coflows.push_back(AsRun(coflow, trace_, start_ms_[coflow.index]));
    last_end = std::max(last_end, outcome.sim.coflows.back().end);
  }
  if (!outcome.sim.coflows.empty()) {
    outcome.sim.makespan = last_end - outcome.sim.coflows.front().arrival;
    outcome.sim.bytes_moved = static_cast<double>(outcome.ended.TotalBytes());
  }
  outcome.sim.events = model_->allocations();
  outcome.sim.rate_changes = model_->flows_set();
  outcome.sim.active_max = active_max_;
  return outcome;
}

Result<std::vector<Coflow>> CoflowsOf(const traces::Trace& trace, const Options& options) {
  if (Status status = CheckOptions(options); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return ReadCoflows(trace, options.deadline_factor.value_or(kDefaultFactor));
}

}  // namespace

Result<Outcome> RunCoflowSim(const traces::Trace& trace, const Options& options) {
  auto coflows = CoflowsOf(trace, options);
  if (!coflows) {
    return tl::unexpected(coflows.error());
  }
  return Loop(trace, options, std::move(*coflows)).Run();
}

Result<traces::Trace> ProblemOfCoflowSim(const traces::Trace& trace, const Options& options) {
  const auto coflows = CoflowsOf(trace, options);
  if (!coflows) {
    return tl::unexpected(coflows.error());
  }
  traces::Trace problem;
  problem.name = trace.name;
  problem.ports = trace.ports;
  for (const Coflow& coflow : *coflows) {
    problem.coflows.push_back(AsRun(coflow, trace, EpochOf(coflow, options.epoch_ms)));
    if (options.deadline_factor) {
      problem.coflows.back().deadline = std::llround(coflow.deadline_ms * 1.024 * static_cast<double>(kMillisecond));
    }
  }
  return problem;
}

}  // namespace weir::scheduler::coflowsim
