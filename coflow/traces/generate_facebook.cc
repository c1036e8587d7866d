#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "coflow/traces/draws.h"
#include "coflow/traces/flow_list_readers.h"
#include "coflow/traces/generate.h"

namespace weir::traces {
namespace {

/// A category of coflows. Counts and sizes are lognormal: mean and deviation of the logarithm.
struct Category {
  double share;  ///< Of the coflows.
  double mappers_mean, mappers_sigma;
  double reducers_mean, reducers_sigma;
  double flow_mean, flow_sigma;  ///< Megabytes of one flow.
};

/// Short and narrow, long and narrow, short and wide, long and wide. A coflow is long from 5 MB in its largest flow on,
/// wide from 51 flows on. Fitted to the moments of the logarithms over the public trace, rounded.
constexpr Category kCategories[] = {{0.59, 1.16, 1.21, 0.32, 0.95, 0.06, 0.18},
                                    {0.17, 0.65, 0.62, 0.90, 1.45, 3.17, 1.34},
                                    {0.11, 3.66, 1.50, 3.51, 1.20, 0.19, 0.36},
                                    {0.13, 3.43, 1.42, 4.00, 1.11, 3.02, 1.19}};
/// Of the logarithm of the time between arrivals; their coefficient of variation is 1.41.
constexpr double kGapSigma = 1.05;

struct Shape {
  Nanoseconds arrival = 0;
  std::vector<std::uint32_t> mappers, reducers;
  std::vector<double> megabytes;  ///< By reducer, before they are scaled to the load.
};

const Category& DrawCategory(Draws* draws) {
  double left = draws->Uniform();
  for (const Category& category : kCategories) {
    left -= category.share;
    if (left < 0) {
      return category;
    }
  }
  return kCategories[0];
}

std::uint32_t DrawCount(double mean, double sigma, const FacebookLikeOptions& options, Draws* draws) {
  const double count = std::round(options.width * std::exp(mean + sigma * draws->Normal()));
  return static_cast<std::uint32_t>(std::clamp(count, 1.0, static_cast<double>(options.ports)));
}

/// The first `count` of a random order of all ports; `ports` is scratch that holds each port once.
std::vector<std::uint32_t> DrawPorts(std::uint32_t count, std::vector<std::uint32_t>* ports, Draws* draws) {
  for (std::size_t i = 0; i < count; ++i) {
    std::swap((*ports)[i], (*ports)[i + draws->Index(ports->size() - i)]);
  }
  return {ports->begin(), ports->begin() + count};
}

Shape DrawShape(const FacebookLikeOptions& options, std::vector<std::uint32_t>* ports, Draws* draws) {
  const Category& category = DrawCategory(draws);
  Shape shape;
  shape.mappers = DrawPorts(DrawCount(category.mappers_mean, category.mappers_sigma, options, draws), ports, draws);
  shape.reducers = DrawPorts(DrawCount(category.reducers_mean, category.reducers_sigma, options, draws), ports, draws);
  const double flow = std::exp(category.flow_mean + category.flow_sigma * draws->Normal());
  for (std::size_t i = 0; i < shape.reducers.size(); ++i) {
    shape.megabytes.push_back(flow * static_cast<double>(shape.mappers.size()) *
                              std::exp(options.skew * draws->Normal()));
  }
  return shape;
}

/// Whole megabytes, at least one a flow, as in the public trace.
double Rounded(double megabytes, const Shape& shape) {
  return std::max(static_cast<double>(shape.mappers.size()), std::round(megabytes));
}

/// What all reducers are multiplied by so that their sum is `megabytes`, by bisection: the least sizes make the sum a
/// function of the factor that does not fall but is not a line.
double ScaleTo(double megabytes, const std::vector<Shape>& shapes) {
  double low = 0;
  double high = 1e9;
  for (int step = 0; step < 100; ++step) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const Shape& shape : shapes) {
      for (const double reducer : shape.megabytes) {
        sum += Rounded(reducer * middle, shape);
      }
    }
    (sum < megabytes ? low : high) = middle;
  }
  return high;
}

