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
  rows_ = slots.size();
  times_.resize(rows_ * used_.size());
  double* out = times_.data();
  for (const std::uint32_t slot : slots) {
    const auto load = table.Load(slot);
    for (const std::uint32_t link : used_) {
      *out++ = static_cast<double>(load[link]) * table.time_per_byte[link];
    }
  }
  IndexCells();
}

void LoadMatrix::IndexCells() {
  cells_.clear();
  first_cell_.assign(1, 0);
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::uint32_t link = 0; link < used_.size(); ++link) {
      if (Row(row)[link] > 0) {
        cells_.push_back({link, Row(row)[link]});
      }
    }
    first_cell_.push_back(cells_.size());
  }
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
  rows_ = rows;
  times_.clear();
  for (std::size_t row = 0; row < rows; ++row) {
    for (const std::uint32_t link : used_) {
      times_.push_back(times[row * links + link]);
    }
  }
  IndexCells();
}

double LoadMatrix::Bottleneck(std::size_t row) const {
  const double* times = Row(row);
  return used_.empty() ? 0 : *std::max_element(times, times + used_.size());
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
    for (std::size_t link = 0; link < links; ++link) {
      const double time = loads.Row(row)[link];
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
    for (std::size_t link = 0; link < links; ++link) {
      const double time = loads.Row(row)[link];
      sum_[link] = left_.empty() ? 0 : std::max(0.0, sum_[link] - time);
      square_[link] = std::max(0.0, square_[link] - time * time);
    }
  }
  return dual;
}

double IndependentLinksCost(const LoadMatrix& loads, std::span<const double> weights,
                            std::span<const std::uint32_t> order) {
  std::vector<double> ahead(loads.links(), 0);
  double cost = 0;
  for (const std::uint32_t row : order) {
    double end = 0;
    for (std::size_t link = 0; link < ahead.size(); ++link) {
      const double time = loads.Row(row)[link];
      ahead[link] += time;
      end = time > 0 ? std::max(end, ahead[link]) : end;
    }
    cost += weights[row] * end;
  }
  return cost;
}

namespace {

using Cells = std::span<const LoadMatrix::Cell>;

/// How much later a row ends when `other` goes in front of it, with `ahead` in front of both.
double PushBack(Cells row, const double* other, const double* ahead) {
  double alone = 0;
  double behind = 0;
  for (const LoadMatrix::Cell& cell : row) {
    const double end = ahead[cell.link] + cell.time;
    alone = std::max(alone, end);
    behind = std::max(behind, end + other[cell.link]);
  }
  return behind - alone;
}

void AddTo(std::vector<double>* sums, Cells cells, double sign) {
  for (const LoadMatrix::Cell& cell : cells) {
    (*sums)[cell.link] += sign * cell.time;
  }
}

}  // namespace

double OrderSearch::Improve(const LoadMatrix& loads, std::span<const double> weights, int passes, std::size_t reach,
                            std::vector<std::uint32_t>* order) {
  gained_ = 0;
  for (int pass = 0; pass < passes; ++pass) {
    bool moved = false;
    ahead_.assign(loads.links(), 0);
    for (std::size_t at = 0; at < order->size(); ++at) {
      moved |= TryMoves(loads, weights, at, reach, order);
      AddTo(&ahead_, loads.Cells((*order)[at]), 1.0);
    }
    if (!moved) {
      break;
    }
  }
  return gained_;
}

bool OrderSearch::TryMoves(const LoadMatrix& loads, std::span<const double> weights, std::size_t at, std::size_t reach,
                           std::vector<std::uint32_t>* order) {
  const std::uint32_t row = (*order)[at];
  const Cells mine = loads.Cells(row);
  double best = -1e-9 * (1.0 + loads.Bottleneck(row));
  std::size_t best_at = at;
  double change = 0;
  before_ = ahead_;
  for (std::size_t to = at + 1; to < std::min(order->size(), at + 1 + reach); ++to) {  // later: others overtake
    const std::uint32_t other = (*order)[to];
    const Cells theirs = loads.Cells(other);
    change += weights[row] * PushBack(mine, loads.Row(other), before_.data()) -
              weights[other] * PushBack(theirs, loads.Row(row), before_.data());
    if (change < best) {
      best = change;
      best_at = to;
    }
    AddTo(&before_, theirs, 1.0);
  }
  change = 0;
  before_ = ahead_;
  for (std::size_t to = at; to-- > at - std::min(at, reach);) {  // earlier: it overtakes others
    const std::uint32_t other = (*order)[to];
    const Cells theirs = loads.Cells(other);
    AddTo(&before_, theirs, -1.0);
    change += weights[other] * PushBack(theirs, loads.Row(row), before_.data()) -
              weights[row] * PushBack(mine, loads.Row(other), before_.data());
    if (change < best) {
      best = change;
      best_at = to;
    }
  }
  if (best_at == at) {
    return false;
  }
  gained_ -= best;
  const auto begin = order->begin();
  const auto from = begin + static_cast<std::ptrdiff_t>(at);
  const auto target = begin + static_cast<std::ptrdiff_t>(best_at);
  if (best_at > at) {
    std::rotate(from, from + 1, target + 1);
    return true;
  }
  for (std::size_t i = best_at; i < at; ++i) {
    AddTo(&ahead_, loads.Cells((*order)[i]), -1.0);  // what stood between is no longer in front of position best_at
  }
  std::rotate(target, from, from + 1);
  for (std::size_t i = best_at; i < at; ++i) {
    AddTo(&ahead_, loads.Cells((*order)[i]), 1.0);
  }
  return true;
}

}  // namespace weir::scheduler
