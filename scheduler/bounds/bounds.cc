#include "scheduler/bounds/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/bounds/lp_bound.h"
#include "scheduler/bounds/offline.h"
#include "scheduler/bounds/port_partition.h"
#include "scheduler/bounds/subset_bound.h"

namespace weir::scheduler {
namespace {

struct Limits {
  std::size_t giants;          // for subsets
  double subset_work;          // subsets x giants x ports
  std::size_t partition_work;  // jobs looked at
  int price_steps;
};

constexpr Limits kQuickLimits{.giants = 18, .subset_work = 2e9, .partition_work = 4'000'000, .price_steps = 30};
constexpr Limits kFullLimits{.giants = 21, .subset_work = 2e10, .partition_work = 40'000'000, .price_steps = 300};

/// All coflows, the one with the largest bottleneck first.
std::vector<std::uint32_t> LargestFirst(const BoundProblem& problem) {
  std::vector<double> bottleneck;
  bottleneck.reserve(problem.coflows());
  for (std::size_t coflow = 0; coflow < problem.coflows(); ++coflow) {
    bottleneck.push_back(problem.Bottleneck(coflow));
  }
  std::vector<std::uint32_t> order(problem.coflows());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return bottleneck[a] > bottleneck[b]; });
  return order;
}

/// How many giants the walk over their subsets can take.
std::size_t GiantsWithin(const Limits& limits, std::size_t ports) {
  std::size_t giants = limits.giants;
  while (giants > 0 && std::exp2(giants) * static_cast<double>(giants * ports) > limits.subset_work) {
    --giants;
  }
  return giants;
}

void AddBounds(const BoundProblem& problem, const Limits& limits, BoundEffort effort, Bounds* bounds) {
  const std::vector<std::uint32_t> order = LargestFirst(problem);
  const std::span<const std::uint32_t> all = order;
  const auto giants = all.first(std::min(GiantsWithin(limits, problem.ports), all.size()));
  const auto others = all.subspan(giants.size());
  auto& list = bounds->completion;
  list.push_back({"port_partition", PortPartitionBound(problem, all, limits.partition_work)});
  double subsets = SubsetBound(problem, giants, {}) + PortPartitionBound(problem, others, limits.partition_work);
  if (problem.SameRelease() && all.size() * problem.ports <= kDenseCellsMax) {
    list.push_back({"primal_dual", PrimalDualBound(problem, all).sum});
    list.push_back({"prices", PriceBound(problem, all, limits.price_steps).sum});
    subsets = std::max(subsets,
                       GiantsAndPricesBound(problem, giants, others, PriceBound(problem, others, limits.price_steps)));
  }
  list.push_back({"subsets", subsets});
  if (effort == BoundEffort::kFull) {
    if (const auto lp = LpBound(problem)) {
      list.push_back({"lp", *lp});
    }
  }
}

}  // namespace

Result<BoundEffort> BoundEffortFromName(const std::string& name) {
  if (name == "none") {
    return BoundEffort::kNone;
  }
  if (name == "quick") {
    return BoundEffort::kQuick;
  }
  if (name == "full") {
    return BoundEffort::kFull;
  }
  return Error(StatusCode::kInvalidArgument, fmt::format("--bounds: found \"{}\", allowed: none, quick, full", name));
}

Bounds ComputeBounds(const BoundProblem& problem, BoundEffort effort) {
  Bounds bounds;
  bounds.completion.push_back({"isolation", IsolationBound(problem)});
  bounds.makespan = MakespanBound(problem);
  if (effort != BoundEffort::kNone && !problem.has_precedence) {
    AddBounds(problem, effort == BoundEffort::kFull ? kFullLimits : kQuickLimits, effort, &bounds);
  }
  bounds.best = *std::max_element(bounds.completion.begin(), bounds.completion.end(),
                                  [](const NamedBound& a, const NamedBound& b) { return a.sum < b.sum; });
  return bounds;
}

}  // namespace weir::scheduler
