#pragma once

#include <optional>

#include "scheduler/bounds/problem.h"

namespace weir::scheduler {

inline constexpr std::size_t kLpCoflowsMax = 30;
inline constexpr std::size_t kLpEntriesMax = 400'000;  ///< Of the constraint matrix, not counting the triangles.

/// False where Weir was built without CLP.
bool LpBoundAvailable();

/// Lower bound on the sum of completion times, counted from the release, from a linear program over who ends first:
/// x_jk = 1 if j ends no later than k, x_jk + x_kj = 1, no cycles of three; on every port p of k and for every release
/// r up to its own, C_k >= r + L_kp + sum of L_jp x_jk over the j released at r or later (linear ordering relaxation of
/// Potts, Mathematical Programming Study 13, 1980, with release dates and several machines). At least the dual value of
/// the primal-dual order where nobody arrives later. Lowered by one millionth for the solver's tolerance.
///
/// None where the instance is above the limits, coflows wait for others, the solver gave up, or there is no solver.
std::optional<double> LpBound(const BoundProblem& problem);

}  // namespace weir::scheduler
