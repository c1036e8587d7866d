#pragma once

#include <memory>

#include "transport/dpdk/ethdev/ethdev.h"
#include "transport/dpdk/impaired_port.h"
#include "transport/dpdk/packet_transport.h"

namespace weir::transport {

struct DpdkOptions {
  dpdk::EndpointOptions endpoint;  ///< Identity empty: host name and process.
  dpdk::EthdevSettings port;
  dpdk::Impairment impairment;  ///< Of what is sent; for tests of a bad path on a good one.
  /// A thread that answers peers while nobody calls the transport. Without it, a process that is busy elsewhere for
  /// dead_after is taken for dead.
  bool keeper = true;
};

/// A transport of one device: the port that `options.port` names, opened for it. Errors: as dpdk::OpenEthdev and
/// MakePacketTransport.
Result<std::unique_ptr<PacketTransport>> MakeDpdkTransport(const DpdkOptions& options,
                                                           const Clock& clock = SteadyClock());

}  // namespace weir::transport
