#pragma once

#include "tools/weir-sim/options.h"

namespace weir::tools {

/// Writes `trace` to --out in --format. InvalidArgument for a format that is not known, NotFound if the file cannot be
/// opened, Unavailable if it cannot be written to the end, Unsupported if the format cannot hold the trace.
Status WriteTrace(const Options& options, const traces::Trace& trace);

}  // namespace weir::tools
