#pragma once

#include <memory>
#include <ostream>

#include "coflow/traces/reader.h"

namespace weir::traces {

/// Weir's own format, docs/trace-format.md: a header object, then one JSON object a line for each coflow.
Result<std::unique_ptr<Reader>> OpenJsonLines(std::unique_ptr<std::istream> in, std::string origin);
void WriteJsonLines(const Trace& trace, std::ostream* out);

}  // namespace weir::traces
