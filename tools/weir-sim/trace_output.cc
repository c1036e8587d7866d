#include "tools/weir-sim/trace_output.h"

#include <fmt/format.h>

#include "coflow/traces/reader.h"
#include "tools/weir-sim/output_file.h"

namespace weir::tools {

Status WriteTrace(const Options& options, const traces::Trace& trace) {
  const auto format = traces::FormatFromName(options.format);
  if (!format) {
    return format.error();
  }
  OutputFile out(options.out);
  if (!out.is_open()) {
    return Status(StatusCode::kNotFound,
                  fmt::format("cannot write --out \"{}\"; name a file in a directory that exists", options.out));
  }
  if (Status status = traces::Write(trace, *format, &out.stream()); !status.ok()) {
    return status;
  }
  return out.Commit();
}

}  // namespace weir::tools
