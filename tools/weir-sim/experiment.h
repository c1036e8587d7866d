#pragma once

#include "coflow/traces/trace.h"
#include "scheduler/sim/options.h"
#include "tools/weir-sim/fabric.h"
#include "tools/weir-sim/options.h"

namespace weir::tools {

/// What policies are run on: everything that the flags say besides the policy.
struct Experiment {
  traces::Trace trace;
  NamedFabric fabric;
  scheduler::SimOptions sim;
};

/// Reads the trace and makes the fabric. The errors are those of LoadTrace() and FabricChoice; InvalidArgument also for
/// --capacity_changes.
Result<Experiment> LoadExperiment(const Options& options);

}  // namespace weir::tools
