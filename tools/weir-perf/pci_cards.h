#pragma once

#include <filesystem>
#include <vector>

#include "tools/weir-perf/backends.h"

namespace weir::tools {

/// What the doctor says of network cards on the PCI bus, and of what DPDK needs to drive one: a driver that hands it to
/// programs, and hugepages. Reads /sys and /dev under `root`, "/" but for tests; what is not there or cannot be read is
/// said as missing. A card that the kernel drives is advice, not a fault: DPDK's virtual devices do without.
std::vector<Finding> ExaminePciCards(const std::filesystem::path& root);

}  // namespace weir::tools
