#pragma once

#include "agents/preload/process.h"

/// The tables of lanes and data sockets, and their images in the segment.
namespace weir::preload {

/// Writes all lanes and sockets into a fresh `segment`. Under Process::slots.
void AnnounceAll(client::Segment* segment) noexcept;

/// Both ends of a connected TCP socket.
struct Ends {
  std::uint16_t family = 0;
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
  std::uint8_t local_address[16] = {};
  std::uint8_t peer_address[16] = {};
};

/// False if `fd` is not connected, or not over IP. May change errno.
bool ReadEnds(int fd, Ends* ends) noexcept;
/// The peer is this host itself.
bool StaysOnHost(const Ends& ends) noexcept;

}  // namespace weir::preload
