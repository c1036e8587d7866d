#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "scheduler/bounds/bounds.h"
#include "scheduler/bounds/lp_bound.h"
#include "tools/weir-sim/attendant.h"
#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/html_report.h"
#include "tools/weir-sim/output_file.h"
#include "tools/weir-sim/runner.h"

namespace weir::tools {
namespace {

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

Status WriteReport(const Options& options, const Experiment& experiment, std::span<const PolicyRun> runs,
                   std::span<const std::unique_ptr<RunRecorder>> recorders, const scheduler::Bounds& bounds) {
  std::vector<ChartRun> charts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    charts.push_back({runs[i], *recorders[i]});
  }
  OutputFile file(options.report);
  file.stream() << HtmlReport(charts, {experiment.trace.name, options.fabric, options.command_line,
                                       experiment.fabric.link_names, bounds, experiment.sim.scale});
  return file.Commit();
}

int RunPolicies(const Options& options, const std::vector<std::string>& policies) {
  const auto form = OutputFormFromName(options.output);
  if (!form) {
    return Fail(form.error());
  }
  const auto effort = scheduler::BoundEffortFromName(options.bounds);
  if (!effort) {
    return Fail(effort.error());
  }
  const auto experiment = LoadExperiment(options);
  if (!experiment) {
    return Fail(experiment.error());
  }
  const scheduler::TimeScale& scale = experiment->sim.scale;
  std::vector<PolicyRun> runs;
  std::vector<std::unique_ptr<RunRecorder>> recorders;
  for (const std::string& policy : policies) {
    if (!options.report.empty()) {
      recorders.push_back(std::make_unique<RunRecorder>(experiment->trace.coflows.size(), experiment->fabric.fabric));
    }
    const std::string place = policies.size() == 1 ? "" : fmt::format("{}/{} ", runs.size() + 1, policies.size());
    options.attendant->Begin(place + policy, experiment->trace.coflows.size());
    Attended observer(options.attendant, recorders.empty() ? nullptr : recorders.back().get());
    auto run = RunPolicy(*experiment, policy, &observer);
    options.attendant->Clear();
    if (!run) {
      return Fail(run.error());
    }
    runs.push_back(std::move(*run));
  }
  if (*effort == scheduler::BoundEffort::kFull && !scheduler::LpBoundAvailable()) {
    std::cerr << "weir-sim: no LP bound: built without CLP (Debian: coinor-libclp-dev)\n";
  }
  const auto bounds = scheduler::ComputeBounds(scheduler::ProblemOf(experiment->trace, experiment->sim), *effort);
  PrintRuns(runs, bounds, *form, scale, &std::cout);
  Status status = options.cct_csv.empty() ? Status::Ok() : WriteCctCsv(runs.front(), scale, options.cct_csv);
  if (status.ok() && !options.report.empty()) {
    status = WriteReport(options, *experiment, runs, recorders, bounds);
  }
  return status.ok() ? 0 : Fail(status);
}

}  // namespace

int RunCommand(const Options& options) {
  return options.compat.empty() ? RunPolicies(options, {options.policy}) : RunCompat(options, {options.policy});
}

int CompareCommand(const Options& options) {
  constexpr const char* kKnown = "fifo,scf,ncf,lcf,sebf,bssi,ls,dclas,saath,philae,pilots";
  constexpr const char* kCompat = "FAIR,PFP,FIFO,SCF,NCF,LCF,SEBF,DARK";
  const bool compat = !options.compat.empty();
  const std::string all = compat ? kCompat : kKnown;
  const auto policies = SplitPolicies(options.policies.empty() ? all : options.policies);
  return compat ? RunCompat(options, policies) : RunPolicies(options, policies);
}

}  // namespace weir::tools
