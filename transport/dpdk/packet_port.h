#pragma once

#include <cstddef>
#include <span>

#include "transport/dpdk/options.h"

namespace weir::transport::dpdk {

/// What carries whole Ethernet frames: a queue pair of a network card, or a simulated wire. It may lose, delay,
/// reorder, double and damage them. Nothing here waits or allocates.
///
/// Owned by whoever made it, outlives the endpoint on it. Threads: one at a time.
class PacketPort {
 public:
  virtual ~PacketPort() = default;
  virtual MacAddress mac() const noexcept = 0;
  /// Of the largest frame, from the destination address to the end of the payload; kFrameBytesMin .. kFrameBytesMax.
  virtual std::size_t frame_bytes() const noexcept = 0;
  /// Memory for one frame of up to frame_bytes(), or null when nothing can be sent now. Followed by Commit.
  virtual std::byte* Reserve() noexcept = 0;
  /// The frame that was reserved is `size` bytes and goes out, at the latest with Flush.
  virtual void Commit(std::size_t size) noexcept = 0;
  virtual void Flush() noexcept = 0;
  /// Frames that came, at most as many as fit into `frames`; returns how many. They stay until the next call.
  virtual std::size_t Receive(std::span<std::span<const std::byte>> frames) noexcept = 0;
};

}  // namespace weir::transport::dpdk
