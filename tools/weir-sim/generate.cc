#include "coflow/traces/generate.h"

#include <fmt/format.h>

#include <cmath>

#include "tools/weir-sim/commands.h"
#include "tools/weir-sim/trace_output.h"

namespace weir::tools {
namespace {

constexpr double kMebibyte = 1'048'576;
constexpr double kSecondsMax = 315'360'000;

Result<Nanoseconds> Time(std::string_view flag, double seconds) {
  if (!(seconds >= 0) || seconds > kSecondsMax) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--{}: found {}, allowed: 0 to {}", flag, seconds, kSecondsMax));
  }
  return std::llround(seconds * 1e9);
}

Result<traces::Trace> GenerateFacebookLike(const Options& options, Nanoseconds span) {
  traces::FacebookLikeOptions like;
  like.seed = options.seed;
  like.ports = options.ports;
  like.coflows = options.coflows;
  like.span = span;
  like.port_rate = options.port_mib * kMebibyte;
  like.load = options.load;
  like.width = options.width;
  like.skew = options.skew;
  return traces::GenerateFacebookLike(like);
}

Result<traces::Trace> GenerateTraining(const Options& options, Nanoseconds span) {
  const auto pattern = traces::PatternFromName(options.pattern);
  if (!pattern) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--pattern: found \"{}\", allowed: facebook, ring, tree, all-to-all, ps, pipeline",
                             options.pattern));
  }
  const auto period = Time("period_s", options.period_s);
  if (!period) {
    return tl::unexpected(period.error());
  }
  traces::TrainingOptions training;
  training.pattern = *pattern;
  training.seed = options.seed;
  training.ports = options.ports;
  training.jobs = options.jobs;
  training.ranks = options.ranks;
  training.iterations = options.iterations;
  training.micro_batches = options.micro_batches;
  training.bytes = options.bytes;
  training.period = *period;
  training.span = span;
  return traces::GenerateTraining(training);
}

}  // namespace

int GenerateCommand(const Options& options) {
  const auto span = Time("span_s", options.span_s);
  if (!span) {
    return Fail(span.error());
  }
  const auto trace =
      options.pattern == "facebook" ? GenerateFacebookLike(options, *span) : GenerateTraining(options, *span);
  if (!trace) {
    return Fail(trace.error());
  }
  const Status status = WriteTrace(options, *trace);
  return status.ok() ? 0 : Fail(status);
}

}  // namespace weir::tools
