#pragma once

#include "coflow/status.h"
#include "transport/dpdk/dpdk_transport.h"
#include "transport/key_values.h"

namespace weir::transport {

/// What people write to set up a port of DPDK, whatever they write it into; docs/transport.md has the keys. `device`
/// and `address` are needed. Error kInvalidArgument with key, value and what is allowed.
Result<DpdkOptions> DpdkOptionsFrom(const KeyValues& settings);

}  // namespace weir::transport
