#pragma once

#include <functional>
#include <memory>
#include <string>

#include "coflow/status.h"
#include "transport/clock.h"
#include "transport/dpdk/endpoint.h"
#include "transport/dpdk/options.h"
#include "transport/dpdk/packet_port.h"
#include "transport/transport.h"

namespace weir::transport {

/// A transport of one device over a port that carries frames: our own reliable protocol, see docs/dpdk-wire.md. Knows
/// nothing of DPDK; the port does.
class PacketTransport : public Transport {
 public:
  /// Answers peers on behalf of channels whose owners are busy elsewhere: called now and then by a thread of its own,
  /// it tells a slow peer from a dead one. Any thread.
  virtual void Serve() = 0;
  /// A copy. Any thread.
  virtual dpdk::EndpointCounters counters() = 0;
};

/// `port_name` is what people call the port. `random` gives numbers that nobody can guess. Port and clock outlive the
/// transport. Errors: kInvalidArgument for an option or the port's frame size, naming it and what is allowed.
Result<std::unique_ptr<PacketTransport>> MakePacketTransport(const dpdk::EndpointOptions& options,
                                                             std::string port_name, dpdk::PacketPort* port,
                                                             const Clock* clock, std::function<std::uint64_t()> random);

}  // namespace weir::transport
