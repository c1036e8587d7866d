#pragma once

#include <span>
#include <vector>

#include "scheduler/live/fabric.h"

namespace weir::scheduler {

/// Writes rates into the fabric and remembers what that changed: whose rate is another one than before, and which
/// coflows have any. Thread: one at a time.
class Allocation {
 public:
  explicit Allocation(LiveFabric* fabric);

  /// `rates` parallel to the coflow's flows.
  void Set(CoflowSlot slot, std::span<const WholeRate> rates);
  void SetNothing(CoflowSlot slot);  ///< The same with all rates 0; cheap for who had none.
  void Forget(CoflowSlot slot);      ///< It leaves.

  void ClearChanged() { changed_.clear(); }
  /// Flows whose rate was set to another value since ClearChanged, once for each time; some may have ended since.
  std::span<const FlowIndex> changed() const { return changed_; }
  /// Coflows with a flow whose rate is above 0, in no order.
  std::span<const CoflowSlot> served() const { return served_; }

 private:
  void SetServed(CoflowSlot slot, bool served);
  void ChangeRate(FlowIndex flow, WholeRate rate);

  LiveFabric& fabric_;
  std::vector<FlowIndex> changed_;
  std::vector<CoflowSlot> served_;
  std::vector<std::uint32_t> served_at_;  ///< By slot: position in `served_` + 1; 0: not served.
};

}  // namespace weir::scheduler
