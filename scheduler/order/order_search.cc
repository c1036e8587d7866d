#include "scheduler/order/order_search.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace weir::scheduler {
namespace {

/// Two links at a time: every x86-64 and every 64-bit ARM can, and the compiler need not find it out.
using Lane = double __attribute__((vector_size(16)));
constexpr std::size_t kSparse = SIZE_MAX;

Lane LoadLane(const double* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof(lane));
  return lane;
}

Lane Larger(const Lane& a, const Lane& b) {
  return a > b ? a : b;
}

double Largest(const Lane& a, const Lane& b) {
  const Lane both = Larger(a, b);
  return std::max(both[0], both[1]);
}

}  // namespace

double IndependentLinksCost(const LoadMatrix& loads, std::span<const double> weights,
                            std::span<const std::uint32_t> order) {
  std::vector<double> ahead(loads.links(), 0);
  double cost = 0;
  for (const std::uint32_t row : order) {
    double end = 0;
    for (const LoadMatrix::Cell& cell : loads.Cells(row)) {
      ahead[cell.link] += cell.time;
      end = std::max(end, ahead[cell.link]);
    }
    cost += weights[row] * end;
  }
  return cost;
}

double OrderSearch::Improve(const LoadMatrix& loads, std::span<const double> weights, int passes, std::size_t reach,
                            std::vector<std::uint32_t>* order) {
  loads_ = &loads;
  weights_ = weights;
  gained_ = 0;
  MarkUnused();
  std::size_t settled = 0;  // rows looked at since the last move
  for (int pass = 0; pass < passes && settled < order->size(); ++pass) {
    ahead_.assign(loads.stride(), 0);
    for (std::size_t at = 0; at < order->size() && settled < order->size(); ++at) {
      settled = TryMoves(at, reach, order) ? 0 : settled + 1;
      Add((*order)[at], &ahead_);
    }
  }
  return gained_;
}

void OrderSearch::MarkUnused() {
  const std::size_t stride = loads_->stride();
  marked_.clear();
  marks_.clear();
  for (std::size_t row = 0; row < loads_->rows(); ++row) {
    const auto cells = loads_->Cells(row);
    if (cells.size() * 4 < stride) {
      marked_.push_back(kSparse);
      continue;
    }
    marked_.push_back(marks_.size());
    marks_.resize(marks_.size() + stride, -std::numeric_limits<double>::infinity());
    for (const LoadMatrix::Cell& cell : cells) {
      marks_[marked_.back() + cell.link] = cell.time;
    }
  }
}

/// How much later `row` ends when `other` goes in front of it, with `ahead` in front of both.
double OrderSearch::PushBack(std::uint32_t row, std::uint32_t other, const double* ahead) const {
  const double* theirs = loads_->Row(other);
  if (marked_[row] == kSparse) {
    double alone = 0;
    double behind = 0;
    for (const LoadMatrix::Cell& cell : loads_->Cells(row)) {
      const double end = ahead[cell.link] + cell.time;
      alone = std::max(alone, end);
      behind = std::max(behind, end + theirs[cell.link]);
    }
    return behind - alone;
  }
  const double* mine = &marks_[marked_[row]];
  Lane alone[2] = {};
  Lane behind[2] = {};
  for (std::size_t link = 0; link < loads_->stride(); link += 4) {
    for (std::size_t half = 0; half < 2; ++half) {
      const Lane end = LoadLane(ahead + link + 2 * half) + LoadLane(mine + link + 2 * half);
      alone[half] = Larger(end, alone[half]);
      behind[half] = Larger(end + LoadLane(theirs + link + 2 * half), behind[half]);
    }
  }
  return Largest(behind[0], behind[1]) - Largest(alone[0], alone[1]);
}

void OrderSearch::Add(std::uint32_t row, std::vector<double>* sums) const {
  if (marked_[row] != kSparse) {
    const double* times = loads_->Row(row);
    for (std::size_t link = 0; link < loads_->stride(); ++link) {
      (*sums)[link] += times[link];
    }
    return;
  }
  for (const LoadMatrix::Cell& cell : loads_->Cells(row)) {
    (*sums)[cell.link] += cell.time;
  }
}

void OrderSearch::Subtract(std::uint32_t row, std::vector<double>* sums) const {
  if (marked_[row] != kSparse) {
    const double* times = loads_->Row(row);
    for (std::size_t link = 0; link < loads_->stride(); ++link) {
      (*sums)[link] -= times[link];
    }
    return;
  }
  for (const LoadMatrix::Cell& cell : loads_->Cells(row)) {
    (*sums)[cell.link] -= cell.time;
  }
}

bool OrderSearch::TryMoves(std::size_t at, std::size_t reach, std::vector<std::uint32_t>* order) {
  const std::uint32_t row = (*order)[at];
  double best = -1e-9 * (1.0 + loads_->Bottleneck(row));
  std::size_t best_at = at;
  double change = 0;
  before_ = ahead_;
  for (std::size_t to = at + 1; to < std::min(order->size(), at + 1 + reach); ++to) {  // later: others overtake
    const std::uint32_t other = (*order)[to];
    change +=
        weights_[row] * PushBack(row, other, before_.data()) - weights_[other] * PushBack(other, row, before_.data());
    if (change < best) {
      best = change;
      best_at = to;
    }
    Add(other, &before_);
  }
  change = 0;
  before_ = ahead_;
  for (std::size_t to = at; to-- > at - std::min(at, reach);) {  // earlier: it overtakes others
    const std::uint32_t other = (*order)[to];
    Subtract(other, &before_);
    change +=
        weights_[other] * PushBack(other, row, before_.data()) - weights_[row] * PushBack(row, other, before_.data());
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
    Subtract((*order)[i], &ahead_);  // what stood between is no longer in front of position best_at
  }
  std::rotate(target, from, from + 1);
  for (std::size_t i = best_at; i < at; ++i) {
    Add((*order)[i], &ahead_);
  }
  return true;
}

}  // namespace weir::scheduler
