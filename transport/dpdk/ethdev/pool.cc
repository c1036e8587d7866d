// Memory for packets.
#include "transport/dpdk/ethdev/pool.h"

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

namespace weir::transport::dpdk {
namespace {

constexpr std::size_t kPage = 4096;
constexpr unsigned kCache = 128;  ///< Packets that a core keeps beside the pool.
/// No gaps for the sake of memory channels, and a device never reads a packet by its physical address.
constexpr unsigned kFlags = RTE_MEMPOOL_F_NO_SPREAD | RTE_MEMPOOL_F_NO_IOVA_CONTIG;

void FreeZone(rte_mempool_memhdr*, void* zone) {
  rte_memzone_free(static_cast<const rte_memzone*>(zone));
}

/// One piece of memory for all, from the start of a page on.
int PopulatePages(rte_mempool* pool, const std::string& name, unsigned count) {
  const std::size_t size = count * kPage;
  const rte_memzone* zone = rte_memzone_reserve_aligned((name + "m").c_str(), size, SOCKET_ID_ANY, 0, kPage);
  if (zone == nullptr) return -rte_errno;
  const int result = rte_mempool_populate_iova(pool, static_cast<char*>(zone->addr), RTE_BAD_IOVA, size, FreeZone,
                                               const_cast<rte_memzone*>(zone));
  if (result < 0) rte_memzone_free(zone);
  return result;
}

}  // namespace

rte_mempool* MakePool(const std::string& name, unsigned count, std::size_t room, PoolLayout layout) {
  if (layout == PoolLayout::kDevice) {
    return rte_pktmbuf_pool_create(name.c_str(), count, kCache, 0, static_cast<std::uint16_t>(room), SOCKET_ID_ANY);
  }
  if (layout == PoolLayout::kPaged) {
    static_assert(sizeof(rte_mempool_objhdr) <= RTE_MEMPOOL_ALIGN);
    constexpr std::size_t kAround = RTE_MEMPOOL_ALIGN + sizeof(rte_mbuf);
    if (room > kPage - kAround) {
      rte_errno = E2BIG;
      return nullptr;
    }
    room = kPage - kAround;
  }
  rte_mempool* pool = rte_mempool_create_empty(name.c_str(), count, static_cast<unsigned>(sizeof(rte_mbuf) + room),
                                               kCache, sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, kFlags);
  if (pool == nullptr) return nullptr;
  rte_pktmbuf_pool_private about{};
  about.mbuf_data_room_size = static_cast<std::uint16_t>(room);
  int result = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr);
  if (result == 0) {
    rte_pktmbuf_pool_init(pool, &about);
    result = layout == PoolLayout::kPaged ? PopulatePages(pool, name, count) : rte_mempool_populate_default(pool);
  }
  if (result < 0 || pool->populated_size != count) {
    rte_mempool_free(pool);
    rte_errno = result < 0 ? -result : ENOMEM;
    return nullptr;
  }
  rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
  return pool;
}

}  // namespace weir::transport::dpdk
