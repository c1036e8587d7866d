#include <fmt/format.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iostream>
#include <vector>

#include "coflow/traces/reader.h"
#include "coflow/traces/transform.h"
#include "scheduler/bounds/bounds.h"
#include "scheduler/bounds/lp_bound.h"
#include "scheduler/policy/capacity_changes.h"
#include "scheduler/policy/policy.h"
#include "scheduler/sim/fluid_sim.h"
#include "scheduler/sim/matching_sim.h"
#include "tools/weir-sim/report.h"

DEFINE_string(trace, "", "trace file; a bare name is looked for in WEIR_TRACES as well");
DEFINE_string(policy, "ls", "policy of \"run\": a name, or \"order=dclas factor=2 queues=20\"");
DEFINE_string(policies, "fifo,scf,ncf,lcf,sebf,bssi,ls,dclas,saath,philae,pilots",
              "policies of \"compare\", separated by commas");
DEFINE_string(output, "table", "table, json or csv");
DEFINE_string(units, "ms",
              "ms, or coflowsim: arrivals are read and times reported in its unit, rounded up to its step of 8");
DEFINE_double(port_mib, 128, "speed of every port in MiB/s");
DEFINE_double(delay_ms, 0, "coordination delay: what is seen at one tick of this period is acted on at the next");
DEFINE_double(reporting_interval_ms, 0, "fluid rates: flow ends are heard of at multiples of this; 0: at once");
DEFINE_string(capacity_changes, "",
              "fluid rates: failures and degradations, such as \"5000 up3 0, 9000 up3 0.5\": time, link, share");
DEFINE_int32(levels, 0, "priority levels of the fabric, pilots have one more; 0: no limit");
DEFINE_uint64(seed, 1, "seed of the choice of pilot flows");
DEFINE_string(cct_csv, "", "\"run\": write coflow_id,cct here");
DEFINE_double(scale_bytes, 1, "multiply the bytes of every flow");
DEFINE_double(scale_arrivals, 1, "multiply every arrival time");
DEFINE_double(skew_sigma, 0, "split what a port receives over its senders by lognormal shares of this sigma");
DEFINE_uint64(skew_seed, 1, "seed of --skew_sigma");
DEFINE_uint64(shuffle_seed, 0, "deal the arrival times out to the coflows anew; 0: as in the trace");
DEFINE_double(batch_ms, 0, "a coflow that arrives in (T, T + this] arrives at T; 0: as in the trace");
DEFINE_double(deadline_factor, -1, "deadlines of isolation x (1 + U(0,1) x this); -1: as in the trace");
DEFINE_uint64(deadline_seed, 1, "seed of --deadline_factor");
DEFINE_string(arrivals, "trace", "trace, or zero: every coflow may start at time 0 (the offline problem)");
DEFINE_string(bounds, "quick",
              "effort of the lower bounds: none (isolation alone), quick (a second) or full (seconds)");
DEFINE_string(format, "weir", "\"convert\": facebook, sincronia or weir");
DEFINE_string(out, "", "\"convert\": file to write");

