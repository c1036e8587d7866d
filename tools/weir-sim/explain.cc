#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iostream>

#include "tools/weir-sim/attendant.h"
#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/explanation.h"
#include "tools/weir-sim/runner.h"

namespace weir::tools {
namespace {

/// Its place in the trace.
Result<std::size_t> FindCoflow(const std::string& text, const traces::Trace& trace) {
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--coflow: found \"{}\", allowed: the id of a coflow of the trace, a whole number", text));
  }
  const auto found =
      std::find_if(trace.coflows.begin(), trace.coflows.end(), [id](const auto& coflow) { return coflow.id == id; });
  if (found == trace.coflows.end()) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--coflow: found {}, allowed: the id of one of the {} coflows of {}", id,
                             trace.coflows.size(), trace.name));
  }
  return static_cast<std::size_t>(found - trace.coflows.begin());
}

}  // namespace

int ExplainCommand(const Options& options) {
  const auto form = OutputFormFromName(options.output);
  if (!form) {
    return Fail(form.error());
  }
  const auto experiment = LoadExperiment(options);
  if (!experiment) {
    return Fail(experiment.error());
  }
  const auto coflow = FindCoflow(options.coflow, experiment->trace);
  if (!coflow) {
    return Fail(coflow.error());
  }
  scheduler::WaitRecorder waits(experiment->trace, experiment->fabric.fabric, *coflow);
  options.attendant->Begin(options.policy, experiment->trace.coflows.size());
  Attended observer(options.attendant, &waits);
  const auto run = RunPolicy(*experiment, options.policy, &observer);
  options.attendant->Clear();
  if (!run) {
    return Fail(run.error());
  }
  PrintExplanation({*run, experiment->trace, experiment->fabric.link_names, waits, experiment->sim.scale}, *form,
                   &std::cout);
  return 0;
}

}  // namespace weir::tools
