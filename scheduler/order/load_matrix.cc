#include "scheduler/order/load_matrix.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {

void LoadMatrix::Load(const ActiveTable& table, std::span<const std::uint32_t> slots) {
  used_.clear();
  for (std::uint32_t link = 0; link < table.links(); ++link) {
    if (std::any_of(slots.begin(), slots.end(), [&](std::uint32_t slot) { return table.Load(slot)[link] > 0; })) {
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
}

double LoadMatrix::Bottleneck(std::size_t row) const {
  const double* times = Row(row);
  return used_.empty() ? 0 : *std::max_element(times, times + used_.size());
}

double PrimalDual::Sort(const LoadMatrix& loads, std::span<const double> weights, std::vector<std::uint32_t>* order) {
  const std::size_t links = loads.links();
  const std::size_t rows = loads.rows();
  sum_.assign(links, 0);
  square_.assign(links, 0);
  weight_.assign(weights.begin(), weights.end());
  left_.resize(rows);
  order->assign(rows, 0);
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
        weight_[other] = std::max(0.0, weight_[other] - least * loads.Row(other)[busiest]);
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

/// What exchanging two neighbours changes: `ahead` is the load in front of both. Positive: the exchange is worse.
double SwapCost(const double* first, const double* second, double first_weight, double second_weight,
                const double* ahead, std::size_t links) {
  double first_old = 0;
  double first_new = 0;
  double second_old = 0;
  double second_new = 0;
  for (std::size_t link = 0; link < links; ++link) {
    const double a = first[link];
    const double b = second[link];
    const double both = ahead[link] + a + b;
    first_old = std::max(first_old, a > 0 ? ahead[link] + a : 0.0);
    first_new = std::max(first_new, a > 0 ? both : 0.0);
    second_old = std::max(second_old, b > 0 ? both : 0.0);
    second_new = std::max(second_new, b > 0 ? ahead[link] + b : 0.0);
  }
  return first_weight * (first_new - first_old) + second_weight * (second_new - second_old);
}

}  // namespace

double OrderSearch::Improve(const LoadMatrix& loads, std::span<const double> weights, int passes, std::size_t reach,
                            std::vector<std::uint32_t>* order) {
  gained_ = 0;
  for (int pass = 0; pass < passes; ++pass) {
    bool moved = false;
    for (std::size_t at = 0; at < order->size(); ++at) {
      moved |= TryMoves(loads, weights, at, reach, order);
    }
    if (!moved) {
      break;
    }
  }
  return gained_;
}

bool OrderSearch::TryMoves(const LoadMatrix& loads, std::span<const double> weights, std::size_t at, std::size_t reach,
                           std::vector<std::uint32_t>* order) {
  const std::size_t links = loads.links();
  const std::uint32_t row = (*order)[at];
  const double* mine = loads.Row(row);
  before_.assign(links, 0);
  for (std::size_t i = 0; i < at; ++i) {
    const double* times = loads.Row((*order)[i]);
    for (std::size_t link = 0; link < links; ++link) {
      before_[link] += times[link];
    }
  }
  double best = -1e-9 * (1.0 + before_[0] + mine[0]);
  std::size_t best_at = at;
  double change = 0;
  for (std::size_t to = at + 1; to < std::min(order->size(), at + 1 + reach);
       ++to) {  // backwards in time: others overtake
    const std::uint32_t other = (*order)[to];
    const double* theirs = loads.Row(other);
    change += SwapCost(mine, theirs, weights[row], weights[other], before_.data(), links);
    if (change < best) {
      best = change;
      best_at = to;
    }
    for (std::size_t link = 0; link < links; ++link) {
      before_[link] += theirs[link];
    }
  }
  for (std::size_t to = std::min(order->size(), at + 1 + reach); to-- > at + 1;) {
    const double* theirs = loads.Row((*order)[to]);
    for (std::size_t link = 0; link < links; ++link) {
      before_[link] -= theirs[link];
    }
  }
  change = 0;
  for (std::size_t to = at; to-- > at - std::min(at, reach);) {  // forwards: it overtakes others
    const std::uint32_t other = (*order)[to];
    const double* theirs = loads.Row(other);
    for (std::size_t link = 0; link < links; ++link) {
      before_[link] -= theirs[link];
    }
    change += SwapCost(theirs, mine, weights[other], weights[row], before_.data(), links);
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
  } else {
    std::rotate(target, from, from + 1);
  }
  return true;
}

}  // namespace weir::scheduler
