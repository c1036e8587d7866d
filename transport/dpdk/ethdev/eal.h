#pragma once

#include "coflow/status.h"
#include "transport/dpdk/ethdev/ethdev.h"

namespace weir::transport::dpdk {

/// Whether a device is named by its address on the PCI bus: "0000:00:05.0".
bool IsPci(const std::string& device);
/// Starts DPDK's environment with the first call; later calls say how that went. If the first device is a virtual one,
/// without hugepages and without the PCI bus; else with both, of which it looks at no other device than those that are
/// named. A fork of the process that started it is refused: the threads of DPDK are not in it, and its devices are the
/// parent's. Any thread. Error kUnsupported: a PCI device after a virtual one.
Status StartEal(const std::string& device, std::uint32_t memory_mb);
/// Plugs a device in; its port number. The name is what stands before the first comma.
Result<std::uint16_t> PlugIn(const std::string& device);
void Unplug(const std::string& device);

}  // namespace weir::transport::dpdk
