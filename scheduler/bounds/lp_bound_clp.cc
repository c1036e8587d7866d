#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <algorithm>
#include <numeric>

#include "scheduler/bounds/lp_bound.h"

namespace weir::scheduler {
namespace {

constexpr double kSafety = 1e-6;
constexpr int kIterationsMax = 200'000;

/// Rows of the program: first the ends C_k as variables, then x_jk for j < k; x_kj is written as 1 - x_jk.
class Program {
 public:
  explicit Program(const BoundProblem& problem) : problem_(problem), size_(problem.coflows()) {
    times_.assign(size_ * problem.ports, 0);
    for (std::size_t k = 0; k < size_; ++k) {
      for (const BoundProblem::Cell& cell : problem.Cells(k)) {
        times_[k * problem.ports + cell.port] = cell.time;
      }
      scale_ = std::max(scale_, problem.Bottleneck(k));
    }
    first_release_ = *std::min_element(problem.release.begin(), problem.release.end());
  }

  /// False when it grew above the limit.
  bool AddEnds() {
    for (std::size_t k = 0; k < size_; ++k) {
      std::vector<double> since(problem_.release);
      std::erase_if(since, [&](double release) { return release > problem_.release[k]; });
      std::sort(since.begin(), since.end());
      since.erase(std::unique(since.begin(), since.end()), since.end());
      for (const BoundProblem::Cell& cell : problem_.Cells(k)) {
        for (const double release : since) {
          AddEnd(k, cell, release);
          if (elements_.size() > kLpEntriesMax) {
            return false;
          }
        }
      }
    }
    return true;
  }

  void AddTriangles() {
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = i + 1; j < size_; ++j) {
        for (std::size_t k = j + 1; k < size_; ++k) {  // 0 <= x_ij + x_jk - x_ik <= 1
          Entry(Before(i, j), 1);
          Entry(Before(j, k), 1);
          Entry(Before(i, k), -1);
          EndRow(0, 1);
        }
      }
    }
  }

  std::optional<double> Solve() {
    const int columns = static_cast<int>(size_ + size_ * (size_ - 1) / 2);
    std::vector<double> lower(static_cast<std::size_t>(columns), 0.0);
    std::vector<double> upper(static_cast<std::size_t>(columns), 1.0);
    std::vector<double> cost(static_cast<std::size_t>(columns), 0.0);
    double released = 0;
    for (std::size_t k = 0; k < size_; ++k) {
      lower[k] = Scaled(problem_.release[k]) + problem_.Bottleneck(k) / scale_;
      upper[k] = COIN_DBL_MAX;
      cost[k] = 1;
      released += Scaled(problem_.release[k]);
    }
    CoinPackedMatrix matrix(false, rows_.data(), columns_.data(), elements_.data(),
                            static_cast<CoinBigIndex>(elements_.size()));
    matrix.setDimensions(static_cast<int>(row_lower_.size()), columns);
    ClpSimplex solver;
    solver.setLogLevel(0);
    solver.setMaximumIterations(kIterationsMax);
    solver.loadProblem(matrix, lower.data(), upper.data(), cost.data(), row_lower_.data(), row_upper_.data());
    solver.dual();
    if (!solver.isProvenOptimal()) {
      return std::nullopt;
    }
    return (solver.objectiveValue() * (1 - kSafety) - released) * scale_;
  }

 private:
  double Scaled(double release) const { return (release - first_release_) / scale_; }
  double Time(std::size_t coflow, std::size_t port) const { return times_[coflow * problem_.ports + port]; }

  /// Column of x_jk, j < k.
  int Before(std::size_t j, std::size_t k) const {
    return static_cast<int>(size_ + j * size_ - j * (j + 1) / 2 + (k - j - 1));
  }

  void AddEnd(std::size_t k, const BoundProblem::Cell& cell, double release) {
    double constant = Scaled(release) + cell.time / scale_;
    for (std::size_t j = 0; j < size_; ++j) {
      const double time = Time(j, cell.port) / scale_;
      if (j == k || time <= 0 || problem_.release[j] < release) {
        continue;
      }
      if (j < k) {
        Entry(Before(j, k), -time);
      } else {
        Entry(Before(k, j), time);
        constant += time;
      }
    }
    Entry(static_cast<int>(k), 1);
    EndRow(constant, COIN_DBL_MAX);
  }

  void Entry(int column, double value) {
    rows_.push_back(static_cast<int>(row_lower_.size()));
    columns_.push_back(column);
    elements_.push_back(value);
  }
  void EndRow(double lower, double upper) {
    row_lower_.push_back(lower);
    row_upper_.push_back(upper);
  }

  const BoundProblem& problem_;
  std::size_t size_;
  double scale_ = 0, first_release_ = 0;
  std::vector<double> times_;
  std::vector<int> rows_, columns_;
  std::vector<double> elements_, row_lower_, row_upper_;
};

}  // namespace

bool LpBoundAvailable() {
  return true;
}

std::optional<double> LpBound(const BoundProblem& problem) {
  if (problem.coflows() == 0 || problem.coflows() > kLpCoflowsMax || problem.has_precedence || problem.cells.empty()) {
    return std::nullopt;
  }
  Program program(problem);
  if (!program.AddEnds()) {
    return std::nullopt;
  }
  program.AddTriangles();
  return program.Solve();
}

}  // namespace weir::scheduler
