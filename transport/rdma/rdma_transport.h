#pragma once

#include <memory>

#include "coflow/status.h"
#include "transport/clock.h"
#include "transport/rdma/options.h"
#include "transport/transport.h"

namespace weir::transport {

/// The RDMA backend. Its devices are the ports that the options choose and that are up. Errors: kInvalidArgument for
/// options out of range; kUnsupported where libibverbs, or any device, is absent; kNotFound when no port fits, with
/// those that there are. The clock outlives it.
Result<std::unique_ptr<Transport>> MakeRdmaTransport(const RdmaOptions& options, const Clock& clock = SteadyClock());

}  // namespace weir::transport
