#pragma once

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "coflow/status.h"
#include "scheduler/bounds/bounds.h"
#include "scheduler/sim/summary.h"

namespace weir::tools {

/// One policy's run over a trace.
struct PolicyRun {
  std::string policy;
  scheduler::SimOutcome outcome;
  scheduler::Summary summary;
  double wall_seconds = 0;
};

/// As a JSON string, in its quotes.
std::string JsonText(std::string_view text);

enum class OutputForm { kTable, kJson, kCsv };
Result<OutputForm> OutputFormFromName(const std::string& name);

/// `bounds` of the problem that all runs solved.
void PrintRuns(std::span<const PolicyRun> runs, const scheduler::Bounds& bounds, OutputForm form,
               const scheduler::TimeScale& scale, std::ostream* out);
void PrintPolicies(OutputForm form, std::ostream* out);
/// Columns coflow_id,cct in the unit of `scale`.
Status WriteCctCsv(const PolicyRun& run, const scheduler::TimeScale& scale, const std::string& path);

}  // namespace weir::tools
