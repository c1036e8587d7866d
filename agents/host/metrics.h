#pragma once

#include <string>

#include "agents/host/engine.h"
#include "agents/host/status_json.h"

namespace weir::agents {

/// What `weir-agent --http` has at /metrics, in the text format 0.0.4 of Prometheus; docs/metrics.md describes every
/// metric. Series are those of processes that are there, added up over their lanes: at most kMaxProcesses of each.
std::string MetricsText(const AgentEngine& engine, const ShellCounters& counters);

}  // namespace weir::agents
