#pragma once

#include <cstdint>
#include <string_view>

#include "coflow/status.h"
#include "coflow/traces/trace.h"

/// Traces out of a seed. The same options give the same trace on every machine whose `log`, `exp` and `cos` agree. Pure
/// functions: any thread.
namespace weir::traces {

inline constexpr std::uint32_t kGeneratedCoflowsMax = 1'000'000;
inline constexpr std::size_t kGeneratedFlowsMax = 100'000'000;

/// A trace with the shape of the public Facebook one; docs/trace-format.md has the distributions and how they were
/// fitted. The defaults give its order of figures.
struct FacebookLikeOptions {
  std::uint64_t seed = 1;
  std::uint32_t ports = 150;               ///< 2 to kPortsMax.
  std::uint32_t coflows = 526;             ///< 2 to kGeneratedCoflowsMax.
  Nanoseconds span = kHour;                ///< First to last arrival; at least one millisecond, at most kTimeMax.
  BytesPerSecond port_rate = 134'217'728;  ///< What `load` is a share of.
  double load = 0.52;  ///< All bytes / (ports x port_rate x span). Above 0, at most 10. Met to 5 % where the
                       ///< least sizes allow it: a flow has at least 1 MB.
  double width = 1;    ///< Times the mappers and reducers of every coflow, within the ports. 0.01 to 100.
  double skew = 0.5;   ///< Sigma of the lognormal sizes of the reducers of one coflow. 0 to 5.

  static constexpr Nanoseconds kHour = 3600 * kSecond;
};

/// InvalidArgument names the option that is out of range, ResourceExhausted that there would be too many flows.
Result<Trace> GenerateFacebookLike(const FacebookLikeOptions& options);

/// How the ranks of a training job exchange; see coflow/collectives.h for the flows of each.
enum class Pattern {
  kRing,      ///< One ring all-reduce an iteration.
  kTree,      ///< One tree all-reduce an iteration.
  kAllToAll,  ///< One all-to-all an iteration.
  kServers,   ///< A push to balanced parameter servers on the workers, then a pull.
  kPipeline,  ///< Per micro-batch a send from stage to stage, then the gradients back.
};

/// "ring", "tree", "all-to-all", "ps", "pipeline". InvalidArgument names what is allowed.
Result<Pattern> PatternFromName(std::string_view name);

/// Training jobs, each on random ports of its own choice. A job's coflows carry its number, 1 on; each waits for what
/// it follows, and none of an iteration starts before period x iteration: the compute between them.
struct TrainingOptions {
  Pattern pattern = Pattern::kRing;
  std::uint64_t seed = 1;
  std::uint32_t ports = 150;        ///< 2 to kPortsMax.
  std::uint32_t jobs = 10;          ///< 1 to kGeneratedCoflowsMax. Ports may be shared between jobs.
  std::uint32_t ranks = 8;          ///< 2 to `ports`; pipeline: the stages.
  std::uint32_t iterations = 10;    ///< 1 to kGeneratedCoflowsMax.
  std::uint32_t micro_batches = 4;  ///< Pipeline only. 1 to 1024.
  Bytes bytes = 104'857'600;        ///< Of the buffer, or of one send. 1 to kFlowBytesMax / 4.
  Nanoseconds period = kSecond;     ///< At most kTimeMax / 2 over all iterations.
  Nanoseconds span = 10 * kSecond;  ///< Jobs begin at uniformly random times in it. At most kTimeMax / 2.
};

/// InvalidArgument names the option that is out of range, ResourceExhausted that there would be too many coflows or
/// flows; otherwise the errors of coflow/collectives.h.
Result<Trace> GenerateTraining(const TrainingOptions& options);

}  // namespace weir::traces
