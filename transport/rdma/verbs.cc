#include "transport/rdma/verbs.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace weir::transport::rdma {
namespace {

int (*query_device_1_1)(ibv_context*, ibv_device_attr*) = nullptr;
int (*query_port_1_1)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*) = nullptr;

// The next three are inline functions of the headers that fall back to the library's own; here to the loaded one's.

int QueryDevice(ibv_context* context, ibv_device_attr_ex* attributes) {
  *attributes = {};
  if (verbs_context* extended = verbs_get_ctx_op(context, query_device_ex); extended != nullptr) {
    const int error = extended->query_device_ex(context, nullptr, attributes, sizeof(*attributes));
    if (error != EOPNOTSUPP && error != ENOSYS) return error;
  }
  return query_device_1_1(context, &attributes->orig_attr);
}

int QueryPort(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes) {
  *attributes = {};
  if (verbs_context* extended = verbs_get_ctx_op(context, query_port); extended != nullptr) {
    return extended->query_port(context, port, attributes, sizeof(*attributes));
  }
  return query_port_1_1(context, port, reinterpret_cast<_compat_ibv_port_attr*>(attributes));
}

int ModifyRateLimit(ibv_qp* pair, ibv_qp_rate_limit_attr* attributes) {
  verbs_context* extended = verbs_get_ctx_op(pair->context, modify_qp_rate_limit);
  return extended == nullptr ? EOPNOTSUPP : extended->modify_qp_rate_limit(pair, attributes);
}

/// Looks functions up by name and version; remembers the first that is not there.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename Function>
  void Need(Function* function, const char* name, const char* version = "IBVERBS_1.1") {
    Want(function, name, version);
    if (*function == nullptr && missing_ == nullptr) missing_ = name;
  }
  template <typename Function>
  void Want(Function* function, const char* name, const char* version) {
    void* found = dlvsym(library_, name, version);
    static_assert(sizeof(found) == sizeof(*function));
    std::memcpy(function, &found, sizeof(found));
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void LookUp(Symbols* symbols, Verbs* verbs) {
  symbols->Need(&verbs->get_device_list, "ibv_get_device_list");
  symbols->Need(&verbs->free_device_list, "ibv_free_device_list");
  symbols->Need(&verbs->get_device_name, "ibv_get_device_name");
  symbols->Need(&verbs->open_device, "ibv_open_device");
  symbols->Need(&verbs->close_device, "ibv_close_device");
  symbols->Need(&query_device_1_1, "ibv_query_device");
  symbols->Need(&query_port_1_1, "ibv_query_port");
  symbols->Need(&verbs->query_gid_table, "_ibv_query_gid_table", "IBVERBS_1.11");
  symbols->Need(&verbs->alloc_pd, "ibv_alloc_pd");
  symbols->Need(&verbs->dealloc_pd, "ibv_dealloc_pd");
  symbols->Need(&verbs->reg_mr, "ibv_reg_mr");
  symbols->Want(&verbs->reg_dmabuf_mr, "ibv_reg_dmabuf_mr", "IBVERBS_1.12");
  symbols->Need(&verbs->dereg_mr, "ibv_dereg_mr");
  symbols->Need(&verbs->create_cq, "ibv_create_cq");
  symbols->Need(&verbs->destroy_cq, "ibv_destroy_cq");
  symbols->Need(&verbs->create_srq, "ibv_create_srq");
  symbols->Need(&verbs->destroy_srq, "ibv_destroy_srq");
  symbols->Need(&verbs->create_qp, "ibv_create_qp");
  symbols->Need(&verbs->destroy_qp, "ibv_destroy_qp");
  symbols->Need(&verbs->modify_qp, "ibv_modify_qp");
  symbols->Need(&verbs->get_async_event, "ibv_get_async_event");
  symbols->Need(&verbs->ack_async_event, "ibv_ack_async_event");
  symbols->Need(&verbs->wc_status_str, "ibv_wc_status_str");
  symbols->Need(&verbs->event_type_str, "ibv_event_type_str");
  verbs->query_device = QueryDevice;
  verbs->query_port = QueryPort;
  verbs->modify_qp_rate_limit = ModifyRateLimit;
}

}  // namespace

Result<Verbs> LoadVerbsFrom(const char* name) {
  // Never closed: drivers of devices that it loads start threads and register handlers of their own.
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error(
        StatusCode::kUnsupported,
        fmt::format("no RDMA here: cannot load {} ({}); it comes with the package libibverbs1", name, dlerror()));
  }
  Symbols symbols(library);
  Verbs verbs;
  LookUp(&symbols, &verbs);
  if (symbols.missing() != nullptr) {
    return Error(StatusCode::kUnsupported,
                 fmt::format("no RDMA here: {} has no function {}; a newer package libibverbs1 has it", name,
                             symbols.missing()));
  }
  // After a fork, pages that the device uses must stay the parent's. Kernels from 5.12 on see to that themselves, and
  // then this does nothing.
  int (*fork_init)() = nullptr;
  symbols.Want(&fork_init, "ibv_fork_init", "IBVERBS_1.1");
  if (fork_init != nullptr) static_cast<void>(fork_init());
  return verbs;
}

Result<const Verbs*> LoadVerbs() {
  static const Result<Verbs> verbs = LoadVerbsFrom("libibverbs.so.1");
  if (!verbs) return tl::unexpected(verbs.error());
  return &*verbs;
}

}  // namespace weir::transport::rdma
