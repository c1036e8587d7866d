#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/order.h"
#include "scheduler/sim/options.h"
#include "scheduler/sim/outcome.h"

namespace weir::scheduler {

/// The first whole time that is `ticks` or more later than `now`, and later at all; kNever beyond what any trace takes.
std::int64_t TimeAfter(std::int64_t now, double ticks);

/// When the order is computed and when it comes into force: at once, or with the coordination delay of the options
/// (what is seen at one tick of that period takes effect at the next; coflows that came in between go first until
/// then). The same for every simulator. Not thread safe; the order must outlive it.
///
/// Where nobody asks who goes first (`sorts` false), only when a decision is due matters, for what else follows from
/// the table: no order is computed or counted, and placed() is the live slots as they come.
class Decisions {
 public:
  Decisions(Order* order, const SimOptions& options, bool sorts = true)
      : order_(*order), options_(options), sorts_(sorts) {}

  /// The next time at which the order may change by itself; kNever: not before the next event. Only to be asked while a
  /// coflow is live.
  std::int64_t NextChange(const ActiveTable& table, std::int64_t now, Motion& motion);
  void Started() { newcomers_ = true; }
  /// To be called while the row of the coflow still stands.
  void Ended(const ActiveTable& table, std::uint32_t slot);
  /// True if Decide() would compute an order, for which the table must be up to date.
  bool Due(std::int64_t now, bool coflows_changed, bool flow_ended) const;
  /// Brings placed() up to date. Returns true if the order was computed anew or a tick came into force.
  bool Decide(const ActiveTable& table, std::int64_t now, bool coflows_changed, bool flow_ended);
  /// The live slots, most urgent first, as they are to be served now.
  std::span<const std::uint32_t> placed() const { return placed_; }
  void Report(SimOutcome* outcome) const;

 private:
  bool DecideAtTicks(const ActiveTable& table, std::int64_t now);
  void Sort(const ActiveTable& table, std::int64_t now, std::vector<std::uint32_t>* into);

  Order& order_;
  SimOptions options_;
  bool sorts_;
  std::int64_t next_tick_ = kNever;
  std::int64_t change_due_ = kNever;
  bool newcomers_ = false;
  std::vector<std::uint32_t> placed_, pending_, fresh_;  // in force, seen at the last tick, scratch
  std::uint64_t count_ = 0;
  TimeHistogram times_;  // nanoseconds
};

}  // namespace weir::scheduler
