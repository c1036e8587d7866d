#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "scheduler/sim/options.h"

namespace weir::scheduler {

/// Reads failures and degradations as people write them: `5000 up3 0, 9000 up3 1, 9000 down7 0.5`, each a time in the
/// unit of `scale`, a link (up or down and the port, or the name of an inner link; `inner` has those in order) and the
/// share of its capacity that it has from then on, 0 to 1. Sorted by time, equal times in the order given.
/// InvalidArgument says which of them is wrong and what is allowed.
Result<std::vector<CapacityChange>> ParseCapacityChanges(std::string_view text, std::uint32_t ports,
                                                         const TimeScale& scale,
                                                         std::span<const std::string> inner = {});

}  // namespace weir::scheduler
