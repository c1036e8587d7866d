#pragma once

// The one place that includes the headers of verbs. Nothing is linked with: what is called comes from a table that is
// filled at run time, or, for what runs per message (ibv_post_send, ibv_poll_cq), from the device's own table.
#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "coflow/status.h"

namespace weir::transport::rdma {

/// The functions of libibverbs that are used. Tests fill one of their own to stand for a device that they lack. Those
/// that may be null say so.
struct Verbs {
  ibv_device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv_device** list) = nullptr;
  const char* (*get_device_name)(ibv_device* device) = nullptr;
  ibv_context* (*open_device)(ibv_device* device) = nullptr;
  int (*close_device)(ibv_context* context) = nullptr;
  int (*query_device)(ibv_context* context, ibv_device_attr_ex* attributes) = nullptr;
  int (*query_port)(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) = nullptr;
  ssize_t (*query_gid_table)(ibv_context* context, ibv_gid_entry* entries, std::size_t most, std::uint32_t flags,
                             std::size_t entry_size) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context* context) = nullptr;
  int (*dealloc_pd)(ibv_pd* domain) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd* domain, void* address, std::size_t size, int access) = nullptr;
  /// Null with a libibverbs before version 34.
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd* domain, std::uint64_t offset, std::size_t size, std::uint64_t address, int fd,
                           int access) = nullptr;
  int (*dereg_mr)(ibv_mr* memory) = nullptr;
  ibv_cq* (*create_cq)(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) = nullptr;
  int (*destroy_cq)(ibv_cq* queue) = nullptr;
  ibv_srq* (*create_srq)(ibv_pd* domain, ibv_srq_init_attr* attributes) = nullptr;
  int (*destroy_srq)(ibv_srq* queue) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd* domain, ibv_qp_init_attr* attributes) = nullptr;
  int (*destroy_qp)(ibv_qp* pair) = nullptr;
  int (*modify_qp)(ibv_qp* pair, ibv_qp_attr* attributes, int mask) = nullptr;
  int (*modify_qp_rate_limit)(ibv_qp* pair, ibv_qp_rate_limit_attr* attributes) = nullptr;
  int (*get_async_event)(ibv_context* context, ibv_async_event* event) = nullptr;
  void (*ack_async_event)(ibv_async_event* event) = nullptr;
  const char* (*wc_status_str)(ibv_wc_status status) = nullptr;
  const char* (*event_type_str)(ibv_event_type type) = nullptr;
};

/// Loads libibverbs.so.1 the first time, and keeps it. Any thread. Error kUnsupported with what is missing and which
/// package has it; the same each time.
Result<const Verbs*> LoadVerbs();

/// As LoadVerbs, from the library of this name; for tests.
Result<Verbs> LoadVerbsFrom(const char* library);

}  // namespace weir::transport::rdma
