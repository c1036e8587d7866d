#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/active_table.h"

namespace weir::scheduler {

/// Times that each of n coflows needs on each link, packed to the links that anybody uses: the working copy of the
/// orders that look at all coflows together. Rows are numbered in the order of the slots given to Load().
class LoadMatrix {
 public:
  /// Copies the loads of `slots`. No allocation once the largest size has been seen.
  void Load(const ActiveTable& table, std::span<const std::uint32_t> slots);
  /// The same from a dense matrix of times, rows x links; for offline use.
  void Load(std::span<const double> times, std::size_t rows, std::size_t links);

  std::size_t rows() const { return rows_; }
  std::size_t links() const { return used_.size(); }
  /// stride() times: links() of them, then zeros.
  const double* Row(std::size_t row) const { return &times_[row * stride_]; }
  /// links() rounded up to a multiple of four, so that loops over a row need no rest.
  std::size_t stride() const { return stride_; }
  /// The longest time of the row, 0 if it has none.
  double Bottleneck(std::size_t row) const { return bottleneck_[row]; }
  /// The link of the table or matrix that column `link` was packed from.
  std::uint32_t Link(std::size_t link) const { return used_[link]; }

  struct Cell {
    std::uint32_t link = 0;
    double time = 0;
  };
  /// The links of a row with any load, in order; most coflows use few.
  std::span<const Cell> Cells(std::size_t row) const {
    return {cells_.data() + first_cell_[row], first_cell_[row + 1] - first_cell_[row]};
  }

 private:
  void Resize(std::size_t rows);
  void IndexCells();

  std::size_t rows_ = 0;
  std::size_t stride_ = 0;
  std::vector<std::uint32_t> used_;  // the links with any load
  std::vector<std::int64_t> any_;
  std::vector<double> times_;
  std::vector<Cell> cells_;
  std::vector<std::size_t> first_cell_;
  std::vector<double> bottleneck_;
};

/// Primal-dual order (BSSI): places coflows from last to first; the coflow placed last is the one with the least weight
/// per time on the most loaded link. `weights` by row. Writes rows, first to last, and returns the dual value, a lower
/// bound on the sum of weighted completion times of any schedule without arrivals. O(n (n + links)). `spent`, if given:
/// rows x links, how much of a row's weight its steps spent on each link; all of it when every row has a load.
class PrimalDual {
 public:
  double Sort(const LoadMatrix& loads, std::span<const double> weights, std::vector<std::uint32_t>* order,
              std::vector<double>* spent = nullptr);

 private:
  std::vector<double> sum_, square_, weight_;
  std::vector<std::uint32_t> left_;
};

}  // namespace weir::scheduler
