#include "scheduler/bounds/port_partition.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

namespace weir::scheduler {

double ShortestRemainingFirst::Cost(std::span<const Job> jobs) {
  double cost = 0;
  double now = 0;
  std::size_t next = 0;
  left_.clear();
  while (next < jobs.size() || !left_.empty()) {
    if (left_.empty()) {
      now = std::max(now, jobs[next].release);
    }
    for (; next < jobs.size() && jobs[next].release <= now; ++next) {
      left_.push_back(jobs[next].time);
      std::push_heap(left_.begin(), left_.end(), std::greater<>());
    }
    const double until = next < jobs.size() ? jobs[next].release - now : std::numeric_limits<double>::infinity();
    const double served = std::min(left_.front(), until);
    cost += served * static_cast<double>(left_.size());
    now = served == until ? jobs[next].release : now + served;
    if (served == left_.front()) {
      std::pop_heap(left_.begin(), left_.end(), std::greater<>());
      left_.pop_back();
    } else {
      left_.front() -= served;  // the smallest only became smaller
    }
  }
  return cost;
}

namespace {

using Job = ShortestRemainingFirst::Job;
using Cell = BoundProblem::Cell;

class Partition {
 public:
  Partition(const BoundProblem& problem, std::span<const std::uint32_t> members, std::size_t work)
      : problem_(problem), work_left_(work), members_(members.begin(), members.end()), charged_(problem.ports) {
    std::erase_if(members_, [&](std::uint32_t coflow) { return problem.Cells(coflow).empty(); });
    std::stable_sort(members_.begin(), members_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return problem.release[a] < problem.release[b]; });
    cost_.assign(problem.ports, 0);
    at_.resize(members_.size());
  }

  double Search() {
    Charge(problem_.ports);
    const double own_bottlenecks = Sum();
    const std::size_t busiest = BusiestPort();
    Charge(busiest);
    if (Sum() < own_bottlenecks) {
      Charge(problem_.ports);
    }
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t member = 0; member < members_.size() && work_left_ > 0; ++member) {
        moved |= TryMoves(member);
      }
    }
    return Sum();
  }

 private:
  std::span<const Cell> Cells(std::size_t member) const { return problem_.Cells(members_[member]); }
  double Sum() const { return std::accumulate(cost_.begin(), cost_.end(), 0.0); }

  /// Charges every member on `preferred` where it has load there, else on its bottleneck.
  void Charge(std::size_t preferred) {
    for (auto& list : charged_) {
      list.clear();
    }
    for (std::uint32_t member = 0; member < members_.size(); ++member) {
      const auto cells = Cells(member);
      auto chosen =
          std::max_element(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.time < b.time; });
      const auto there =
          std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.port == preferred; });
      chosen = there != cells.end() ? there : chosen;
      at_[member] = static_cast<std::size_t>(chosen - cells.begin());
      charged_[chosen->port].push_back({member, {problem_.release[members_[member]], chosen->time}});
    }
    for (std::size_t port = 0; port < charged_.size(); ++port) {
      cost_[port] = CostOf(charged_[port], kNobody, nullptr);
    }
  }

  /// The port whose own bound, with everybody on it, is the largest.
  std::size_t BusiestPort() {
    std::vector<std::vector<Charged>> everybody(problem_.ports);
    for (std::uint32_t member = 0; member < members_.size(); ++member) {
      for (const Cell& cell : Cells(member)) {
        everybody[cell.port].push_back({member, {problem_.release[members_[member]], cell.time}});
      }
    }
    std::size_t busiest = 0;
    double most = -1;
    for (std::size_t port = 0; port < everybody.size(); ++port) {
      const double cost = CostOf(everybody[port], kNobody, nullptr);
      if (cost > most) {
        most = cost;
        busiest = port;
      }
    }
    return busiest;
  }

  struct Charged {
    std::uint32_t member = 0;
    Job job;
  };
  static constexpr std::uint32_t kNobody = UINT32_MAX;

  /// Cost of a port without `gone` and with `added`; lists are by member, which is by release.
  double CostOf(const std::vector<Charged>& list, std::uint32_t gone, const Charged* added) {
    jobs_.clear();
    for (const Charged& charged : list) {
      if (added != nullptr && added->member < charged.member) {
        jobs_.push_back(added->job);
        added = nullptr;
      }
      if (charged.member != gone) {
        jobs_.push_back(charged.job);
      }
    }
    if (added != nullptr) {
      jobs_.push_back(added->job);
    }
    work_left_ -= std::min(work_left_, jobs_.size() + 1);
    return machine_.Cost(jobs_);
  }

  bool TryMoves(std::uint32_t member) {
    const auto cells = Cells(member);
    const std::size_t from = cells[at_[member]].port;
    const double without = CostOf(charged_[from], member, nullptr);
    double best = (cost_[from] - without) * (1 + 1e-12);
    std::size_t best_at = at_[member];
    for (std::size_t at = 0; at < cells.size() && work_left_ > 0; ++at) {
      const Charged added{member, {problem_.release[members_[member]], cells[at].time}};
      const std::size_t port = cells[at].port;
      if (port == from) {
        continue;
      }
      const double gain = CostOf(charged_[port], kNobody, &added) - cost_[port];
      if (gain > best) {
        best = gain;
        best_at = at;
      }
    }
    if (best_at == at_[member]) {
      return false;
    }
    std::erase_if(charged_[from], [member](const Charged& charged) { return charged.member == member; });
    cost_[from] = without;
    const Charged added{member, {problem_.release[members_[member]], cells[best_at].time}};
    auto& list = charged_[cells[best_at].port];
    list.insert(std::lower_bound(list.begin(), list.end(), member,
                                 [](const Charged& a, std::uint32_t b) { return a.member < b; }),
                added);
    cost_[cells[best_at].port] = CostOf(list, kNobody, nullptr);
    at_[member] = best_at;
    return true;
  }

  const BoundProblem& problem_;
  std::size_t work_left_;
  std::vector<std::uint32_t> members_;         // by release
  std::vector<std::vector<Charged>> charged_;  // by port, by release
  std::vector<double> cost_;                   // by port
  std::vector<std::size_t> at_;                // by member: which of its cells is charged
  std::vector<Job> jobs_;
  ShortestRemainingFirst machine_;
};

}  // namespace

double PortPartitionBound(const BoundProblem& problem, std::span<const std::uint32_t> members, std::size_t work) {
  return Partition(problem, members, work).Search();
}

}  // namespace weir::scheduler
