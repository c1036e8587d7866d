#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/load_matrix.h"

namespace weir::scheduler {

/// Sum of weighted completion times when every link serves the coflows in this order by itself and a coflow ends with
/// its last link. A relaxation: no schedule in this order can be better.
double IndependentLinksCost(const LoadMatrix& loads, std::span<const double> weights,
                            std::span<const std::uint32_t> order);

/// Moves single rows to other positions of `order` while that cost falls; at most `passes` passes over all rows and
/// `reach` positions from where a row stands. O(passes x n x reach x links in use). Not thread safe; no allocation once
/// the largest size has been seen.
class OrderSearch {
 public:
  /// Returns by how much the cost fell.
  double Improve(const LoadMatrix& loads, std::span<const double> weights, int passes, std::size_t reach,
                 std::vector<std::uint32_t>* order);

 private:
  void MarkUnused();
  bool TryMoves(std::size_t at, std::size_t reach, std::vector<std::uint32_t>* order);
  double PushBack(std::uint32_t row, std::uint32_t other, const double* ahead) const;
  void Add(std::uint32_t row, std::vector<double>* sums) const;
  void Subtract(std::uint32_t row, std::vector<double>* sums) const;

  const LoadMatrix* loads_ = nullptr;  // of the call in progress, as the next
  std::span<const double> weights_;
  std::vector<std::size_t> marked_;  // by row: where its copy in `marks_` begins; kSparse: it uses few links
  std::vector<double> marks_;        // the times of the other rows, minus infinity on links that they do not use
  std::vector<double> ahead_;        // by link: load in front of the row being moved
  std::vector<double> before_;       // scratch: load in front of the pair being exchanged
  double gained_ = 0;
};

}  // namespace weir::scheduler
