#include "scheduler/sim/summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::scheduler {
namespace {

double Mean(std::span<const double> values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double Quantile(std::span<const double> sorted, double share) {
  if (sorted.empty()) {
    return 0;
  }
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

Summary Summarise(const SimOutcome& outcome, std::uint32_t ports, const TimeScale& scale) {
  std::vector<double> ccts;
  std::vector<double> slowdowns;
  std::vector<double> isolations;
  Summary s;
  double progress = 0;
  double progress_squared = 0;
  for (const CoflowOutcome& coflow : outcome.coflows) {
    ccts.push_back(static_cast<double>(coflow.cct()) / scale.ticks_per_ms);
    isolations.push_back(static_cast<double>(coflow.isolation) / scale.ticks_per_ms);
    s.deadlines += coflow.deadline > 0 ? 1U : 0U;
    s.admitted += coflow.admitted ? 1U : 0U;
    s.admitted_late += coflow.admitted && coflow.cct() > coflow.deadline ? 1U : 0U;
    s.met += coflow.deadline > 0 && coflow.cct() <= coflow.deadline ? 1U : 0U;
    const double slowdown =
        static_cast<double>(coflow.cct()) / static_cast<double>(std::max<std::int64_t>(1, coflow.isolation));
    slowdowns.push_back(slowdown);
    progress += 1 / slowdown;
    progress_squared += 1 / (slowdown * slowdown);
  }
  std::sort(ccts.begin(), ccts.end());
  std::sort(slowdowns.begin(), slowdowns.end());
  s.mean = Mean(ccts);
  s.p50 = Quantile(ccts, 0.5);
  s.p95 = Quantile(ccts, 0.95);
  s.p99 = Quantile(ccts, 0.99);
  s.max = ccts.empty() ? 0 : ccts.back();
  s.slowdown_mean = Mean(slowdowns);
  s.slowdown_p95 = Quantile(slowdowns, 0.95);
  s.makespan = static_cast<double>(outcome.makespan) / scale.ticks_per_ms;
  s.isolation_bound = Mean(isolations);
  s.utilisation = outcome.makespan > 0
                      ? outcome.bytes_moved / (static_cast<double>(ports) * static_cast<double>(outcome.makespan))
                      : 0;
  s.jain = progress_squared > 0 ? progress * progress / (static_cast<double>(slowdowns.size()) * progress_squared) : 0;
  return s;
}

}  // namespace weir::scheduler
