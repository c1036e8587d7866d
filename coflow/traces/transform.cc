#include "coflow/traces/transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "coflow/traces/draws.h"

namespace weir::traces {
namespace {

Status CheckRange(std::string_view name, double value, double low, double high) {
  return value >= low && value <= high ? Status::Ok()
                                       : Status(StatusCode::kInvalidArgument,
                                                fmt::format("{}: found {}, allowed: {} to {}", name, value, low, high));
}

Status CheckOptions(const TransformOptions& options) {
  for (const Status& status : {CheckRange("scale_bytes", options.scale_bytes, 1e-6, 1e6),
                               CheckRange("scale_arrivals", options.scale_arrivals, 0, 1e6),
                               CheckRange("skew_sigma", options.skew_sigma, 0, 10),
                               CheckRange("batch_arrivals", ToSeconds(options.batch_arrivals), 0, ToSeconds(kTimeMax)),
                               CheckRange("deadline_factor", options.deadline_factor.value_or(0), 0, 1000)}) {
    if (!status.ok()) {
      return status;
    }
  }
  return Status::Ok();
}

Status ScaleBytes(double scale, Trace* trace) {
  for (TraceCoflow& coflow : trace->coflows) {
    for (TraceFlow& flow : coflow.flows) {
      const double bytes = std::round(static_cast<double>(flow.bytes) * scale);
      if (bytes > static_cast<double>(kFlowBytesMax)) {
        return Status(StatusCode::kUnsupported, fmt::format("coflow {}: scaled, a flow has {} bytes; allowed: up to {}",
                                                            coflow.id, bytes, kFlowBytesMax));
      }
      flow.bytes = std::max<Bytes>(1, static_cast<Bytes>(bytes));
    }
  }
  return Status::Ok();
}

Status ScaleArrivals(double scale, Trace* trace) {
  for (TraceCoflow& coflow : trace->coflows) {
    const double arrival = std::round(static_cast<double>(coflow.arrival) * scale);
    if (arrival > static_cast<double>(kTimeMax)) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("coflow {}: scaled, it arrives later than ten years after the start", coflow.id));
    }
    coflow.arrival = static_cast<Nanoseconds>(arrival);
  }
  return Status::Ok();
}

/// Deals out `total` bytes to flows in proportion to `weights`, at least one byte each while there are enough; the sum
/// is kept exactly because cumulative shares are rounded, not the shares.
void SplitByWeight(Bytes total, const std::vector<std::size_t>& flows, const std::vector<double>& weights,
                   TraceCoflow* coflow) {
  double sum = 0;
  for (const double weight : weights) {
    sum += weight;
  }
  const Bytes spare = total - flows.size();
  double ahead = 0;
  Bytes given = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    ahead += weights[i];
    const auto until =
        i + 1 == flows.size()
            ? spare
            : std::min(spare, static_cast<Bytes>(static_cast<double>(spare) * std::min(1.0, ahead / sum)));
    coflow->flows[flows[i]].bytes = 1 + until - given;
    given = until;
  }
}

Status Skew(double sigma, std::uint64_t seed, Trace* trace) {
  Draws draws(seed);
  std::vector<std::vector<std::size_t>> flows_to(trace->ports);
  std::vector<double> weights;
  for (TraceCoflow& coflow : trace->coflows) {
    for (auto& flows : flows_to) {
      flows.clear();
    }
    for (std::size_t i = 0; i < coflow.flows.size(); ++i) {
      flows_to[coflow.flows[i].destination].push_back(i);
    }
    for (const auto& flows : flows_to) {
      Bytes total = 0;
      weights.clear();
      for (const std::size_t flow : flows) {
        total += coflow.flows[flow].bytes;
        weights.push_back(std::exp(sigma * draws.Normal()));
      }
      if (flows.empty()) {
        continue;
      }
      if (total > kFlowBytesMax) {
        return Status(StatusCode::kUnsupported,
                      fmt::format("coflow {}: a port receives {} bytes; to be split anew allowed: up to {}", coflow.id,
                                  total, kFlowBytesMax));
      }
      SplitByWeight(total, flows, weights, &coflow);
    }
  }
  return Status::Ok();
}

Status ShuffleArrivals(std::uint64_t seed, Trace* trace) {
  for (const TraceCoflow& coflow : trace->coflows) {
    if (!coflow.after.empty()) {
      return Status(StatusCode::kUnsupported,
                    fmt::format("coflow {} waits for others, so arrival times cannot be shuffled", coflow.id));
    }
  }
  Draws draws(seed);
  for (std::size_t i = trace->coflows.size(); i > 1; --i) {
    std::swap(trace->coflows[i - 1].arrival, trace->coflows[draws.Index(i)].arrival);
  }
  return Status::Ok();
}

void BatchArrivals(Nanoseconds batch, Trace* trace) {
  for (TraceCoflow& coflow : trace->coflows) {
    coflow.arrival = std::max<Nanoseconds>(0, (coflow.arrival - 1) / batch * batch);
  }
}

void DrawDeadlines(const TransformOptions& options, Trace* trace) {
  Draws draws(options.deadline_seed);
  for (TraceCoflow& coflow : trace->coflows) {
    const double alone = static_cast<double>(BottleneckBytes(coflow, trace->ports)) / options.port_rate;
    const double deadline = std::ceil(alone * (1 + draws.Uniform() * *options.deadline_factor) * 1e9);
    coflow.deadline = static_cast<Nanoseconds>(std::clamp(deadline, 1.0, static_cast<double>(kTimeMax)));
  }
}

}  // namespace

Bytes BottleneckBytes(const TraceCoflow& coflow, std::uint32_t ports) {
  std::vector<Bytes> load(2 * std::size_t{ports}, 0);
  for (const TraceFlow& flow : coflow.flows) {
    load[flow.source] += flow.bytes;
    load[ports + flow.destination] += flow.bytes;
  }
  return load.empty() ? 0 : *std::max_element(load.begin(), load.end());
}

Status Transform(const TransformOptions& options, Trace* trace) {
  Status status = CheckOptions(options);
  if (status.ok() && options.scale_bytes != 1) {
    status = ScaleBytes(options.scale_bytes, trace);
  }
  if (status.ok() && options.scale_arrivals != 1) {
    status = ScaleArrivals(options.scale_arrivals, trace);
  }
  if (status.ok() && options.skew_sigma > 0) {
    status = Skew(options.skew_sigma, options.skew_seed, trace);
  }
  if (status.ok() && options.shuffle_seed != 0) {
    status = ShuffleArrivals(options.shuffle_seed, trace);
  }
  if (!status.ok()) {
    return status;
  }
  if (options.batch_arrivals > 0) {
    BatchArrivals(options.batch_arrivals, trace);
  }
  if (options.deadline_factor) {
    DrawDeadlines(options, trace);
  }
  return Finish(trace, trace->name);
}

}  // namespace weir::traces
