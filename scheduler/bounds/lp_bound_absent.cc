#include "scheduler/bounds/lp_bound.h"

namespace weir::scheduler {

bool LpBoundAvailable() {
  return false;
}

std::optional<double> LpBound(const BoundProblem& /*problem*/) {
  return std::nullopt;
}

}  // namespace weir::scheduler
