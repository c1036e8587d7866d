#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tools/weir-perf/measure.h"
#include "tools/weir-perf/soak.h"

namespace weir::tools {

enum class PerfOutput { kTable, kJson };

/// Error kInvalidArgument with what is allowed.
Result<PerfOutput> PerfOutputFromName(std::string_view name);

/// "1,64K,1M": bytes, with K, M, G for powers of 1024. Error kInvalidArgument: not a number, none, or above kSizeMax.
Result<std::vector<Bytes>> ParseSizes(std::string_view text);
/// "1M,2.5G": bits a second, with K, M, G for powers of 1000. Error kInvalidArgument.
Result<std::vector<double>> ParseRates(std::string_view text);

void PrintSizes(const std::vector<SizeResult>& results, PerfOutput output, std::ostream* out);
void PrintPacing(const std::vector<PacingResult>& results, PerfOutput output, std::ostream* out);
void PrintSoak(const SoakResult& result, int seed, double seconds, PerfOutput output, std::ostream* out);

}  // namespace weir::tools
