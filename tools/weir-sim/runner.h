#pragma once

#include <string>

#include "coflow/traces/trace.h"
#include "tools/weir-sim/report.h"

namespace weir::tools {

/// Replays `trace` under one policy. InvalidArgument for a policy that does not parse, Unsupported for one that needs
/// sizes which the trace does not have.
Result<PolicyRun> RunPolicy(const traces::Trace& trace, const std::string& policy,
                            const scheduler::SimOptions& options);

}  // namespace weir::tools
