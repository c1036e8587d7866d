#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/bounds/problem.h"

namespace weir::scheduler {

/// Above this many coflows x ports the dense tables of the primal-dual order are not made.
inline constexpr std::size_t kDenseCellsMax = std::size_t{1} << 22;

/// A lower bound for coflows that all may start at the same time, and the prices that prove it.
struct PricedBound {
  double sum = 0;
  std::vector<double> price;  ///< members x ports; sums to 1 over the ports of a member with load.
};

/// Dual value of the primal-dual order (BSSI: Sincronia, SIGCOMM 2018, section 4) on `members` alone. Each step of it
/// spends some of a coflow's weight on one port: the prices. At most kDenseCellsMax members x ports.
PricedBound PrimalDualBound(const BoundProblem& problem, std::span<const std::uint32_t> members);

/// For any prices, the sum of completion times is at least the sum over the ports of the least weighted sum there,
/// weights being the prices: largest price per time first (Smith, 1956). Raises that by `steps` of an exponentiated
/// subgradient from the primal-dual prices; never below their value. O(steps x cells x log n).
PricedBound PriceBound(const BoundProblem& problem, std::span<const std::uint32_t> members, int steps);

/// Both together: `giants` exactly by subsets, the others by prices, and what a giant and another cost each other. If
/// the other one goes first, the giant is later by its load on every port of the giant; if not, the other one is later
/// by M = the sum over its ports of price x load of the giant. So on port p a giant ends no earlier than its load, that
/// of the giants in front of it, and the sum over the others of min(their load on p, M), where what is left of M is
/// taken as paid. `giants` at most kSubsetMembersMax; `others` without them.
double GiantsAndPricesBound(const BoundProblem& problem, std::span<const std::uint32_t> giants,
                            std::span<const std::uint32_t> others, const PricedBound& prices_of_others);

}  // namespace weir::scheduler
