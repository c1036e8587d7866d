#include "scheduler/order/local_search.h"

#include <algorithm>
#include <numeric>

namespace weir::scheduler {

void LocalSearch::Sort(const LoadMatrix& loads, std::span<const double> weights, std::vector<std::uint32_t>* rows) {
  primal_dual_.Sort(loads, weights, rows);
  bottleneck_.resize(loads.rows());
  for (std::size_t row = 0; row < loads.rows(); ++row) {
    bottleneck_[row] = loads.Bottleneck(row) / weights[row];
  }
  other_.resize(loads.rows());
  std::iota(other_.begin(), other_.end(), 0U);
  std::sort(other_.begin(), other_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return bottleneck_[a] != bottleneck_[b] ? bottleneck_[a] < bottleneck_[b] : a < b;
  });
  if (IndependentLinksCost(loads, weights, other_) < IndependentLinksCost(loads, weights, *rows)) {
    rows->swap(other_);
  }
  search_.Improve(loads, weights, kPasses, kReach, rows);
}

}  // namespace weir::scheduler
