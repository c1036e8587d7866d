#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/rate/flow_group.h"
#include "scheduler/rate/port_shares.h"

namespace weir::scheduler {

/// Max-min over the flows of one group that uses no inner links: what ProgressiveFilling does, where every flow crosses
/// two links only. Ports that are full close; what their flows use is taken from the ports at the other ends flow by
/// flow, or, where more flows stop than ports are open, by counting what every open port has left.
///
/// O(rounds x ports of the group + flows). Keeps scratch memory. Thread: one at a time. Owned by ProgressiveFilling.
class PortFilling {
 public:
  /// Begins a filling of the group, sets its levels and lowers `room`, by link; room below `full_below` counts as none.
  /// The caller ends the filling.
  void Fill(FlowGroup* group, std::span<double> room, std::span<const double> full_below);

 private:
  void Close(FlowGroup* group, double share);
  void CountAnew(const FlowGroup& group, double share);

  PortShares shares_;          // the positions are the group's local links, the weights numbers of flows
  std::vector<double> begin_;  // room, by local link
};

}  // namespace weir::scheduler
