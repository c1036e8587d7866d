#include "scheduler/order/load_matrix.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {

void LoadMatrix::Load(const ActiveTable& table, std::span<const std::uint32_t> slots) {
  any_.assign(table.links(), 0);
  for (const std::uint32_t slot : slots) {
    const auto load = table.Load(slot);
    for (std::size_t link = 0; link < load.size(); ++link) {
      any_[link] |= load[link];
    }
  }
  used_.clear();
  for (std::uint32_t link = 0; link < table.links(); ++link) {
    if (any_[link] != 0) {
      used_.push_back(link);
    }
  }
  Resize(slots.size());
  double* row = times_.data();
  for (const std::uint32_t slot : slots) {
    const auto load = table.Load(slot);
    for (std::size_t link = 0; link < used_.size(); ++link) {
      row[link] = static_cast<double>(load[used_[link]]) * table.time_per_byte[used_[link]];
    }
    row += stride_;
  }
  IndexCells();
}

void LoadMatrix::Resize(std::size_t rows) {
  rows_ = rows;
  stride_ = (used_.size() + 3) / 4 * 4;
  times_.assign(rows_ * stride_, 0);
}

void LoadMatrix::IndexCells() {
  cells_.clear();
  first_cell_.assign(1, 0);
  bottleneck_.clear();
  std::size_t count = 0;
  for (std::size_t row = 0; row < rows_; ++row) {
    const double* times = Row(row);
    double bottleneck = 0;
    cells_.resize(count + used_.size());
    for (std::uint32_t link = 0; link < used_.size(); ++link) {
      cells_[count] = {link, times[link]};  // the next one overwrites a zero: no branch to guess
      count += times[link] > 0 ? 1 : 0;
      bottleneck = std::max(bottleneck, times[link]);
    }
    first_cell_.push_back(count);
    bottleneck_.push_back(bottleneck);
  }
  cells_.resize(count);
}

void LoadMatrix::Load(std::span<const double> times, std::size_t rows, std::size_t links) {
  used_.clear();
  for (std::size_t link = 0; link < links; ++link) {
    for (std::size_t row = 0; row < rows; ++row) {
      if (times[row * links + link] > 0) {
        used_.push_back(static_cast<std::uint32_t>(link));
        break;
      }
    }
  }
  Resize(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t link = 0; link < used_.size(); ++link) {
      times_[row * stride_ + link] = times[row * links + used_[link]];
    }
  }
  IndexCells();
}

double PrimalDual::Sort(const LoadMatrix& loads, std::span<const double> weights, std::vector<std::uint32_t>* order,
                        std::vector<double>* spent) {
  const std::size_t links = loads.links();
  const std::size_t rows = loads.rows();
  sum_.assign(links, 0);
  square_.assign(links, 0);
  weight_.assign(weights.begin(), weights.end());
  left_.resize(rows);
  order->assign(rows, 0);
  if (spent != nullptr) {
    spent->assign(rows * links, 0);
  }
  for (std::uint32_t row = 0; row < rows; ++row) {
    left_[row] = row;
    for (const auto [link, time] : loads.Cells(row)) {
      sum_[link] += time;
      square_[link] += time * time;
    }
  }
  double dual = 0;
  for (std::size_t position = rows; position-- > 0;) {
    const auto busiest = static_cast<std::size_t>(std::max_element(sum_.begin(), sum_.end()) - sum_.begin());
    // Among equals the one that came last goes behind, so the scan keeps the later row on ties.
    std::size_t chosen = left_.size() - 1;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < left_.size(); ++i) {
      const double time = links == 0 ? 0 : loads.Row(left_[i])[busiest];
      if (time > 0 && weight_[left_[i]] / time <= least) {
        least = weight_[left_[i]] / time;
        chosen = i;
      }
    }
    const std::uint32_t row = left_[chosen];
    if (least < std::numeric_limits<double>::infinity()) {
      dual += least * (sum_[busiest] * sum_[busiest] + square_[busiest]) / 2;
      for (const std::uint32_t other : left_) {
        const double spend = std::min(weight_[other], least * loads.Row(other)[busiest]);
        weight_[other] -= spend;
        if (spent != nullptr) {
          (*spent)[other * links + busiest] += spend;
        }
      }
    }
    (*order)[position] = row;
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(chosen));
    for (const auto [link, time] : loads.Cells(row)) {
      sum_[link] = left_.empty() ? 0 : std::max(0.0, sum_[link] - time);
      square_[link] = std::max(0.0, square_[link] - time * time);
    }
  }
  return dual;
}

}  // namespace weir::scheduler
