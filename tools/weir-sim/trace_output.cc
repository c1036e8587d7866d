#include "tools/weir-sim/trace_output.h"

#include <fmt/format.h>

#include <fstream>

#include "coflow/traces/reader.h"

namespace weir::tools {

Status WriteTrace(const Options& options, const traces::Trace& trace) {
  const auto format = traces::FormatFromName(options.format);
  if (!format) {
    return format.error();
  }
  std::ofstream out(options.out);
  if (!out.is_open()) {
    return Status(StatusCode::kNotFound,
                  fmt::format("cannot write --out \"{}\"; name a file in a directory that exists", options.out));
  }
  if (Status status = traces::Write(trace, *format, &out); !status.ok()) {
    return status;
  }
  out.flush();
  return out.good() ? Status::Ok()
                    : Status(StatusCode::kUnavailable,
                             fmt::format("cannot write --out \"{}\" to its end; check the space", options.out));
}

}  // namespace weir::tools
