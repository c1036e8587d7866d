#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "scheduler/live/scheduler.h"

namespace weir::bench {

/// How flows are spread over coflows.
enum class Shape {
  kEven,    ///< All coflows are equally wide, each flow between two hosts drawn at random.
  kSkewed,  ///< Widths follow a Pareto law (exponent 1.1): many coflows of one flow, some of thousands. Shuffles.
};

struct Scale {
  std::uint32_t hosts = 1000;
  std::uint32_t coflows = 10'000;
  std::uint32_t flows = 100'000;
  Shape shape = Shape::kEven;
  std::uint32_t leaf = 0;  ///< Hosts below one leaf of a leaf-spine; 0: one big switch.
  scheduler::LiveRates rates = scheduler::LiveRates::kMaxMin;
};

/// Hosts of 100 Gbit/s with coflows ordered by bottleneck, and a source of events that keeps the number of coflows
/// where it is. Between leaves a path has two more links, each half as wide as the hosts below it together. Flow sizes
/// are lognormal (median 64 MiB, sigma 1.5). The seed decides everything.
class Workload {
 public:
  Workload(const Scale& scale, std::uint64_t seed);

  scheduler::LiveScheduler& live() { return *live_; }
  /// A coflow as the shape has them; valid until the next call.
  scheduler::LiveCoflow NewCoflow();
  scheduler::CoflowSlot AnyCoflow();
  scheduler::LinkIndex AnyLink();
  /// A flow that has a rate now.
  scheduler::FlowIndex ServedFlow();
  /// The time after which the first flow ends at the rates of now, and that flow.
  std::pair<Nanoseconds, scheduler::FlowIndex> NextEnd() const;
  /// Adds coflows until there are as many as there should be. Followed by an Update.
  void Refill();

 private:
  std::uint32_t Below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  std::uint32_t Width();
  std::vector<scheduler::WholeRate> Capacities() const;
  void AppendPath(std::uint32_t from, std::uint32_t to);

  Scale scale_;
  std::mt19937_64 random_;
  std::unique_ptr<scheduler::LiveScheduler> live_;
  std::uint64_t next_id_ = 1;
  double width_scale_ = 1;  ///< Makes the mean width of kSkewed come out.
  std::vector<scheduler::LinkIndex> paths_;
  std::vector<std::size_t> path_begins_;
  std::vector<scheduler::LiveFlow> flows_;
};

}  // namespace weir::bench
