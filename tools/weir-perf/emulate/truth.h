#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"
#include "tools/weir-perf/emulate/plan.h"

namespace weir::tools::emulate {

/// What NCCL calls a collective.
struct FunctionName {
  const char* function = nullptr;   ///< "AllReduce"
  const char* algorithm = nullptr;  ///< "RING"
  unsigned bit = 0;                 ///< In the masks of setNetAttr.
  bool p2p = false;                 ///< Made of sends and receives.
};
FunctionName NameOf(Collective collective);

struct CoflowName : FunctionName {
  std::uint64_t sequence = 0;  ///< In its communicator: by function, or of groups of sends and receives.
};

/// Which coflows one rank really sent, to compare with what the plugin took them for. One thread.
class Truth {
 public:
  struct Comparison {
    std::uint64_t coflows = 0;
    std::uint64_t coflows_right = 0;  ///< Sends and bytes are those that there were, and the name is right,
    std::uint64_t sends_right = 0;    ///< and so many sends they had.
  };

  void BeginComm(std::uint64_t comm_id);
  CoflowName Begin(Collective collective);
  /// The one that was begun last is done.
  void End(std::uint64_t sends, Bytes bytes);
  /// With the report that the plugin wrote at `path`. The name counts where the plugin has it from the profiler; of
  /// what it guessed, the numbers alone. Error kNotFound: no such file.
  Result<Comparison> Compare(const std::string& path) const;

 private:
  struct Coflow {
    std::string name;  ///< As the report has it.
    std::uint64_t sends = 0;
    Bytes bytes = 0;
  };
  std::uint64_t comm_id_ = 0;
  std::vector<std::uint64_t> sequences_;  ///< By bit of the function.
  std::vector<Coflow> coflows_;
};

}  // namespace weir::tools::emulate