namespace {

using weir::Result;
using weir::Status;
using weir::StatusCode;
using weir::scheduler::SimOptions;
using weir::tools::PolicyRun;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr const char* kUsage =
    "compares coflow schedulers on a trace.\n"
    "  weir-sim run      --trace FILE --policy ls [--cct_csv OUT]\n"
    "  weir-sim compare  --trace FILE [--policies sebf,ls] [--output json]\n"
    "  weir-sim convert  --trace FILE --format weir --out FILE\n"
    "  weir-sim policies\n"
    "Example, the field's trace in CoflowSim's unit:\n"
    "  weir-sim compare --trace FB2010-1Hr-150-0.txt --units coflowsim --policies sebf,ls,pilots";

std::int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int Fail(const Status& status) {
  std::cerr << "weir-sim: " << status.message() << '\n';
  return status.code() == StatusCode::kNotFound ? kFailed : kWrongUsage;
}

Result<SimOptions> OptionsFromFlags() {
  constexpr double kMebibyte = 1'048'576;
  if (!(FLAGS_port_mib > 0) || !(FLAGS_port_mib <= 1e6)) {
    return weir::Error(StatusCode::kInvalidArgument, "--port_mib: allowed: above 0 and at most 1000000");
  }
  if (!(FLAGS_delay_ms >= 0) || !(FLAGS_delay_ms <= 1e6) || FLAGS_levels < 0) {
    return weir::Error(StatusCode::kInvalidArgument, "--delay_ms: allowed: 0 to 1000000; --levels: allowed: 0 or more");
  }
  if (!(FLAGS_reporting_interval_ms >= 0) || !(FLAGS_reporting_interval_ms <= 1e6)) {
    return weir::Error(StatusCode::kInvalidArgument, "--reporting_interval_ms: allowed: 0 to 1000000");
  }
  if (FLAGS_units != "ms" && FLAGS_units != "coflowsim") {
    return weir::Error(StatusCode::kInvalidArgument,
                       fmt::format("--units: found \"{}\", allowed: ms, coflowsim", FLAGS_units));
  }
  SimOptions options;
  const double rate = FLAGS_port_mib * kMebibyte;
  options.scale = FLAGS_units == "ms" ? weir::scheduler::TimeScale::Milliseconds(rate)
                                      : weir::scheduler::TimeScale::CoflowSim(rate);
  // Eight of CoflowSim's milliseconds are one step.
  options.arrival_step = options.scale.coflowsim ? std::llround(8 * options.scale.ticks_per_ms) : 0;
  options.delay = std::llround(FLAGS_delay_ms * rate / 1000.0);
  options.levels = FLAGS_levels;
  options.reporting_interval = std::llround(FLAGS_reporting_interval_ms * options.scale.ticks_per_ms);
  options.seed = FLAGS_seed;
  options.clock_ns = &SteadyNanoseconds;
  return options;
}

/// `port_rate`: bytes per second of the trace's own time, for what a deadline is a multiple of.
Status TransformByFlags(double port_rate, weir::traces::Trace* trace) {
  if (!(std::abs(FLAGS_batch_ms) <= 1e9)) {
    return Status(StatusCode::kInvalidArgument, "--batch_ms: allowed: 0 to 1000000000");
  }
  weir::traces::TransformOptions options;
  options.scale_bytes = FLAGS_scale_bytes;
  options.scale_arrivals = FLAGS_scale_arrivals;
  options.skew_sigma = FLAGS_skew_sigma;
  options.skew_seed = FLAGS_skew_seed;
  options.shuffle_seed = FLAGS_shuffle_seed;
  options.batch_arrivals = std::llround(FLAGS_batch_ms * static_cast<double>(weir::kMillisecond));
  if (FLAGS_deadline_factor != -1) {
    options.deadline_factor = FLAGS_deadline_factor;
  }
  options.deadline_seed = FLAGS_deadline_seed;
  options.port_rate = port_rate;
  if (FLAGS_arrivals != "trace" && FLAGS_arrivals != "zero") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--arrivals: found \"{}\", allowed: trace, zero", FLAGS_arrivals));
  }
  Status status = weir::traces::Transform(options, trace);
  for (auto& coflow : trace->coflows) {
    coflow.arrival = FLAGS_arrivals == "zero" ? 0 : coflow.arrival;
  }
  return status;
}

Result<PolicyRun> RunPolicy(const weir::traces::Trace& trace, const std::string& policy, const SimOptions& options) {
  const auto parsed = weir::scheduler::ParsePolicy(policy);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  auto order = weir::scheduler::MakeOrder(parsed->order);
  if (!order) {
    return tl::unexpected(order.error());
  }
  const auto unknown =
      std::find_if(trace.coflows.begin(), trace.coflows.end(), [](const auto& c) { return !c.size_known; });
  if (((*order)->needs_sizes() || parsed->rate.name == "madd") && unknown != trace.coflows.end()) {
    return weir::Error(
        StatusCode::kUnsupported,
        fmt::format("policy {} needs sizes, but coflow {} has none; allowed: fifo, ncf, dclas, saath, philae, "
                    "pilots with any rate but madd",
                    policy, unknown->id));
  }
  PolicyRun run;
  run.policy = policy;
  const std::int64_t begin = SteadyNanoseconds();
  const auto rate = weir::scheduler::MakeRate(parsed->rate);
  if (*rate == nullptr && (options.reporting_interval > 0 || !options.capacity_changes.empty())) {
    return weir::Error(
        StatusCode::kUnsupported,
        fmt::format("policy {}: the reporting interval and changes of capacity need a fluid rate, such as "
                    "rate=maxmin; \"weir-sim policies\" lists them",
                    policy));
  }
  if (*rate == nullptr) {
    run.outcome = weir::scheduler::RunMatching(trace, order->get(), options);
  } else {
    auto outcome = weir::scheduler::RunFluid(trace, weir::scheduler::Fabric::BigSwitch(trace.ports), order->get(),
                                             rate->get(), options);
    if (!outcome) {
      return tl::unexpected(outcome.error());
    }
    run.outcome = std::move(*outcome);
  }
  run.wall_seconds = static_cast<double>(SteadyNanoseconds() - begin) * 1e-9;
  run.summary = weir::scheduler::Summarise(run.outcome, trace.ports, options.scale);
  return run;
}

