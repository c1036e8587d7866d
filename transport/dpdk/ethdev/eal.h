#pragma once

#include "coflow/status.h"
#include "transport/dpdk/ethdev/ethdev.h"

namespace weir::transport::dpdk {

/// Starts DPDK's environment with the first call; later calls say how that went. A fork of the process that started it
/// is refused: the threads of DPDK are not in it, and its devices are the parent's. Any thread.
Status StartEal(std::uint32_t memory_mb);
/// Plugs a virtual device in; its port number. The name is what stands before the first comma.
Result<std::uint16_t> PlugIn(const std::string& device);
void Unplug(const std::string& device);

}  // namespace weir::transport::dpdk
