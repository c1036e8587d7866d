#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::nccl {

/// Which collective a transfer belongs to, in NCCL's numbering.
enum class Function : std::uint8_t {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,
  kSendReceive = 5,  ///< A group of sends and receives: a pipeline step, an all-to-all.
  kNone = 255,       ///< Not known.
};

/// How a transfer's coflow was found, the most exact first.
enum class Attribution : std::uint8_t {
  kProfiler = 0,    ///< NCCL said so: communicator, function and number.
  kAttributes = 1,  ///< The function from setNetAttr, the number counted here.
  kIdleGap = 2,     ///< By pauses of the communicator (v11 on) or of the process (before).
};

/// One coflow, the same on all ranks without a message between them when it comes from the profiler. A plain value.
struct CoflowKey {
  std::uint64_t comm_id = 0;  ///< NCCL's hash of the communicator; 0: not known.
  std::uint64_t sequence = 0;
  std::uint32_t replay = 0;  ///< 0: the number is new; else counts repeats of the function's, as CUDA graphs make them.
  Function function = Function::kNone;
  Attribution attribution = Attribution::kIdleGap;

  friend bool operator==(const CoflowKey&, const CoflowKey&) = default;
};

/// The same on all hosts.
std::uint64_t HashOf(const CoflowKey& key) noexcept;
const char* FunctionName(Function function);
const char* AttributionName(Attribution attribution);
/// NCCL's word for it: "AllReduce", "Send". What is not listed is kNone.
Function FunctionFromName(const char* name);

}  // namespace weir::nccl
