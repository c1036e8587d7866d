#include "coflow/traces/reader.h"
#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/trace_output.h"

namespace weir::tools {

int ConvertCommand(const Options& options) {
  if (!options.compat.empty()) {
    return ConvertCompat(options);
  }
  const auto sim = SimOptionsOf(options);
  if (!sim) {
    return Fail(sim.error());
  }
  const auto trace = LoadTrace(options, *sim);
  if (!trace) {
    return Fail(trace.error());
  }
  const Status status = WriteTrace(options, *trace);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace weir::tools
