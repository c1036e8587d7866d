#include "scheduler/bounds/subset_bound.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "coflow/check.h"

namespace weir::scheduler {
namespace {

/// Two ports at a time: every x86-64 and every 64-bit ARM can, and the compiler need not find it out.
using Lane = double __attribute__((vector_size(16)));
using Mask = decltype(Lane{} < Lane{});
constexpr std::size_t kLanes = 2;
constexpr std::size_t kComparedPorts = 1024;

Lane LoadLanes(const double* from) {
  Lane lane;
  std::memcpy(&lane, from, sizeof(lane));
  return lane;
}

void StoreLanes(const Lane& lane, double* to) {
  std::memcpy(to, &lane, sizeof(lane));
}

/// Walks over all subsets S of the members in the order of their numbers. Bit 0 is the member that is released last, so
/// the walk is a binary tree by release: who is released first is decided at the top. On the way down it carries
/// - by port, when the members of S decided so far are done there (`base_`),
/// - for each member k decided to be outside of S, on its ports, when k would be done behind S (`Ends`). Being last, k
///   is done when nothing is left; what is released after that does not matter.
class SubsetWalk {
 public:
  SubsetWalk(const BoundProblem& problem, std::span<const std::uint32_t> members, std::span<const double> charge)
      : size_(members.size()), ports_(problem.ports) {
    order_.resize(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      order_[i] = i;
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return problem.release[members[a]] < problem.release[members[b]];
    });
    times_.assign(size_ * ports_, 0);
    charge_.assign(size_ * ports_, 0);
    for (std::size_t k = 0; k < size_; ++k) {
      // Counted from the first release: sums stay small, and the lanes that only fill up hold 0, before everything.
      release_.push_back(problem.release[members[order_[k]]] - problem.release[members[order_[0]]]);
      for (const BoundProblem::Cell& cell : problem.Cells(members[order_[k]])) {
        times_[k * ports_ + cell.port] = cell.time;
        charge_[k * ports_ + cell.port] = charge.empty() ? 0 : charge[order_[k] * ports_ + cell.port];
      }
    }
    PackPorts();
    base_.assign((size_ + 1) * ports_, 0);
    ends_.assign((size_ + 1) * width_, 0);
    current_.assign((size_ + 1) * size_, nullptr);
    last_end_.assign((size_ + 1) * size_, 0);
    least_.assign(std::size_t{1} << size_, std::numeric_limits<double>::infinity());
    least_[0] = 0;
  }

  double Least() {
    Visit(0, 0);
    return least_.back();
  }

 private:
  double Time(std::size_t member, std::size_t port) const { return times_[member * ports_ + port]; }

  /// Port `a` ends no later than port `b` for member k, whatever is in front.
  bool Dominated(std::size_t k, std::size_t a, std::size_t b) const {
    if (Time(k, a) + charge_[k * ports_ + a] > Time(k, b) + charge_[k * ports_ + b]) {
      return false;
    }
    for (std::size_t j = 0; j < size_; ++j) {
      if (j != k && Time(j, a) > Time(j, b)) {
        return false;
      }
    }
    return true;
  }

  /// Lists, for each member, the ports that matter to it, and packs the times of all members on them.
  void PackPorts() {
    ports_of_.resize(size_);
    first_end_.assign(1, 0);
    packed_.resize(size_);
    for (std::size_t k = 0; k < size_; ++k) {
      auto& kept = ports_of_[k];
      for (std::uint32_t port = 0; port < ports_; ++port) {
        if (Time(k, port) <= 0) {
          continue;
        }
        if (kept.size() > kComparedPorts) {
          kept.push_back(port);  // dropping ports only saves time, and comparing all pairs of very many does not
          continue;
        }
        if (std::any_of(kept.begin(), kept.end(), [&](std::uint32_t other) { return Dominated(k, port, other); })) {
          continue;
        }
        std::erase_if(kept, [&](std::uint32_t other) { return Dominated(k, other, port); });
        kept.push_back(port);
      }
      const std::size_t width = (kept.size() + kLanes - 1) / kLanes * kLanes;
      first_end_.push_back(first_end_.back() + width);
      packed_[k].assign(size_ * width, 0);
      for (std::size_t j = 0; j < size_; ++j) {
        for (std::size_t i = 0; i < kept.size(); ++i) {
          packed_[k][j * width + i] = Time(j, kept[i]);
        }
      }
    }
    width_ = first_end_.back();
  }

