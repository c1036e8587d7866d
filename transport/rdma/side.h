#pragma once

#include <cstddef>
#include <span>

#include "coflow/status.h"
#include "transport/rdma/port.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/socket.h"

/// The connection beside the queue pairs: over it the ends greet, and then watch each other.
namespace weir::transport::rdma {

/// The address that it uses: on Ethernet that of the port, else that of the first network interface which the options
/// name. Error kNotFound with those that there are.
Result<Interface> SideInterface(const Port& port, const GidEntry& own, const RdmaOptions& options);

/// Makes the kernel look whether the peer is there while nobody else does. Whether a link is dead is for Watch to say.
void TuneSide(const tcp::Socket& socket, const RdmaOptions& options);

/// Reads into `bytes` from `*got` on. False when the peer closed or broke the connection.
bool ReadSide(const tcp::Socket& socket, std::span<std::byte> bytes, std::size_t* got);

}  // namespace weir::transport::rdma
