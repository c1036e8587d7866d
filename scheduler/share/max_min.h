#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coflow/units.h"

namespace weir::scheduler {

/// Position of a link in the arrays that a policy works on: LinkId.value - 1.
using LinkIndex = std::uint32_t;

/// One claimant of bandwidth. `links` is not owned and must outlive the call; a link appears at most once in it.
struct ShareFlow {
  std::span<const LinkIndex> links;
  double weight = 1;       ///< > 0.
  BytesPerSecond cap = 0;  ///< Never more than this; infinity for none.
};

/// Weighted max-min fair rates by progressive filling: all rates grow in proportion to their weights until a flow meets
/// its cap or a link is full, and those flows stop. In the result every flow is at its cap, or crosses a full link on
/// which no flow has a larger rate for its weight. Exact up to rounding.
///
/// Owns scratch space so that repeated calls do not allocate. Thread: one at a time.
/// Cost: O(rounds * flows * path length); a round ends with at least one flow stopped, so rounds <= flows, and usually
/// there are as many as there are bottlenecks.
class MaxMin {
 public:
  /// `room` is what may be given on each link; it is lowered by what was given, never below 0. `rates` is resized to
  /// the flows. A flow with no links gets its cap.
  void Fill(std::span<const ShareFlow> flows, std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates);

 private:
  void Open(std::span<const ShareFlow> flows, std::size_t links);
  double Step(std::span<const ShareFlow> flows, std::span<const BytesPerSecond> room) const;
  void Advance(std::span<const ShareFlow> flows, double step, std::span<BytesPerSecond> room,
               std::vector<BytesPerSecond>& rates);

  std::vector<double> weight_on_link_;  ///< Of the flows still growing; 0 on links nobody uses.
  std::vector<std::uint32_t> growing_;  ///< Indices of flows.
  std::vector<LinkIndex> touched_;      ///< Links with weight at the start.
  std::vector<bool> full_;              ///< Per link, within one round.
  double level_ = 0;                    ///< Rate per weight reached so far.
};

}  // namespace weir::scheduler
