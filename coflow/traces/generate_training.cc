#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "coflow/collectives.h"
#include "coflow/traces/draws.h"
#include "coflow/traces/generate.h"

namespace weir::traces {
namespace {

struct PatternName {
  std::string_view name;
  Pattern pattern;
};

constexpr PatternName kPatterns[] = {{"ring", Pattern::kRing},
                                     {"tree", Pattern::kTree},
                                     {"all-to-all", Pattern::kAllToAll},
                                     {"ps", Pattern::kServers},
                                     {"pipeline", Pattern::kPipeline}};

std::uint64_t CoflowsPerIteration(const TrainingOptions& options) {
  switch (options.pattern) {
    case Pattern::kServers:
      return 2;
    case Pattern::kPipeline:
      return std::uint64_t{2} * options.micro_batches * (options.ranks - 1);
    default:
      return 1;
  }
}

/// Flows of one iteration, at most.
std::uint64_t FlowsPerIteration(const TrainingOptions& options) {
  const std::uint64_t ranks = options.ranks;
  switch (options.pattern) {
    case Pattern::kAllToAll:
      return ranks * ranks;
    case Pattern::kServers:
    case Pattern::kTree:
      return 2 * ranks * (options.pattern == Pattern::kServers ? ranks : 1);
    case Pattern::kPipeline:
      return CoflowsPerIteration(options);
    case Pattern::kRing:
      return ranks;
  }
  return ranks;
}

/// Writes the coflows of one job after another into a trace.
class TrainingTrace {
 public:
  explicit TrainingTrace(const TrainingOptions& options) : options_(options), draws_(options.seed) {
    trace_.name = fmt::format("training, seed {}", options.seed);
    trace_.ports = options.ports;
    ports_.resize(options.ports);
    std::iota(ports_.begin(), ports_.end(), std::uint32_t{0});
  }

  Result<Trace> Generate() {
    for (std::uint32_t job = 1; job <= options_.jobs; ++job) {
      if (Status status = AddJob(job); !status.ok()) {
        return tl::unexpected(std::move(status));
      }
    }
    if (Status status = Finish(&trace_, trace_.name); !status.ok()) {
      return tl::unexpected(std::move(status));
    }
    return std::move(trace_);
  }

 private:
  Status AddJob(std::uint32_t job) {
    job_ = job;
    begin_ = static_cast<Nanoseconds>(draws_.Uniform() * static_cast<double>(options_.span));
    hosts_.clear();
    for (std::size_t i = 0; i < options_.ranks; ++i) {
      std::swap(ports_[i], ports_[i + draws_.Index(ports_.size() - i)]);
      hosts_.emplace_back(std::uint64_t{ports_[i]} + 1);
    }
    last_.clear();
    Status status = PrepareFlows();
    for (std::uint32_t iteration = 0; status.ok() && iteration < options_.iterations; ++iteration) {
      arrival_ = begin_ + iteration * options_.period;
      AddIteration();
    }
    return status;
  }

  /// The flows of every iteration of a job are the same: the steps that follow each other, or the sends of a pipeline.
  Status PrepareFlows() {
    steps_.clear();
    switch (options_.pattern) {
      case Pattern::kRing:
        return AddStep(RingAllReduce(hosts_, options_.bytes));
      case Pattern::kTree:
        return AddStep(TreeAllReduce(hosts_, options_.bytes));
      case Pattern::kAllToAll:
        return AddStep(AllToAll(hosts_, options_.bytes));
      case Pattern::kServers: {
        const auto servers = BalancedServers(hosts_, {});
        if (!servers) {
          return servers.error();
        }
        Status status = AddStep(ParameterPush(hosts_, *servers, options_.bytes));
        return status.ok() ? AddStep(ParameterPull(hosts_, *servers, options_.bytes)) : status;
      }
      case Pattern::kPipeline:
        return Status::Ok();
    }
    return Status(StatusCode::kInternal, "unknown pattern");
  }

  Status AddStep(Result<std::vector<Flow>> flows) {
    if (!flows) {
      return flows.error();
    }
    steps_.emplace_back();
    for (const Flow& flow : *flows) {
      // A buffer smaller than the number of ranks leaves some of them without a byte.
      if (*flow.bytes > 0) {
        steps_.back().push_back({Port(flow.source), Port(flow.destination), *flow.bytes});
      }
    }
    return Status::Ok();
  }

  void AddIteration() {
    if (options_.pattern == Pattern::kPipeline) {
      AddPipelineIteration();
      return;
    }
    for (const auto& step : steps_) {
      last_ = {AddCoflow(step, last_)};
    }
  }