  std::size_t Width(std::size_t k) const { return first_end_[k + 1] - first_end_[k]; }
  double* Base(std::size_t depth) { return &base_[depth * ports_]; }
  double* Ends(std::size_t depth, std::size_t k) { return ends_.data() + depth * width_ + first_end_[k]; }

  void Visit(std::size_t depth, std::size_t set) {
    if (depth == size_) {
      Relax(set);
      return;
    }
    const std::size_t bit = std::size_t{1} << (size_ - 1 - depth);
    for (std::size_t k = 0; k < depth; ++k) {
      current_[(depth + 1) * size_ + k] = current_[depth * size_ + k];
      last_end_[(depth + 1) * size_ + k] = last_end_[depth * size_ + k];
    }
    LeaveOut(depth);
    Visit(depth + 1, set);
    PutInFront(depth, set);
    Visit(depth + 1, set | bit);
  }

  void LeaveOut(std::size_t k) {
    std::copy(Base(k), Base(k) + ports_, Base(k + 1));
    double* ends = Ends(k + 1, k);
    double last = release_[k];
    for (std::size_t i = 0; i < ports_of_[k].size(); ++i) {
      const std::size_t port = ports_of_[k][i];
      const double end = std::max(Base(k)[port], release_[k]) + Time(k, port) + charge_[k * ports_ + port];
      ends[i] = end;
      last = std::max(last, end);
    }
    current_[(k + 1) * size_ + k] = ends;
    last_end_[(k + 1) * size_ + k] = last;
  }

  void PutInFront(std::size_t j, std::size_t set) {
    const double* before = Base(j);
    double* after = Base(j + 1);
    for (std::size_t port = 0; port < ports_; ++port) {
      const double time = Time(j, port);
      after[port] = time > 0 ? std::max(before[port], release_[j]) + time : before[port];
    }
    for (std::size_t k = 0; k < j; ++k) {
      if ((set >> (size_ - 1 - k) & 1U) == 0) {
        Delay(j, k);
      }
    }
  }

  /// Member k, last, when j is put in front of it too and is released no earlier.
  void Delay(std::size_t j, std::size_t k) {
    const Lane release = {release_[j], release_[j]};
    const double* before = current_[j * size_ + k];
    const std::size_t width = Width(k);
    const double* times = packed_[k].data() + j * width;
    double* after = Ends(j + 1, k);
    Lane last = {release_[k], release_[k]};
    for (std::size_t i = 0; i < width; i += kLanes) {
      Lane end = LoadLanes(before + i);
      const Mask waits = release < end;
      end += reinterpret_cast<Lane>(reinterpret_cast<Mask>(LoadLanes(times + i)) & waits);
      StoreLanes(end, after + i);
      last = end > last ? end : last;
    }
    current_[(j + 1) * size_ + k] = after;
    last_end_[(j + 1) * size_ + k] = std::max(last[0], last[1]);
  }

  void Relax(std::size_t set) {
    const double* last_end = &last_end_[size_ * size_];
    for (std::size_t k = 0; k < size_; ++k) {
      const std::size_t bit = std::size_t{1} << (size_ - 1 - k);
      if ((set & bit) == 0) {
        double& least = least_[set | bit];
        least = std::min(least, least_[set] + (last_end[k] - release_[k]));
      }
    }
  }

  std::size_t size_, ports_;
  std::size_t width_ = 0;           // ports of all members together, each member's filled up to whole lanes
  std::vector<std::size_t> order_;  // member numbers by release; everything below is in that order
  std::vector<double> release_, times_, charge_;
  std::vector<std::vector<std::uint32_t>> ports_of_;
  std::vector<std::size_t> first_end_;
  std::vector<std::vector<double>> packed_;  // by k: members x ports of k
  // By depth of the tree.
  std::vector<double> base_, ends_;
  std::vector<const double*> current_;  // and k: where its ends stand, possibly higher up
  std::vector<double> last_end_;        // and k
  std::vector<double> least_;           // by set
};

}  // namespace

double SubsetBound(const BoundProblem& problem, std::span<const std::uint32_t> members,
                   std::span<const double> charge) {
  WEIR_CHECK(members.size() <= kSubsetMembersMax);
  return members.empty() ? 0 : SubsetWalk(problem, members, charge).Least();
}

}  // namespace weir::scheduler