std::vector<std::string> SplitPolicies(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

int RunPolicies(const weir::traces::Trace& trace, const std::vector<std::string>& policies, const SimOptions& options,
                weir::tools::OutputForm form) {
  const auto effort = weir::scheduler::BoundEffortFromName(FLAGS_bounds);
  if (!effort) {
    return Fail(effort.error());
  }
  std::vector<PolicyRun> runs;
  for (const std::string& policy : policies) {
    auto run = RunPolicy(trace, policy, options);
    if (!run) {
      return Fail(Status(StatusCode::kInvalidArgument, run.error().message()));
    }
    runs.push_back(std::move(*run));
  }
  if (*effort == weir::scheduler::BoundEffort::kFull && !weir::scheduler::LpBoundAvailable()) {
    std::cerr << "weir-sim: no LP bound: built without CLP (Debian: coinor-libclp-dev)\n";
  }
  weir::tools::PrintRuns(runs, weir::scheduler::ComputeBounds(weir::scheduler::ProblemOf(trace, options), *effort),
                         form, options.scale, &std::cout);
  if (!FLAGS_cct_csv.empty()) {
    if (Status status = weir::tools::WriteCctCsv(runs.front(), options.scale, FLAGS_cct_csv); !status.ok()) {
      std::cerr << "weir-sim: " << status.message() << '\n';
      return kFailed;
    }
  }
  return 0;
}

int Convert(const weir::traces::Trace& trace) {
  const auto format = weir::traces::FormatFromName(FLAGS_format);
  if (!format) {
    return Fail(format.error());
  }
  std::ofstream out(FLAGS_out);
  if (!out.is_open()) {
    return Fail(Status(StatusCode::kNotFound,
                       fmt::format("cannot write --out \"{}\"; name a file in a directory that exists", FLAGS_out)));
  }
  const Status status = weir::traces::Write(trace, *format, &out);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  gflags::SetUsageMessage(kUsage);
  gflags::SetVersionString(WEIR_VERSION);
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  const std::string command = argc == 2 ? argv[1] : "";
  const auto form = weir::tools::OutputFormFromName(FLAGS_output);
  if (!form) {
    return Fail(form.error());
  }
  if (command == "policies") {
    weir::tools::PrintPolicies(*form, &std::cout);
    return 0;
  }
  if (command != "run" && command != "compare" && command != "convert") {
    std::cerr << "weir-sim: expected one command: run, compare, convert or policies\n" << kUsage << '\n';
    return kWrongUsage;
  }
  if (FLAGS_trace.empty()) {
    return Fail(Status(StatusCode::kInvalidArgument, "--trace is missing; for example --trace FB2010-1Hr-150-0.txt"));
  }
  auto options = OptionsFromFlags();
  if (!options) {
    return Fail(options.error());
  }
  auto trace = weir::traces::Load(FLAGS_trace);
  if (!trace) {
    return Fail(trace.error());
  }
  auto changes = weir::scheduler::ParseCapacityChanges(FLAGS_capacity_changes, trace->ports, options->scale);
  if (!changes) {
    return Fail(changes.error());
  }
  options->capacity_changes = std::move(*changes);
  if (const Status status = TransformByFlags(options->scale.ticks_per_ms * 1000, &*trace); !status.ok()) {
    return Fail(status);
  }
  if (command == "convert") {
    return Convert(*trace);
  }
  return RunPolicies(*trace, command == "run" ? std::vector<std::string>{FLAGS_policy} : SplitPolicies(FLAGS_policies),
                     *options, *form);
}
