#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/weir-perf/measure.h"
#include "tools/weir-perf/sheet.h"
#include "tools/weir-perf/soak.h"

namespace weir::tools {

/// "1,64K,1M": bytes, with K, M, G for powers of 1024. Error kInvalidArgument: not a number, none, or above kSizeMax.
Result<std::vector<Bytes>> ParseSizes(std::string_view text);
/// "1M,2.5G": bits a second, with K, M, G for powers of 1000. Error kInvalidArgument.
Result<std::vector<double>> ParseRates(std::string_view text);

Sheet SizesSheet(const std::vector<SizeResult>& results);
Sheet SoakSheet(const SoakResult& result, int seed, double seconds);

}  // namespace weir::tools
