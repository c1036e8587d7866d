#include "scheduler/bounds/offline.h"

#include <algorithm>
#include <cmath>

#include "coflow/check.h"
#include "scheduler/bounds/subset_bound.h"
#include "scheduler/order/load_matrix.h"

namespace weir::scheduler {
namespace {

/// The loads of some coflows by port, with a price on each.
class PricedPorts {
 public:
  PricedPorts(const BoundProblem& problem, std::span<const std::uint32_t> members)
      : ports_(problem.ports), members_(members.size()), by_port_(problem.ports) {
    first_.push_back(0);
    for (std::uint32_t member = 0; member < members.size(); ++member) {
      for (const BoundProblem::Cell& cell : problem.Cells(members[member])) {
        by_port_[cell.port].push_back(static_cast<std::uint32_t>(cells_.size()));
        cells_.push_back(cell);
      }
      first_.push_back(cells_.size());
    }
    price_.resize(cells_.size());
    end_.resize(cells_.size());
  }

  /// Takes prices from a dense table, and a little of them evenly over the ports in proportion to their load, so that a
  /// price of zero can rise again.
  void Start(const std::vector<double>& dense, double even) {
    for (std::size_t member = 0; member < members_; ++member) {
      double load = 0;
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        load += cells_[i].time;
      }
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        price_[i] = (1 - even) * dense[member * ports_ + cells_[i].port] + even * cells_[i].time / load;
      }
    }
  }

  /// Value of the prices; leaves behind when each coflow ends on each port.
  double Value() {
    double sum = 0;
    for (auto& order : by_port_) {
      std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
        const double left = price_[a] * cells_[b].time;
        const double right = price_[b] * cells_[a].time;
        return left != right ? left > right : a < b;
      });
      double now = 0;
      for (const std::uint32_t cell : order) {
        now += cells_[cell].time;
        end_[cell] = now;
        sum += price_[cell] * now;
      }
    }
    return sum;
  }

  /// Prices go up where a coflow ends later than in its own mean, by a factor.
  void Step(double size) {
    for (std::size_t member = 0; member < members_; ++member) {
      double mean = 0;
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        mean += price_[i] * end_[i];
      }
      double sum = 0;
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        price_[i] *= std::exp(std::clamp(size * (end_[i] / mean - 1), -4.0, 4.0));
        sum += price_[i];
      }
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        price_[i] /= sum;
      }
    }
  }

  std::vector<double> Dense() const {
    std::vector<double> dense(members_ * ports_, 0);
    for (std::size_t member = 0; member < members_; ++member) {
      for (std::size_t i = first_[member]; i < first_[member + 1]; ++i) {
        dense[member * ports_ + cells_[i].port] = price_[i];
      }
    }
    return dense;
  }

 private:
  std::size_t ports_, members_;
  std::vector<std::vector<std::uint32_t>> by_port_;  // cells
  std::vector<BoundProblem::Cell> cells_;
  std::vector<std::size_t> first_;
  std::vector<double> price_, end_;  // by cell
};

}  // namespace

PricedBound PrimalDualBound(const BoundProblem& problem, std::span<const std::uint32_t> members) {
  WEIR_CHECK(members.size() * problem.ports <= kDenseCellsMax);
  std::vector<double> times(members.size() * problem.ports, 0);
  for (std::size_t member = 0; member < members.size(); ++member) {
    for (const BoundProblem::Cell& cell : problem.Cells(members[member])) {
      times[member * problem.ports + cell.port] = cell.time;
    }
  }
  LoadMatrix loads;
  loads.Load(times, members.size(), problem.ports);
  PrimalDual primal_dual;
  PricedBound bound;
  std::vector<std::uint32_t> order;
  std::vector<double> spent;
  bound.sum = primal_dual.Sort(loads, std::vector<double>(members.size(), 1.0), &order, &spent);
  bound.price.assign(times.size(), 0);
  for (std::size_t member = 0; member < members.size(); ++member) {
    for (std::size_t link = 0; link < loads.links(); ++link) {
      bound.price[member * problem.ports + loads.Link(link)] = spent[member * loads.links() + link];
    }
  }
  return bound;
}

PricedBound PriceBound(const BoundProblem& problem, std::span<const std::uint32_t> members, int steps) {
  constexpr double kEven = 0.02;
  constexpr double kStep = 0.5;
  PricedPorts ports(problem, members);
  PricedBound best = PrimalDualBound(problem, members);
  ports.Start(best.price, 0);
  best.sum = ports.Value();
  ports.Start(best.price, kEven);
  for (int step = 0; step < steps; ++step) {
    const double sum = ports.Value();
    if (sum > best.sum) {
      best = {sum, ports.Dense()};
    }
    ports.Step(kStep / std::sqrt(1.0 + step));
  }
  return best;
}

double GiantsAndPricesBound(const BoundProblem& problem, std::span<const std::uint32_t> giants,
                            std::span<const std::uint32_t> others, const PricedBound& prices_of_others) {
  std::vector<double> charge(giants.size() * problem.ports, 0);
  std::vector<double> time(problem.ports);
  for (std::size_t k = 0; k < giants.size(); ++k) {
    std::fill(time.begin(), time.end(), 0.0);
    for (const BoundProblem::Cell& cell : problem.Cells(giants[k])) {
      time[cell.port] = cell.time;
    }
    for (std::size_t q = 0; q < others.size(); ++q) {
      double later = 0;
      for (const BoundProblem::Cell& cell : problem.Cells(others[q])) {
        later += prices_of_others.price[q * problem.ports + cell.port] * time[cell.port];
      }
      for (const BoundProblem::Cell& cell : problem.Cells(others[q])) {
        charge[k * problem.ports + cell.port] += std::min(cell.time, later);
      }
    }
  }
  return SubsetBound(problem, giants, charge) + prices_of_others.sum;
}

}  // namespace weir::scheduler