  /// A stage handles one micro-batch after the other. Forward: stage to stage + 1, after the send that brought the
  /// micro-batch and the send before it. Back: the same the other way; the last stage begins with what it received.
  void AddPipelineIteration() {
    const std::uint32_t links = options_.ranks - 1;
    std::vector<std::uint64_t> forward(links, 0);
    std::vector<std::uint64_t> arrived(options_.micro_batches, 0);
    for (std::uint32_t batch = 0; batch < options_.micro_batches; ++batch) {
      for (std::uint32_t link = 0; link < links; ++link) {
        std::vector<std::uint64_t> after = batch == 0 && link == 0 ? last_ : std::vector<std::uint64_t>();
        AppendIfAny(batch == 0 ? 0 : forward[link], &after);
        AppendIfAny(link == 0 ? 0 : forward[link - 1], &after);
        forward[link] = AddSend(link, link + 1, after);
      }
      arrived[batch] = forward.back();
    }
    std::vector<std::uint64_t> back(links, 0);
    for (std::uint32_t batch = 0; batch < options_.micro_batches; ++batch) {
      for (std::uint32_t link = links; link-- > 0;) {
        std::vector<std::uint64_t> after;
        AppendIfAny(batch == 0 ? 0 : back[link], &after);
        AppendIfAny(link + 1 == links ? arrived[batch] : back[link + 1], &after);
        back[link] = AddSend(link + 1, link, after);
      }
    }
    last_ = {back.front()};
  }

  static void AppendIfAny(std::uint64_t id, std::vector<std::uint64_t>* ids) {
    if (id != 0) {
      ids->push_back(id);
    }
  }

  std::uint64_t AddSend(std::uint32_t from, std::uint32_t to, const std::vector<std::uint64_t>& after) {
    return AddCoflow({{Port(hosts_[from]), Port(hosts_[to]), options_.bytes}}, after);
  }

  std::uint64_t AddCoflow(const std::vector<TraceFlow>& flows, const std::vector<std::uint64_t>& after) {
    TraceCoflow coflow;
    coflow.id = trace_.coflows.size() + 1;
    coflow.job = job_;
    coflow.arrival = arrival_;
    coflow.after = after;
    coflow.flows = flows;
    CountEnds(&coflow);
    trace_.coflows.push_back(std::move(coflow));
    return trace_.coflows.back().id;
  }

  static std::uint32_t Port(HostId host) { return static_cast<std::uint32_t>(host.value - 1); }

  TrainingOptions options_;
  Draws draws_;
  Trace trace_;
  std::vector<std::uint32_t> ports_;  // a random order of all
  // Of the job at hand.
  std::uint64_t job_ = 0;
  Nanoseconds begin_ = 0;
  Nanoseconds arrival_ = 0;
  std::vector<HostId> hosts_;
  std::vector<std::vector<TraceFlow>> steps_;
  std::vector<std::uint64_t> last_;  // what the next iteration waits for
};

Status CheckRange(std::string_view name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
  return value >= low && value <= high ? Status::Ok()
                                       : Status(StatusCode::kInvalidArgument,
                                                fmt::format("{}: found {}, allowed: {} to {}", name, value, low, high));
}

Status CheckOptions(const TrainingOptions& options) {
  constexpr auto kHalf = static_cast<std::uint64_t>(kTimeMax / 2);
  for (const Status& status :
       {CheckRange("ports", options.ports, 2, kPortsMax), CheckRange("jobs", options.jobs, 1, kGeneratedCoflowsMax),
        CheckRange("ranks", options.ranks, 2, options.ports),
        CheckRange("iterations", options.iterations, 1, kGeneratedCoflowsMax),
        CheckRange("micro_batches", options.micro_batches, 1, 1024),
        CheckRange("bytes", options.bytes, 1, kFlowBytesMax / 4),
        CheckRange("span in ns", static_cast<std::uint64_t>(options.span), 0, kHalf),
        CheckRange("period in ns", static_cast<std::uint64_t>(options.period), 0, kHalf / options.iterations)}) {
    if (!status.ok()) {
      return status;
    }
  }
  const std::uint64_t iterations = std::uint64_t{options.jobs} * options.iterations;
  if (iterations > kGeneratedCoflowsMax / CoflowsPerIteration(options) ||
      iterations > kGeneratedFlowsMax / FlowsPerIteration(options)) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("more than {} coflows or {} flows; lower jobs, iterations or ranks", kGeneratedCoflowsMax,
                              kGeneratedFlowsMax));
  }
  return Status::Ok();
}

}  // namespace

Result<Pattern> PatternFromName(std::string_view name) {
  for (const PatternName& known : kPatterns) {
    if (known.name == name) {
      return known.pattern;
    }
  }
  return Error(StatusCode::kInvalidArgument,
               fmt::format("pattern: found \"{}\", allowed: ring, tree, all-to-all, ps, pipeline", name));
}

Result<Trace> GenerateTraining(const TrainingOptions& options) {
  if (Status status = CheckOptions(options); !status.ok()) {
    return tl::unexpected(std::move(status));
  }
  return TrainingTrace(options).Generate();
}

}  // namespace weir::traces
