#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "scheduler/bounds/bounds.h"
#include "scheduler/sim/coflowsim/simulator.h"
#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/report.h"
#include "tools/weir-sim/trace_output.h"

namespace weir::tools {
namespace {

namespace coflowsim = scheduler::coflowsim;

/// CoflowSim has its own ports, clock, deadlines and no coordination: what would set these is refused.
Status CheckFlags(const Options& options) {
  if (options.compat != "coflowsim") {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("--compat: found \"{}\", allowed: coflowsim", options.compat));
  }
  const Options defaults;
  const std::pair<std::string_view, bool> refused[] = {
      {"progress", options.progress == "on"},
      {"report", !options.report.empty()},
      {"fabric", options.fabric != defaults.fabric || options.leaves != defaults.leaves ||
                     options.spines != defaults.spines || options.oversubscription != defaults.oversubscription},
      {"port_mib", options.port_mib != defaults.port_mib},
      {"delay_ms", options.delay_ms != defaults.delay_ms},
      {"reporting_interval_ms", options.reporting_interval_ms != defaults.reporting_interval_ms},
      {"capacity_changes", !options.capacity_changes.empty()},
      {"levels", options.levels != defaults.levels},
      {"seed", options.seed != defaults.seed},
      {"deadline_seed", options.deadline_seed != defaults.deadline_seed},
      {"batch_ms", options.batch_ms != defaults.batch_ms}};
  for (const auto& [name, changed] : refused) {
    if (changed) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("--{} does not go with --compat, for CoflowSim has no such thing; allowed: to leave "
                                "one of them out",
                                name));
    }
  }
  return Status::Ok();
}

/// The trace with the changes that its flags ask for, but deadlines; `sim` gets CoflowSim's unit.
Result<traces::Trace> LoadCompatTrace(const Options& options, scheduler::SimOptions* sim) {
  if (Status status = CheckFlags(options); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  Options of_trace = options;
  of_trace.units = "coflowsim";
  of_trace.deadline_factor = -1;
  auto sim_options = SimOptionsOf(of_trace);
  if (!sim_options) {
    return tl::unexpected(sim_options.error());
  }
  *sim = std::move(*sim_options);
  return LoadTrace(of_trace, *sim);
}

Result<coflowsim::Options> CompatOptionsOf(const Options& options, const std::string& policy) {
  coflowsim::Options compat;
  const auto named = coflowsim::PolicyFromName(policy);
  if (!named) {
    return tl::unexpected(named.error());
  }
  compat.policy = *named;
  compat.free_zero = options.compat_zero_bps;
  if (options.compat_arrivals == "exact") {
    compat.epoch_ms = coflowsim::kStepMs;
  } else if (options.compat_arrivals != "default") {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--compat_arrivals: found \"{}\", allowed: default, exact", options.compat_arrivals));
  }
  if (options.deadline_factor != -1) {
    compat.deadline_factor = options.deadline_factor;
  }
  return compat;
}

/// One run, and the problem that it solved in `solved`.
Result<PolicyRun> RunOne(const traces::Trace& trace, const coflowsim::Options& compat, const scheduler::SimOptions& sim,
                         traces::Trace* solved) {
  const std::int64_t begin = SteadyNanoseconds();
  auto outcome = coflowsim::RunCoflowSim(trace, compat);
  if (!outcome) {
    return tl::unexpected(outcome.error());
  }
  PolicyRun run;
  run.wall_seconds = static_cast<double>(SteadyNanoseconds() - begin) * 1e-9;
  run.outcome = std::move(outcome->sim);
  run.summary = scheduler::Summarise(run.outcome, trace.ports, sim.scale);
  if (compat.deadline_factor) {
    run.summary.deadlines += outcome->refused + outcome->stuck;
    run.summary.admitted += outcome->stuck;
    run.summary.met = outcome->met;
    run.summary.admitted_late = run.summary.admitted - outcome->met;
  }
  if (outcome->stuck > 0) {
    std::cerr << fmt::format(
        "weir-sim: {} admitted coflows never end, stopped for good by a refusal; like CoflowSim, this counts them as "
        "met. The times are without them\n",
        outcome->stuck);
  }
  *solved = std::move(outcome->ended);
  return run;
}

}  // namespace

int RunCompat(const Options& options, const std::vector<std::string>& policies) {
  const auto form = OutputFormFromName(options.output);
  if (!form) {
    return Fail(form.error());
  }
  const auto effort = scheduler::BoundEffortFromName(options.bounds);
  if (!effort) {
    return Fail(effort.error());
  }
  scheduler::SimOptions sim;
  const auto trace = LoadCompatTrace(options, &sim);
  if (!trace) {
    return Fail(trace.error());
  }
  std::vector<PolicyRun> runs;
  traces::Trace solved;
  for (const std::string& policy : policies) {
    const auto compat = CompatOptionsOf(options, policy);
    if (!compat) {
      return Fail(compat.error());
    }
    if (compat->deadline_factor && policies.size() > 1) {
      return Fail(Status(StatusCode::kInvalidArgument,
                         "--deadline_factor with --compat: who is admitted would differ; allowed: --policies FIFO"));
    }
    auto run = RunOne(*trace, *compat, sim, &solved);
    if (!run) {
      return Fail(run.error());
    }
    run->policy = coflowsim::PolicyName(compat->policy);
    runs.push_back(std::move(*run));
  }
  PrintRuns(runs, scheduler::ComputeBounds(scheduler::ProblemOf(solved, sim), *effort), *form, sim.scale, &std::cout);
  const Status status = options.cct_csv.empty() ? Status::Ok() : WriteCctCsv(runs.front(), sim.scale, options.cct_csv);
  return status.ok() ? 0 : Fail(status);
}

int ConvertCompat(const Options& options) {
  scheduler::SimOptions sim;
  const auto trace = LoadCompatTrace(options, &sim);
  if (!trace) {
    return Fail(trace.error());
  }
  const auto compat = CompatOptionsOf(options, "FIFO");
  if (!compat) {
    return Fail(compat.error());
  }
  const auto problem = coflowsim::ProblemOfCoflowSim(*trace, *compat);
  if (!problem) {
    return Fail(problem.error());
  }
  const Status status = WriteTrace(options, *problem);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace weir::tools
