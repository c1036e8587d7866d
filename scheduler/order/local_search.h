#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/load_matrix.h"
#include "scheduler/order/order_search.h"

namespace weir::scheduler {

/// The order `ls`: the better of the primal-dual order and the smallest-bottleneck order, improved by moves of single
/// coflows. A few passes find what many find. The reach of a move is limited, which bounds the decision when very many
/// coflows run: one far away in the order is not a good neighbour. Not thread safe; no allocation once the largest size
/// has been seen.
class LocalSearch {
 public:
  /// Writes the rows of `loads`, first to last. `weights` by row.
  void Sort(const LoadMatrix& loads, std::span<const double> weights, std::vector<std::uint32_t>* rows);

 private:
  static constexpr int kPasses = 4;
  static constexpr std::size_t kReach = 64;

  PrimalDual primal_dual_;
  OrderSearch search_;
  std::vector<double> bottleneck_;
  std::vector<std::uint32_t> other_;
};

}  // namespace weir::scheduler
