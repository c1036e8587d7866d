#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "coflow/status.h"
#include "scheduler/order/order.h"
#include "scheduler/rate/allocator.h"

namespace weir::scheduler {

/// Who goes first, and how fast.
struct PolicyOptions {
  OrderOptions order;
  RateOptions rate;
};

/// Reads a policy as people write it: the name of an order, or `order=sebf rate=madd backfill=on`. Keys: order, factor,
/// first_limit (bytes), queues, pilots_min, pilot_share, sample (pilots, ended; by default as the rate needs), history
/// (on, off), shrink, age_bound, admission, rate, backfill (on, off). InvalidArgument names the word that is wrong and
/// what is allowed.
Result<PolicyOptions> ParsePolicy(std::string_view text);

}  // namespace weir::scheduler
