#pragma once

#include <memory>

#include "coflow/traces/reader.h"

namespace weir::traces {

/// Job traces between sites as Terra's simulator reads them (docs/trace-format.md). How many sites there are is known
/// only at the end, so the whole file is read at once; memory is bounded by its stages and by pairs of sites.
Result<std::unique_ptr<Reader>> OpenTerra(std::unique_ptr<std::istream> in, std::string origin);

}  // namespace weir::traces
