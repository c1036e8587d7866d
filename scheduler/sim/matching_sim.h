#pragma once

#include "coflow/traces/trace.h"
#include "scheduler/order/order.h"
#include "scheduler/sim/options.h"
#include "scheduler/sim/outcome.h"

namespace weir::scheduler {

/// Runs `trace` on one big switch of equal ports where every port serves one flow at a time at full rate (see Matcher),
/// in the order that `order` gives. Event-driven and exact: all quantities are 64-bit integers. Deterministic: the same
/// trace, order and options give the same outcome. Memory: the trace plus what the running coflows need. Thread: the
/// caller's.
SimOutcome RunMatching(const traces::Trace& trace, Order* order, const SimOptions& options);

}  // namespace weir::scheduler
