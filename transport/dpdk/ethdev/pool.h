#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

struct rte_mempool;

namespace weir::transport::dpdk {

/// How packets lie in memory.
enum class PoolLayout : std::uint8_t {
  /// One behind the other, across the borders of pages: for drivers that copy. Without hugepages, DPDK itself puts one
  /// packet into each page, at the same place of each, where all of them compete for the same few lines of the cache.
  kPacked,
  /// One in each page, from the first page on without a gap: the kernel's side of af_xdp finds them by this. DPDK's own
  /// pool begins anywhere in a page; the driver (22.11) then tells the kernel of less memory than the packets use, and
  /// what is sent from beyond it is dropped as invalid.
  kPaged,
  /// As DPDK does it, which knows what a device can read by itself.
  kDevice,
};

/// A pool of `count` packets with room for `room` bytes each, headroom included; with kPaged, as much as a page has.
/// Null, with rte_errno set: no memory, or `room` does not fit into a page. Freed with rte_mempool_free.
rte_mempool* MakePool(const std::string& name, unsigned count, std::size_t room, PoolLayout layout);

}  // namespace weir::transport::dpdk