void DrawArrivals(Nanoseconds span, std::vector<Shape>* shapes, Draws* draws) {
  std::vector<double> at;
  double now = 0;
  for (std::size_t i = 0; i < shapes->size(); ++i) {
    at.push_back(now);
    now += std::exp(kGapSigma * draws->Normal());
  }
  for (std::size_t i = 0; i < shapes->size(); ++i) {
    const double ms = std::round(static_cast<double>(span / kMillisecond) * at[i] / at.back());
    (*shapes)[i].arrival = static_cast<Nanoseconds>(ms) * kMillisecond;
  }
}

Result<TraceCoflow> CoflowOf(const Shape& shape, double scale, std::uint64_t id) {
  TraceCoflow coflow;
  coflow.id = id;
  coflow.arrival = shape.arrival;
  for (std::size_t reducer = 0; reducer < shape.reducers.size(); ++reducer) {
    const double megabytes = Rounded(shape.megabytes[reducer] * scale, shape);
    if (megabytes > static_cast<double>(kFlowBytesMax / kMegabyte)) {
      return Error(StatusCode::kResourceExhausted,
                   fmt::format("coflow {}: a reducer has {} MB, allowed: up to {}; lower load or skew", id, megabytes,
                               kFlowBytesMax / kMegabyte));
    }
    const Bytes bytes = static_cast<Bytes>(megabytes) * kMegabyte;
    const Bytes odd = bytes % shape.mappers.size();
    for (std::size_t i = 0; i < shape.mappers.size(); ++i) {
      coflow.flows.push_back(
          {shape.mappers[i], shape.reducers[reducer], bytes / shape.mappers.size() + (i < odd ? 1 : 0)});
    }
  }
  CountEnds(&coflow);
  return coflow;
}

Status CheckRange(std::string_view name, double value, double low, double high) {
  return value >= low && value <= high ? Status::Ok()
                                       : Status(StatusCode::kInvalidArgument,
                                                fmt::format("{}: found {}, allowed: {} to {}", name, value, low, high));
}

Status CheckOptions(const FacebookLikeOptions& options) {
  for (const Status& status :
       {CheckRange("ports", options.ports, 2, kPortsMax),
        CheckRange("coflows", options.coflows, 2, kGeneratedCoflowsMax),
        CheckRange("span in seconds", ToSeconds(options.span), 0.001, ToSeconds(kTimeMax)),
        CheckRange("port_rate", options.port_rate, 1, 1e15), CheckRange("load", options.load, 1e-9, 10),
        CheckRange("width", options.width, 0.01, 100), CheckRange("skew", options.skew, 0, 5)}) {
    if (!status.ok()) {
      return status;
    }
  }
  return Status::Ok();
}

}  // namespace

Result<Trace> GenerateFacebookLike(const FacebookLikeOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  Draws draws(options.seed);
  std::vector<std::uint32_t> ports(options.ports);
  std::iota(ports.begin(), ports.end(), 0);
  std::vector<Shape> shapes;
  std::size_t flows = 0;
  for (std::uint32_t i = 0; i < options.coflows; ++i) {
    shapes.push_back(DrawShape(options, &ports, &draws));
    flows += shapes.back().mappers.size() * shapes.back().reducers.size();
    if (flows > kGeneratedFlowsMax ||
        shapes.back().mappers.size() * shapes.back().reducers.size() > kFlowsPerCoflowMax) {
      return Error(StatusCode::kResourceExhausted,
                   fmt::format("more than {} flows, or {} in one coflow; lower coflows, ports or width",
                               kGeneratedFlowsMax, kFlowsPerCoflowMax));
    }
  }
  DrawArrivals(options.span, &shapes, &draws);
  const double megabytes = options.load * options.ports * options.port_rate * ToSeconds(options.span) / kMegabyte;
  const double scale = ScaleTo(megabytes, shapes);
  Trace trace;
  trace.name = fmt::format("facebook-like, seed {}", options.seed);
  trace.ports = options.ports;
  for (const Shape& shape : shapes) {
    auto coflow = CoflowOf(shape, scale, trace.coflows.size() + 1);
    if (!coflow) {
      return tl::unexpected(coflow.error());
    }
    trace.coflows.push_back(std::move(*coflow));
  }
  if (Status status = Finish(&trace, trace.name); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return trace;
}

}  // namespace weir::traces
