#include "agents/nccl/coflow_key.h"

#include <cstring>
#include <initializer_list>

namespace weir::nccl {

std::uint64_t HashOf(const CoflowKey& key) noexcept {
  std::uint64_t mixed = key.comm_id ^ key.sequence * 0x9e3779b97f4a7c15u;
  mixed ^= std::uint64_t{key.replay} << 32 | static_cast<std::uint64_t>(key.function) << 8 |
           static_cast<std::uint64_t>(key.attribution);
  mixed *= 0xff51afd7ed558ccdu;
  return mixed ^ mixed >> 29;
}

const char* FunctionName(Function function) {
  switch (function) {
    case Function::kBroadcast:
      return "Broadcast";
    case Function::kReduce:
      return "Reduce";
    case Function::kAllGather:
      return "AllGather";
    case Function::kReduceScatter:
      return "ReduceScatter";
    case Function::kAllReduce:
      return "AllReduce";
    case Function::kSendReceive:
      return "SendRecv";
    case Function::kNone:
      return "unknown";
  }
  return "unknown";
}

const char* AttributionName(Attribution attribution) {
  switch (attribution) {
    case Attribution::kProfiler:
      return "profiler";
    case Attribution::kAttributes:
      return "attributes";
    case Attribution::kIdleGap:
      return "idle-gap";
  }
  return "unknown";
}

Function FunctionFromName(const char* name) {
  if (name == nullptr) return Function::kNone;
  for (const Function function : {Function::kBroadcast, Function::kReduce, Function::kAllGather,
                                  Function::kReduceScatter, Function::kAllReduce, Function::kSendReceive}) {
    if (std::strcmp(name, FunctionName(function)) == 0) return function;
  }
  // Sends and receives of one group, whatever NCCL calls the group.
  for (const char* p2p : {"Send", "Recv", "AlltoAll", "Gather", "Scatter"}) {
    if (std::strcmp(name, p2p) == 0) return Function::kSendReceive;
  }
  return Function::kNone;
}

}  // namespace weir::nccl
