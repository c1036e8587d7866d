#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "coflow/traces/trace.h"
#include "scheduler/order/active_table.h"
#include "scheduler/order/order.h"
#include "scheduler/rate/fabric.h"
#include "scheduler/sim/arrivals.h"
#include "scheduler/sim/options.h"

namespace weir::scheduler {

/// Brings a coflow that starts into the active table and chooses its pilot flows: the same for every simulator. Not
/// thread safe; trace, order and fabric must outlive it.
class Admission {
 public:
  Admission(const traces::Trace& trace, const Order& order, const Fabric& fabric, const SimOptions& options);

  /// A new row of `table` for the coflow; its flows are in pilots() and rest() until the next call.
  std::uint32_t Admit(const traces::TraceCoflow& coflow, std::int64_t now, ActiveTable* table);
  std::span<const MatchFlow> pilots() const { return pilots_; }
  std::span<const MatchFlow> rest() const { return rest_; }

 private:
  void FillRow(const traces::TraceCoflow& coflow, std::int64_t now, std::uint32_t slot, ActiveTable* table) const;
  void SplitPilots(std::int64_t count);

  const Order& order_;
  const Fabric& fabric_;
  TimeScale scale_;
  FlowMerger merger_;
  std::mt19937_64 random_;
  std::vector<MatchFlow> flows_, pilots_, rest_;
};

}  // namespace weir::scheduler
