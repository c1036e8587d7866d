#pragma once

#include <memory>

#include "agents/nccl/config.h"
#include "coflow/status.h"
#include "transport/transport.h"

namespace weir::nccl {

/// What moves the bytes, opened as the environment says (docs/nccl.md has the rule). With TransportName::kAuto: a port
/// of DPDK where one is set up, else RDMA where a port of a device is up, else TCP; why RDMA is not taken is said in
/// NCCL's log. Errors: those of the transport that is named; kInvalidArgument for a variable out of range whatever is
/// named.
Result<std::unique_ptr<transport::Transport>> OpenTransport(const PluginConfig& config);

}  // namespace weir::nccl
