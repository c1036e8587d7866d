#include "scheduler/sim/arrivals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace weir::scheduler {
namespace {

std::int64_t ArrivalTick(Nanoseconds arrival, const SimOptions& options) {
  const std::int64_t exact = TicksOf(arrival, options.scale);
  if (options.arrival_step <= 0) {
    return exact;
  }
  return (exact + options.arrival_step - 1) / options.arrival_step * options.arrival_step;
}

}  // namespace

std::int64_t TicksOf(Nanoseconds time, const TimeScale& scale) {
  return std::llround(static_cast<double>(time) * 1e-6 * scale.ticks_per_ms);
}

Arrivals::Arrivals(const traces::Trace& trace, const SimOptions& options)
    : waits_for_(trace.coflows.size(), 0), followers_(trace.coflows.size()) {
  std::unordered_map<std::uint64_t, std::size_t> index;
  for (std::size_t i = 0; i < trace.coflows.size(); ++i) {
    index.emplace(trace.coflows[i].id, i);
  }
  for (std::size_t i = 0; i < trace.coflows.size(); ++i) {
    const traces::TraceCoflow& coflow = trace.coflows[i];
    arrival_.push_back(ArrivalTick(coflow.arrival, options));
    waits_for_[i] = coflow.after.size();
    for (const std::uint64_t parent : coflow.after) {
      followers_[index.at(parent)].push_back(i);
    }
    if (coflow.after.empty()) {
      starts_.emplace(arrival_[i], i);
    }
  }
}

std::int64_t Arrivals::Next() const {
  return starts_.empty() ? std::numeric_limits<std::int64_t>::max() : starts_.top().first;
}

std::size_t Arrivals::Pop() {
  const std::size_t coflow = starts_.top().second;
  starts_.pop();
  return coflow;
}

void Arrivals::OnEnd(std::size_t coflow, std::int64_t now) {
  for (const std::size_t follower : followers_[coflow]) {
    if (--waits_for_[follower] == 0) {
      starts_.emplace(std::max(arrival_[follower], now), follower);
    }
  }
}

void FlowMerger::Merge(std::span<const traces::TraceFlow> flows, std::vector<MatchFlow>* merged) {
  by_destination_.resize(flows.size());
  merged->resize(flows.size());
  const auto place = [this](std::size_t ports_seen) {
    std::size_t sum = 0;
    for (std::size_t port = 0; port < ports_seen; ++port) {
      sum += std::exchange(count_[port], sum);
    }
  };
  std::fill(count_.begin(), count_.end(), 0);
  for (const traces::TraceFlow& flow : flows) {
    ++count_[flow.destination];
  }
  place(count_.size());
  for (const traces::TraceFlow& flow : flows) {
    by_destination_[count_[flow.destination]++] = {flow.source, flow.destination,
                                                   static_cast<std::int64_t>(flow.bytes)};
  }
  std::fill(count_.begin(), count_.end(), 0);
  for (const MatchFlow& flow : by_destination_) {
    ++count_[flow.source];
  }
  place(count_.size());
  for (const MatchFlow& flow : by_destination_) {
    (*merged)[count_[flow.source]++] = flow;
  }
  std::size_t kept = 0;
  for (const MatchFlow& flow : *merged) {
    if (kept > 0 && (*merged)[kept - 1].source == flow.source && (*merged)[kept - 1].destination == flow.destination) {
      (*merged)[kept - 1].bytes += flow.bytes;
    } else {
      (*merged)[kept++] = flow;
    }
  }
  merged->resize(kept);
}

}  // namespace weir::scheduler
