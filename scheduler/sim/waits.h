#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "coflow/traces/trace.h"
#include "scheduler/rate/fabric.h"
#include "scheduler/sim/observer.h"

namespace weir::scheduler {

/// How long another coflow had a link that the watched one had bytes left for; half a link for 2 ticks is 1 tick.
struct Blocker {
  std::size_t coflow = 0;  ///< Its place in the trace.
  double ticks = 0;
};

/// The time in which a coflow had bytes left for one link, from its start to `until`. It adds up: served + the ticks of
/// all blockers + unused = until - start.
struct LinkWait {
  std::uint32_t link = 0;
  double bytes = 0;                    ///< What the coflow sends over it.
  double ideal = 0;                    ///< Time that takes on an empty fabric, ticks.
  std::int64_t until = 0;              ///< When the last of these bytes had left.
  double served = 0;                   ///< Ticks, by the share of the link that the coflow had.
  double unused = 0;                   ///< Ticks, by the share that nobody had: other links of the flows were taken.
  std::vector<Blocker> blockers = {};  ///< Longest first; of equals the first in the trace.

  double blocked() const;
};

/// Finds out why one coflow waited, for whom and on which links. Watches one run; see Links() after it. O(uses) an
/// interval while the coflow is live. Trace and fabric must outlive it.
class WaitRecorder final : public SimObserver {
 public:
  /// `coflow`: its place in the trace.
  WaitRecorder(const traces::Trace& trace, const Fabric& fabric, std::size_t coflow);

  void OnStart(std::size_t coflow, std::int64_t now) override;
  void OnEnd(std::size_t coflow, std::int64_t now) override;
  void OnInterval(std::int64_t begin, std::int64_t end, std::span<const LinkUse> uses) override;
  void OnCapacity(std::uint32_t link, double capacity) override { capacity_[link] = capacity; }

  std::size_t coflow() const { return coflow_; }
  std::int64_t first_served() const { return first_served_; }  ///< Ticks; -1: never.
  /// All links of the coflow: the one that had bytes longest comes first, of equals the one with the larger ideal.
  std::vector<LinkWait> Links() const;

 private:
  struct Open {
    LinkWait wait;
    double left = 0;
    double own = 0, others = 0;  // shares in the present interval
  };
  void Charge(const LinkUse& use, double ticks);

  std::size_t coflow_;
  std::vector<double> capacity_;
  std::vector<std::uint32_t> local_;  // by link; kNone: not one of the coflow's
  std::vector<Open> links_;
  std::vector<std::unordered_map<std::size_t, double>> blocked_;  // by local link: ticks by coflow
  bool live_ = false;
  std::int64_t first_served_ = -1;
};

}  // namespace weir::scheduler
