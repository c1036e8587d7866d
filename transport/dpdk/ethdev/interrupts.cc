// Callbacks of DPDK's interrupt thread, in turn with bursts.
#include "transport/dpdk/ethdev/interrupts.h"

#include <pthread.h>
#include <rte_config.h>
#include <rte_interrupts.h>
#include <sched.h>

#include <cerrno>
#include <list>
#include <mutex>

namespace weir::transport::dpdk {

static_assert(PortTurns::kPorts == RTE_MAX_ETHPORTS);
PortTurns::OfPort PortTurns::turns_[PortTurns::kPorts];

void PortTurns::StopInForks() noexcept {
  static const int once = pthread_atfork(nullptr, nullptr, [] {
    for (OfPort& port : turns_) port.busy.store(true, std::memory_order_relaxed);
  });
  static_cast<void>(once);
}

PortTurns::Exclusion::Exclusion() noexcept {
  // Always in the same order, so two of them never wait for each other.
  for (OfPort& port : turns_) {
    while (port.busy.exchange(true, std::memory_order_acquire)) sched_yield();
  }
}

PortTurns::Exclusion::~Exclusion() {
  for (OfPort& port : turns_) port.busy.store(false, std::memory_order_release);
}

namespace {

/// What a driver registered.
struct Callback {
  const rte_intr_handle* handle;
  rte_intr_callback_fn function;
  void* argument;
  rte_intr_unregister_callback_fn farewell;  ///< Called when it is gone; null: it is not going.
};

/// In the order of registration. Never destroyed: the interrupt thread may outlive the program's destructors.
struct Registry {
  std::mutex mutex;
  std::list<Callback> callbacks;
};

Registry& TheRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

Callback* Find(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  for (Callback& one : registry.callbacks) {
    if (one.handle == handle && one.function == function && one.argument == argument && one.farewell == nullptr) {
      return &one;
    }
  }
  return nullptr;
}

void Forget(const Callback* callback) {
  Registry& registry = TheRegistry();
  const std::lock_guard lock(registry.mutex);
  registry.callbacks.remove_if([&](const Callback& one) { return &one == callback; });
}

/// On the interrupt thread.
void Call(void* argument) {
  const auto* callback = static_cast<Callback*>(argument);
  const PortTurns::Exclusion exclusion;
  // Whoever closed the port while we waited has done what the driver would do now, and what it works on is gone.
  if (callback->farewell == nullptr) callback->function(callback->argument);
}

void SayFarewell(rte_intr_handle* handle, void* argument) {
  auto* callback = static_cast<Callback*>(argument);
  if (callback->farewell != nullptr) callback->farewell(handle, callback->argument);
  Forget(callback);
}

}  // namespace
}  // namespace weir::transport::dpdk

// The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl37-c,cert-dcl51-cpp)
extern "C" {

using weir::transport::dpdk::Callback;

int __real_rte_intr_callback_register(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument);
int __real_rte_intr_callback_unregister(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument);
int __real_rte_intr_callback_unregister_pending(const rte_intr_handle* handle, rte_intr_callback_fn function,
                                                void* argument, rte_intr_unregister_callback_fn farewell);
int __wrap_rte_intr_callback_register(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument);
int __wrap_rte_intr_callback_unregister(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument);
int __wrap_rte_intr_callback_unregister_pending(const rte_intr_handle* handle, rte_intr_callback_fn function,
                                                void* argument, rte_intr_unregister_callback_fn farewell);

int __wrap_rte_intr_callback_register(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument) {
  namespace dpdk = weir::transport::dpdk;
  Callback* callback = nullptr;
  {
    dpdk::Registry& registry = dpdk::TheRegistry();
    const std::lock_guard lock(registry.mutex);
    callback = &registry.callbacks.emplace_back(Callback{handle, function, argument, nullptr});
  }
  const int result = __real_rte_intr_callback_register(handle, dpdk::Call, callback);
  if (result < 0) dpdk::Forget(callback);
  return result;
}

int __wrap_rte_intr_callback_unregister(const rte_intr_handle* handle, rte_intr_callback_fn function, void* argument) {
  namespace dpdk = weir::transport::dpdk;
  const Callback* callback = dpdk::Find(handle, function, argument);
  if (callback == nullptr) return -ENOENT;
  const int result = __real_rte_intr_callback_unregister(handle, dpdk::Call, const_cast<Callback*>(callback));
  if (result > 0) dpdk::Forget(callback);
  return result;
}

int __wrap_rte_intr_callback_unregister_pending(const rte_intr_handle* handle, rte_intr_callback_fn function,
                                                void* argument, rte_intr_unregister_callback_fn farewell) {
  namespace dpdk = weir::transport::dpdk;
  Callback* callback = dpdk::Find(handle, function, argument);
  if (callback == nullptr) return -ENOENT;
  // Set first: the interrupt thread may come to it at once.
  callback->farewell = farewell;
  const int result = __real_rte_intr_callback_unregister_pending(handle, dpdk::Call, callback, dpdk::SayFarewell);
  if (result < 0) callback->farewell = nullptr;
  return result;
}
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming,cert-dcl37-c,cert-dcl51-cpp)
