#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "coflow/traces/trace.h"
#include "scheduler/sim/waits.h"
#include "tools/weir-sim/report.h"

namespace weir::tools {

/// Why one coflow took as long as it did. All of it must outlive the call it is given to.
struct Explanation {
  const PolicyRun& run;
  const traces::Trace& trace;
  const std::vector<std::string>& link_names;
  const scheduler::WaitRecorder& waits;
  const scheduler::TimeScale& scale;
};

/// As a table for people (the link that had bytes longest, then where else it waited most), as JSON or as CSV with
/// columns link,what,coflow,time: all of every link.
void PrintExplanation(const Explanation& explanation, OutputForm form, std::ostream* out);

}  // namespace weir::tools
