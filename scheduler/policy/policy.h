#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "coflow/status.h"
#include "scheduler/order/order.h"

namespace weir::scheduler {

/// Reads a policy as people write it: the name of an order, or `order=dclas factor=2 queues=20`. Keys: order, factor,
/// first_limit (bytes), queues, pilots_min, pilot_share, shrink, age_bound, admission. InvalidArgument names the word
/// that is wrong and what is allowed.
Result<OrderOptions> ParsePolicy(std::string_view text);

}  // namespace weir::scheduler
