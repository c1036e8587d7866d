// The tables that NCCL looks up, one a version: which call stands in which slot.
#include "agents/nccl/net_calls.h"

namespace weir::nccl {
namespace {

constexpr const char* kName = "Weir";

abi::Result ListenOld(int device, void* handle, void** comm) noexcept {
  return Listen(Plugin::Instance().process_context(), device, handle, comm);
}

abi::Result ConnectV6(int device, void* handle, void** comm) noexcept {
  return Connect(Plugin::Instance().process_context(), device, abi::kTrafficClassUnset, handle, comm);
}

abi::Result ConnectV7(int device, void* handle, void** comm, abi::DeviceHandle**) noexcept {
  return ConnectV6(device, handle, comm);
}

abi::Result ConnectV10(int device, abi::Config* config, void* handle, void** comm, abi::DeviceHandle**) noexcept {
  const int traffic_class = config == nullptr ? abi::kTrafficClassUnset : config->traffic_class;
  return Connect(Plugin::Instance().process_context(), device, traffic_class, handle, comm);
}

abi::Result ListenV11(void* context, int device, void* handle, void** comm) noexcept {
  return Listen(static_cast<Context*>(context), device, handle, comm);
}

abi::Result ConnectV11(void* context, int device, void* handle, void** comm, abi::DeviceHandle**) noexcept {
  auto* known = static_cast<Context*>(context);
  return Connect(known, device, known->traffic_class, handle, comm);
}

/// The first 17 slots; those that differ are given.
template <typename T>
constexpr void Fill(abi::NetTable<T>* table, typename T::Init init, typename T::Listen listen,
                    typename T::Connect connect, typename T::Accept accept, typename T::Isend isend,
                    typename T::Irecv irecv) {
  table->name = kName;
  table->init = init;
  table->devices = Devices;
  table->get_properties = GetProperties<typename T::Properties>;
  table->listen = listen;
  table->connect = connect;
  table->accept = accept;
  table->register_memory = RegisterSized<typename T::RegisterSize>;
  table->register_dma_buf = RegisterDmaBuf;
  table->deregister_memory = Deregister;
  table->isend = isend;
  table->irecv = irecv;
  table->iflush = Iflush;
  table->test = Test;
  table->close_send = CloseSend;
  table->close_receive = CloseReceive;
  table->close_listen = CloseListen;
}

constexpr abi::NetV6 TableV6() {
  abi::NetV6 table{};
  Fill<abi::TraitsV6>(&table, InitOld, ListenOld, ConnectV6, AcceptV6, IsendOld<int>, IrecvOld<int>);
  return table;
}

template <typename Table, typename Traits>
constexpr Table TableV7() {
  Table table{};
  Fill<Traits>(&table, InitOld, ListenOld, ConnectV7, AcceptV7, IsendOld<int>, IrecvOld<int>);
  return table;
}

constexpr abi::NetV9 TableV9() {
  abi::NetV9 table{};
  Fill<abi::TraitsV9>(&table, InitOld, ListenOld, ConnectV7, AcceptV7, IsendOld<std::size_t>, IrecvOld<std::size_t>);
  return table;
}

constexpr abi::NetV10 TableV10() {
  abi::NetV10 table{};
  Fill<abi::TraitsV10>(&table, InitV10, ListenOld, ConnectV10, AcceptV7, Isend, IrecvSized<std::size_t>);
  return table;
}

template <typename Table, typename Traits>
constexpr Table TableV11() {
  Table table{};
  Fill<Traits>(&table, InitV11, ListenV11, ConnectV11, AcceptV7, Isend, IrecvSized<std::size_t>);
  table.finalize = Finalize;
  table.set_attributes = SetAttributes;
  return table;
}

}  // namespace
}  // namespace weir::nccl

#define WEIR_EXPORTED __attribute__((visibility("default"))) constinit

extern "C" {

namespace nccl = weir::nccl;
namespace abi = weir::nccl::abi;

WEIR_EXPORTED abi::NetV6 ncclNetPlugin_v6 = nccl::TableV6();
WEIR_EXPORTED abi::NetV7 ncclNetPlugin_v7 = nccl::TableV7<abi::NetV7, abi::TraitsV7>();
WEIR_EXPORTED abi::NetV8 ncclNetPlugin_v8 = nccl::TableV7<abi::NetV8, abi::TraitsV8>();
WEIR_EXPORTED abi::NetV9 ncclNetPlugin_v9 = nccl::TableV9();
WEIR_EXPORTED abi::NetV10 ncclNetPlugin_v10 = nccl::TableV10();
WEIR_EXPORTED abi::NetV11 ncclNetPlugin_v11 = nccl::TableV11<abi::NetV11, abi::TraitsV11>();
WEIR_EXPORTED abi::NetV12 ncclNetPlugin_v12 = nccl::TableV11<abi::NetV12, abi::TraitsV12>();

}  // extern "C"
