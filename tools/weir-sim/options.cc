#include "tools/weir-sim/options.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "coflow/traces/reader.h"
#include "coflow/traces/transform.h"

namespace weir::tools {
namespace {

/// `port_rate`: bytes per second of the trace's own time, for what a deadline is a multiple of.
Status TransformTrace(const Options& flags, double port_rate, traces::Trace* trace) {
  if (!(std::abs(flags.batch_ms) <= 1e9)) {
    return Status(StatusCode::kInvalidArgument, "--batch_ms: allowed: 0 to 1000000000");
  }
  traces::TransformOptions options;
  options.scale_bytes = flags.scale_bytes;
  options.scale_arrivals = flags.scale_arrivals;
  options.skew_sigma = flags.skew_sigma;
  options.skew_seed = flags.skew_seed;
  options.shuffle_seed = flags.shuffle_seed;
  options.batch_arrivals = std::llround(flags.batch_ms * static_cast<double>(kMillisecond));
  if (flags.deadline_factor != -1) {
    options.deadline_factor = flags.deadline_factor;
  }
  options.deadline_seed = flags.deadline_seed;
  options.port_rate = port_rate;
  if (flags.arrivals != "trace" && flags.arrivals != "zero") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--arrivals: found \"{}\", allowed: trace, zero", flags.arrivals));
  }
  Status status = traces::Transform(options, trace);
  for (auto& coflow : trace->coflows) {
    coflow.arrival = flags.arrivals == "zero" ? 0 : coflow.arrival;
  }
  return status;
}

}  // namespace

std::int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Result<scheduler::SimOptions> SimOptionsOf(const Options& options) {
  constexpr double kMebibyte = 1'048'576;
  if (!(options.port_mib > 0) || !(options.port_mib <= 1e6)) {
    return Error(StatusCode::kInvalidArgument, "--port_mib: allowed: above 0 and at most 1000000");
  }
  if (!(options.delay_ms >= 0) || !(options.delay_ms <= 1e6) || options.levels < 0) {
    return Error(StatusCode::kInvalidArgument, "--delay_ms: allowed: 0 to 1000000; --levels: allowed: 0 or more");
  }
  if (!(options.reporting_interval_ms >= 0) || !(options.reporting_interval_ms <= 1e6)) {
    return Error(StatusCode::kInvalidArgument, "--reporting_interval_ms: allowed: 0 to 1000000");
  }
  if (options.units != "ms" && options.units != "coflowsim") {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--units: found \"{}\", allowed: ms, coflowsim", options.units));
  }
  scheduler::SimOptions sim;
  const double rate = options.port_mib * kMebibyte;
  sim.scale = options.units == "ms" ? scheduler::TimeScale::Milliseconds(rate) : scheduler::TimeScale::CoflowSim(rate);
  // Eight of CoflowSim's milliseconds are one step.
  sim.arrival_step = sim.scale.coflowsim ? std::llround(8 * sim.scale.ticks_per_ms) : 0;
  sim.delay = std::llround(options.delay_ms * rate / 1000.0);
  sim.reporting_interval = std::llround(options.reporting_interval_ms * sim.scale.ticks_per_ms);
  sim.levels = options.levels;
  sim.seed = options.seed;
  sim.clock_ns = &SteadyNanoseconds;
  return sim;
}

Result<traces::Trace> LoadTrace(const Options& options, const scheduler::SimOptions& sim) {
  if (options.trace.empty()) {
    return Error(StatusCode::kInvalidArgument, "--trace is missing; for example --trace FB2010-1Hr-150-0.txt");
  }
  auto trace = traces::Load(options.trace);
  if (!trace) {
    const bool malformed = trace.error().code() == StatusCode::kInvalidArgument;
    return Error(malformed ? StatusCode::kProtocol : trace.error().code(), trace.error().message());
  }
  if (Status status = TransformTrace(options, sim.scale.ticks_per_ms * 1000, &*trace); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return trace;
}

}  // namespace weir::tools
