#include "tools/weir-sim/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/policy/policy.h"
#include "scheduler/sim/fluid_sim.h"
#include "scheduler/sim/matching_sim.h"
#include "tools/weir-sim/options.h"

namespace weir::tools {

Result<PolicyRun> RunPolicy(const Experiment& experiment, const std::string& policy, scheduler::SimObserver* observer) {
  const traces::Trace& trace = experiment.trace;
  scheduler::SimOptions options = experiment.sim;
  options.observer = observer;
  options.link_names = experiment.fabric.link_names;
  const auto parsed = scheduler::ParsePolicy(policy);
  if (!parsed) {
    // A name that does not exist is wrong usage here, not a file that cannot be found.
    return Error(StatusCode::kInvalidArgument, parsed.error().message());
  }
  auto order = scheduler::MakeOrder(parsed->order);
  if (!order) {
    return Error(StatusCode::kInvalidArgument, order.error().message());
  }
  const auto rate = scheduler::MakeRate(parsed->rate);
  if (!rate) {
    return Error(StatusCode::kInvalidArgument, rate.error().message());
  }
  const auto unknown =
      std::find_if(trace.coflows.begin(), trace.coflows.end(), [](const auto& c) { return !c.size_known; });
  if (((*order)->needs_sizes() || (*rate != nullptr && (*rate)->needs_sizes())) && unknown != trace.coflows.end()) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("policy {} needs sizes, but coflow {} has none; allowed: fifo, ncf, dclas, saath, philae, "
                             "pilots with any rate but madd, drf, hug",
                             policy, unknown->id));
  }
  if (*rate == nullptr && (options.reporting_interval > 0 || !options.capacity_changes.empty())) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("policy {}: the reporting interval and changes of capacity need a fluid rate, such as "
                             "rate=maxmin; \"weir-sim policies\" lists them",
                             policy));
  }
  if (*rate == nullptr && !experiment.fabric.big_switch) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("policy {}: rate=matching is for --fabric big-switch, found another; allowed there: fluid "
                             "rates, such as \"order={} rate=maxmin\"",
                             policy, parsed->order.name));
  }
  PolicyRun run;
  run.policy = policy;
  const std::int64_t begin = SteadyNanoseconds();
  if (*rate == nullptr) {
    run.outcome = scheduler::RunMatching(trace, order->get(), options);
  } else {
    auto outcome = scheduler::RunFluid(trace, experiment.fabric.fabric, order->get(), rate->get(), options);
    if (!outcome) {
      return tl::unexpected(outcome.error());
    }
    run.outcome = std::move(*outcome);
  }
  run.wall_seconds = static_cast<double>(SteadyNanoseconds() - begin) * 1e-9;
  run.summary = scheduler::Summarise(run.outcome, trace.ports, options.scale);
  return run;
}

}  // namespace weir::tools
