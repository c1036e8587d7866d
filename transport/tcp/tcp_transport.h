#pragma once

#include <memory>

#include "transport/clock.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/options.h"
#include "transport/transport.h"

namespace weir::transport {

/// The TCP backend: always there, needs no privileges. Its devices are the network interfaces that the options choose.
/// Errors: kInvalidArgument for options out of range, kNotFound when no interface is left. The clock outlives it.
Result<std::unique_ptr<Transport>> MakeTcpTransport(const TcpOptions& options, const Clock& clock = SteadyClock());

}  // namespace weir::transport
