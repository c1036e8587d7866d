#pragma once

#include <string>

#include "scheduler/sim/observer.h"
#include "tools/weir-sim/experiment.h"
#include "tools/weir-sim/report.h"

namespace weir::tools {

/// Replays the trace under one policy; `observer` may be null. InvalidArgument for a policy that does not parse,
/// Unsupported for one that needs sizes which the trace does not have, or that the fabric or the flags do not allow.
Result<PolicyRun> RunPolicy(const Experiment& experiment, const std::string& policy, scheduler::SimObserver* observer);

}  // namespace weir::tools
