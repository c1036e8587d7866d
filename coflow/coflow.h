#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "coflow/ids.h"
#include "coflow/units.h"

namespace weir {

/// What a communicator was asked to do. docs/glossary.md says how each moves its bytes.
enum class Function : std::uint8_t {
  kAllReduce,
  kReduceScatter,
  kAllGather,
  kAllToAll,
  kBroadcast,
  kPush,  ///< Gradients from workers to parameter servers.
  kPull,  ///< Parameters back.
  kSend,  ///< One pipeline stage to the next.
};

constexpr std::string_view FunctionName(Function function) {
  constexpr std::string_view kNames[] = {"all-reduce", "reduce-scatter", "all-gather", "all-to-all",
                                         "broadcast",  "push",           "pull",       "send"};
  return kNames[static_cast<std::size_t>(function)];
}

/// What makes two pieces of traffic the same coflow: the instance of one operation of one communicator of one job.
struct CoflowKey {
  JobId job;
  std::uint64_t communicator = 0;
  Function function = Function::kSend;
  std::uint64_t sequence = 0;  ///< Counts the operations of the communicator.

  friend auto operator<=>(const CoflowKey&, const CoflowKey&) = default;
};

/// The bytes of one coflow between one pair of hosts. Between two ranks of one host no flow exists: those bytes never
/// reach a port.
struct Flow {
  HostId source;
  HostId destination;
  std::optional<Bytes> bytes;  ///< In all; none: not known yet, which is the normal case for intercepted traffic.
  Bytes sent = 0;

  friend bool operator==(const Flow&, const Flow&) = default;
};

/// Flows that matter together: the coflow is done when the last of them is. A plain value.
struct Coflow {
  CoflowId id;
  CoflowKey key;
  Nanoseconds begun = 0;  ///< When its first byte was offered.
  std::vector<Flow> flows;

  friend bool operator==(const Coflow&, const Coflow&) = default;
};

}  // namespace weir
