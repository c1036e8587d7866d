#pragma once

#include "coflow/status.h"
#include "coflow/traces/trace.h"
#include "scheduler/order/order.h"
#include "scheduler/rate/allocator.h"
#include "scheduler/rate/fabric.h"
#include "scheduler/sim/options.h"
#include "scheduler/sim/outcome.h"

namespace weir::scheduler {

/// Runs `trace` on `fabric` with fractional rates: `order` says who goes first, `rate` how fast each flow is. Rates are
/// set anew when a coflow starts or ends, a link's capacity changes, the order changes, and, at most once in each
/// reporting interval, when flows have ended; in between every flow moves at a constant rate. Event-driven, no time
/// steps: bytes are exact up to rounding of doubles, ends are rounded up to whole ticks. Deterministic: the same input
/// gives the same outcome. A coflow's pilot flows are served before everything else.
///
/// InvalidArgument names a coflow that can never end because a link of it has no capacity. Memory: the trace plus what
/// the running coflows need. Thread: the caller's.
Result<SimOutcome> RunFluid(const traces::Trace& trace, const Fabric& fabric, Order* order, RateAllocator* rate,
                            const SimOptions& options);

}  // namespace weir::scheduler
