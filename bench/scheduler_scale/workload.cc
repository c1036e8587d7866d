#include "bench/scheduler_scale/workload.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "coflow/check.h"

namespace weir::bench {
namespace {

using scheduler::CoflowSlot;
using scheduler::FlowIndex;
using scheduler::LinkIndex;
using scheduler::LiveFabric;

constexpr scheduler::WholeRate kPort = 12'500'000'000;  // 100 Gbit/s
constexpr double kMedianBytes = 64.0 * 1024 * 1024;
constexpr double kSigma = 1.5;
constexpr double kExponent = 1.1;
constexpr double kWidest = 1e4;  // Times the narrowest; bounds the tail, and with it the variance of the mean.

/// Mean of the bounded Pareto law on [1, kWidest].
double ParetoMean() {
  const double cut = std::pow(kWidest, -kExponent);
  return kExponent / (kExponent - 1) * (1 - std::pow(kWidest, 1 - kExponent)) / (1 - cut);
}

}  // namespace

Workload::Workload(const Scale& scale, std::uint64_t seed) : scale_(scale), random_(seed) {
  width_scale_ = static_cast<double>(scale.flows) / scale.coflows / ParetoMean();
  const scheduler::LiveLimits limits{
      .coflows = 2 * scale.coflows + 64, .flows = 4 * scale.flows + 4096, .hops = scale.leaf > 0 ? 4u : 2u};
  auto made = scheduler::LiveScheduler::Make(Capacities(), {.rates = scale.rates, .limits = limits});
  WEIR_CHECK(made.has_value());
  live_ = std::move(*made);
  Refill();
  live_->Recompute();
}

/// Links: out of each host, into each host, then out of and into each leaf.
std::vector<scheduler::WholeRate> Workload::Capacities() const {
  std::vector<scheduler::WholeRate> capacity(2 * scale_.hosts, kPort);
  if (scale_.leaf > 0) {
    const std::uint32_t leaves = (scale_.hosts + scale_.leaf - 1) / scale_.leaf;
    capacity.resize(capacity.size() + 2 * leaves, kPort * scale_.leaf / 2);
  }
  return capacity;
}

void Workload::AppendPath(std::uint32_t from, std::uint32_t to) {
  path_begins_.push_back(paths_.size());
  paths_.push_back(from);
  if (scale_.leaf > 0 && from / scale_.leaf != to / scale_.leaf) {
    const std::uint32_t leaves = (scale_.hosts + scale_.leaf - 1) / scale_.leaf;
    paths_.push_back(2 * scale_.hosts + from / scale_.leaf);
    paths_.push_back(2 * scale_.hosts + leaves + to / scale_.leaf);
  }
  paths_.push_back(scale_.hosts + to);
}

std::uint32_t Workload::Width() {
  const double mean = static_cast<double>(scale_.flows) / scale_.coflows;
  if (scale_.shape == Shape::kEven) {
    return std::max(1u, static_cast<std::uint32_t>(mean));
  }
  const double u = std::uniform_real_distribution<double>(0, 1)(random_);
  const double cut = std::pow(kWidest, -kExponent);
  const double width = width_scale_ * std::pow(1 - u * (1 - cut), -1 / kExponent);
  const double most = std::min<double>(scale_.flows / 10.0, static_cast<double>(scale_.hosts) * scale_.hosts / 4.0);
  return static_cast<std::uint32_t>(std::clamp(std::round(width), 1.0, std::max(1.0, most)));
}

scheduler::LiveCoflow Workload::NewCoflow() {
  const bool even = scale_.shape == Shape::kEven;
  const std::uint32_t width = Width();
  const auto side = even ? width : static_cast<std::uint32_t>(std::ceil(std::sqrt(width)));
  std::vector<std::uint32_t> senders;
  std::vector<std::uint32_t> receivers;
  for (std::uint32_t i = 0; i < side; ++i) {
    senders.push_back(Below(scale_.hosts));
    receivers.push_back(Below(scale_.hosts));
  }
  paths_.clear();
  path_begins_.clear();
  for (std::uint32_t i = 0; i < width; ++i) {
    AppendPath(senders[i % side], receivers[even ? i : i / side]);
  }
  path_begins_.push_back(paths_.size());
  std::lognormal_distribution<double> bytes(std::log(kMedianBytes), kSigma);
  flows_.clear();
  for (std::uint32_t i = 0; i < width; ++i) {
    const auto path = std::span(paths_).subspan(path_begins_[i], path_begins_[i + 1] - path_begins_[i]);
    flows_.push_back({1 + static_cast<std::int64_t>(bytes(random_)), path});
  }
  const std::uint64_t id = next_id_++;
  return {CoflowId(id), static_cast<Nanoseconds>(id), 0, flows_};
}

CoflowSlot Workload::AnyCoflow() {
  const auto order = live_->order();
  return order[Below(static_cast<std::uint32_t>(order.size()))];
}

LinkIndex Workload::AnyLink() {
  return Below(live_->fabric().links());
}

FlowIndex Workload::ServedFlow() {
  const auto served = live_->served();
  const auto flows = live_->fabric().Flows(served[Below(static_cast<std::uint32_t>(served.size()))]);
  const std::uint32_t first = Below(static_cast<std::uint32_t>(flows.size()));
  for (std::size_t i = first;; i = (i + 1) % flows.size()) {
    if (live_->fabric().rate[flows[i]] > 0) {
      return flows[i];
    }
  }
}

std::pair<Nanoseconds, FlowIndex> Workload::NextEnd() const {
  const LiveFabric& fabric = live_->fabric();
  double soonest = std::numeric_limits<double>::infinity();
  FlowIndex first = 0;
  for (const CoflowSlot slot : live_->served()) {
    for (const FlowIndex flow : fabric.Flows(slot)) {
      const auto rate = static_cast<double>(fabric.rate[flow]);
      const auto left = static_cast<double>(fabric.Remaining(flow));
      if (rate > 0 && left < soonest * rate) {
        soonest = left / rate;
        first = flow;
      }
    }
  }
  return {static_cast<Nanoseconds>(soonest * 1e9) + 1, first};
}

void Workload::Refill() {
  while (live_->fabric().coflow_count < scale_.coflows) {
    WEIR_CHECK(live_->AddCoflow(NewCoflow()).has_value());
  }
}

}  // namespace weir::bench
