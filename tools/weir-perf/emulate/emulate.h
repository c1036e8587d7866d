#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coflow/status.h"
#include "tools/weir-perf/emulate/rank.h"
#include "tools/weir-perf/sheet.h"

/// Drives any network plugin of NCCL's the way NCCL's proxy does, without a GPU: a process for each rank, checked to
/// the last number. See docs/nccl.md.
namespace weir::tools::emulate {

/// Runs all ranks to their end. Forks, so only from a process of one thread. Errors: kInvalidArgument for an option,
/// with what is allowed; else the first that a rank met, or what the fault was to show and did not.
Result<Sheet> Emulate(const Options& options);

/// "NAME=VALUE|VALUE": a variable, with what the ranks find in it by turns. Error kInvalidArgument.
Result<std::pair<std::string, std::vector<std::string>>> ParsePerRank(std::string_view text);
/// "none", "abort", "kill". Error kInvalidArgument.
Result<Fault> ParseFault(std::string_view text);
/// "v11", "11", or nothing for the highest: 0. Error kInvalidArgument.
Result<int> ParseVersion(std::string_view text);

}  // namespace weir::tools::emulate
