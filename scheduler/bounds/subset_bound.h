#pragma once

#include <cstdint>
#include <span>

#include "scheduler/bounds/problem.h"

namespace weir::scheduler {

inline constexpr std::size_t kSubsetMembersMax = 26;  ///< The table has 2^n entries of 8 bytes: 512 MB.

/// Least sum of completion times, counted from the release, of `members` alone, ports taken as independent; exact for
/// that relaxation, so a lower bound for the members among others. At most kSubsetMembersMax of them.
///
/// Why it is exact: the completion times of a best schedule, taken as deadlines, are met by earliest deadline first on
/// every port, which is one static order on all ports. In a static order the end of k depends only on the set in front
/// of it, not on the order within; so the least sum over all orders is a walk over subsets (Held and Karp, 1962).
///
/// `charge`: members x ports, added to the time of a member on a port when its end is computed, empty for none. Only
/// for problems without arrivals, where it carries what pairs with coflows outside cost, see offline.h. O(2^n x n x
/// ports that no other port of the member dominates); 8 x 2^n bytes.
double SubsetBound(const BoundProblem& problem, std::span<const std::uint32_t> members, std::span<const double> charge);

}  // namespace weir::scheduler
