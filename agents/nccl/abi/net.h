#pragma once

#include <cstddef>
#include <cstdint>

/// NCCL's network plugin interface, versions 6 to 12, in our own words: only the order, the types and the values are
/// NCCL's, and every size and offset is asserted at the end. Linux on 64 bits. No behaviour.
///
/// The tables are what a plugin exports (`ncclNetPlugin_v8` and so on). A slot that is new in a version stands at the
/// end; slots that changed their signature have the type of their version.
namespace weir::nccl::abi {

/// What every call returns.
enum class Result : std::uint32_t {
  kSuccess = 0,
  kUnhandledCuda = 1,
  kSystem = 2,  ///< Something on this host.
  kInternal = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemote = 6,  ///< The peer is gone, or the way to it.
};

enum class LogLevel : std::uint32_t { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kAbort = 4, kTrace = 5 };
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
inline constexpr unsigned long kLogAll = ~0ul;

/// `place`: for kWarn the file, for kInfo the function.
using Logger = void (*)(LogLevel level, unsigned long mask, const char* place, int line, const char* format, ...);

enum class EventCall : int { kStart = 0, kStop = 1, kUpdate = 2, kUpdateAndStop = 3 };
/// How a network plugin makes events of its own, as children of the transfer that `phandle` stands for.
using ProfilerCallback = Result (*)(void** event, EventCall what, void* phandle, std::int64_t plugin_id, void* extra);

inline constexpr std::size_t kHandleBytes = 128;
inline constexpr int kPointerHost = 1;
inline constexpr int kPointerCuda = 2;
inline constexpr int kPointerDmaBuf = 4;
inline constexpr std::int16_t kRailUnset = -1;
inline constexpr int kTrafficClassUnset = -1;
/// In `*request` on entry to irecv: the receiver sees the data arrive by itself.
inline constexpr std::uintptr_t kOptionalReceive = 1;

struct Config {  ///< v10 on.
  int traffic_class;
};

template <std::size_t kMost>
struct VirtualDevices {
  int count;
  int devices[kMost];
};
using VirtualDevices4 = VirtualDevices<4>;  ///< v9 to v11.
using VirtualDevices8 = VirtualDevices<8>;  ///< v12.

struct DeviceHandle {  ///< v7 on; of use to plugins that run on the GPU only.
  std::uint32_t type;
  int version;
  void* handle;
  std::size_t size;
  int needs_proxy_progress;
};

struct DirectionAttributes {
  std::int32_t concurrent_peers_max;
  std::int32_t concurrent_peers_min;
  std::int32_t flows_per_peer_max;
  std::int32_t flows_per_peer_min;
};

struct NetAttributes {  ///< v11 on. The masks have a bit for each collective, algorithm, protocol.
  DirectionAttributes send;
  DirectionAttributes receive;
  std::uint32_t operations;
  std::uint32_t algorithms;
  std::uint32_t protocols;
};

struct PropertiesV6 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
};

struct PropertiesV7 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  std::uint32_t device_type;
  int device_version;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int registration_is_global;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  std::uint32_t device_type;
  int device_version;
};

struct PropertiesV9 {  ///< v10 too.
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int registration_is_global;
  int force_flush;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  std::uint32_t device_type;
  int device_version;
  VirtualDevices4 virtual_devices;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
};

struct PropertiesV11 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int registration_is_global;
  int force_flush;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  std::uint32_t device_type;
  int device_version;
  VirtualDevices4 virtual_devices;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
  int multi_request_max;
};

struct PropertiesV12 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int pointer_kinds;
  int registration_is_global;
  int force_flush;
  int speed_mbit;
  int port;
  float latency_us;
  int comms_max;
  int receives_max;
  std::uint32_t device_type;
  int device_version;
  VirtualDevices8 virtual_devices;
  std::size_t p2p_bytes_max;
  std::size_t collective_bytes_max;
  int multi_request_max;
  std::int16_t rail;
  std::int16_t plane;
};

/// One table for all versions: `T` says which slots a version has, and with which types. See the traits below.
template <typename T>
struct NetTable {
  using Sizes = typename T::Size;  ///< int up to v8, size_t from v9 on.
  const char* name;
  typename T::Init init;
  Result (*devices)(int* count);
  Result (*get_properties)(int device, typename T::Properties* out);
  typename T::Listen listen;
  typename T::Connect connect;
  typename T::Accept accept;
  Result (*register_memory)(void* comm, void* data, typename T::RegisterSize size, int kind, void** handle);
  Result (*register_dma_buf)(void* comm, void* data, std::size_t size, int kind, std::uint64_t offset, int fd,
                             void** handle);
  Result (*deregister_memory)(void* comm, void* handle);
  typename T::Isend isend;
  typename T::Irecv irecv;
  Result (*iflush)(void* comm, int count, void** data, int* sizes, void** handles, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*close_send)(void* comm);
  Result (*close_receive)(void* comm);
  Result (*close_listen)(void* comm);
};

using InitOld = Result (*)(Logger logger);
using InitV10 = Result (*)(Logger logger, ProfilerCallback callback);
using InitV11 = Result (*)(void** context, std::uint64_t comm_id, Config* config, Logger logger,
                           ProfilerCallback callback);
using ListenOld = Result (*)(int device, void* handle, void** comm);
using ListenV11 = Result (*)(void* context, int device, void* handle, void** comm);
using ConnectV6 = Result (*)(int device, void* handle, void** comm);
using ConnectV7 = Result (*)(int device, void* handle, void** comm, DeviceHandle** device_handle);
using ConnectV10 = Result (*)(int device, Config* config, void* handle, void** comm, DeviceHandle** device_handle);
using ConnectV11 = Result (*)(void* context, int device, void* handle, void** comm, DeviceHandle** device_handle);
using AcceptV6 = Result (*)(void* listen_comm, void** comm);
using AcceptV7 = Result (*)(void* listen_comm, void** comm, DeviceHandle** device_handle);
template <typename Size>
using IsendOld = Result (*)(void* comm, void* data, Size size, int tag, void* memory, void** request);
using IsendV10 = Result (*)(void* comm, void* data, std::size_t size, int tag, void* memory, void* phandle,
                            void** request);
template <typename Size>
using IrecvOld = Result (*)(void* comm, int count, void** data, Size* sizes, int* tags, void** memories,
                            void** request);
using IrecvV10 = Result (*)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memories,
                            void** phandles, void** request);

struct TraitsV6 {
  using Size = int;
  using RegisterSize = int;
  using Properties = PropertiesV6;
  using Init = InitOld;
  using Listen = ListenOld;
  using Connect = ConnectV6;
  using Accept = AcceptV6;
  using Isend = IsendOld<int>;
  using Irecv = IrecvOld<int>;
};
struct TraitsV7 : TraitsV6 {
  using Properties = PropertiesV7;
  using Connect = ConnectV7;
  using Accept = AcceptV7;
};
struct TraitsV8 : TraitsV7 {
  using RegisterSize = std::size_t;
  using Properties = PropertiesV8;
};
struct TraitsV9 : TraitsV8 {
  using Size = std::size_t;
  using Properties = PropertiesV9;
  using Isend = IsendOld<std::size_t>;
  using Irecv = IrecvOld<std::size_t>;
};
struct TraitsV10 : TraitsV9 {
  using Init = InitV10;
  using Connect = ConnectV10;
  using Isend = IsendV10;
  using Irecv = IrecvV10;
};
struct TraitsV11 : TraitsV10 {
  using Properties = PropertiesV11;
  using Init = InitV11;
  using Listen = ListenV11;
  using Connect = ConnectV11;
};
struct TraitsV12 : TraitsV11 {
  using Properties = PropertiesV12;
};

using NetV6 = NetTable<TraitsV6>;
template <typename T>
struct NetTableV7 : NetTable<T> {
  Result (*get_device_memory)(void* comm, void* memory, void** device_pointer);
  Result (*irecv_consumed)(void* comm, int count, void* request);
};
using NetV7 = NetTableV7<TraitsV7>;
using NetV8 = NetTableV7<TraitsV8>;
template <typename T, typename Devices>
struct NetTableV9 : NetTableV7<T> {
  Result (*make_virtual_device)(int* device, Devices* devices);
};
using NetV9 = NetTableV9<TraitsV9, VirtualDevices4>;
using NetV10 = NetTableV9<TraitsV10, VirtualDevices4>;
template <typename T, typename Devices>
struct NetTableV11 : NetTableV9<T, Devices> {
  Result (*finalize)(void* context);
  Result (*set_attributes)(void* context, NetAttributes* attributes);
};
using NetV11 = NetTableV11<TraitsV11, VirtualDevices4>;
using NetV12 = NetTableV11<TraitsV12, VirtualDevices8>;

static_assert(sizeof(Result) == 4 && sizeof(LogLevel) == 4 && sizeof(Config) == 4);
static_assert(sizeof(VirtualDevices4) == 20 && sizeof(VirtualDevices8) == 36);
static_assert(sizeof(DeviceHandle) == 32 && offsetof(DeviceHandle, handle) == 8 && offsetof(DeviceHandle, size) == 16 &&
              offsetof(DeviceHandle, needs_proxy_progress) == 24);
static_assert(sizeof(DirectionAttributes) == 16 && sizeof(NetAttributes) == 44 &&
              offsetof(NetAttributes, receive) == 16 && offsetof(NetAttributes, operations) == 32 &&
              offsetof(NetAttributes, algorithms) == 36 && offsetof(NetAttributes, protocols) == 40);
static_assert(sizeof(PropertiesV6) == 48 && offsetof(PropertiesV6, speed_mbit) == 28 &&
              offsetof(PropertiesV6, latency_us) == 36 && offsetof(PropertiesV6, receives_max) == 44);
static_assert(sizeof(PropertiesV7) == 56 && offsetof(PropertiesV7, device_type) == 48);
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, registration_is_global) == 28 &&
              offsetof(PropertiesV8, speed_mbit) == 32 && offsetof(PropertiesV8, device_type) == 52);
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, force_flush) == 32 &&
              offsetof(PropertiesV9, speed_mbit) == 36 && offsetof(PropertiesV9, device_type) == 56 &&
              offsetof(PropertiesV9, virtual_devices) == 64 && offsetof(PropertiesV9, p2p_bytes_max) == 88);
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, virtual_devices) == 64 &&
              offsetof(PropertiesV11, collective_bytes_max) == 96 && offsetof(PropertiesV11, multi_request_max) == 104);
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, p2p_bytes_max) == 104 &&
              offsetof(PropertiesV12, multi_request_max) == 120 && offsetof(PropertiesV12, rail) == 124 &&
              offsetof(PropertiesV12, plane) == 126);
// The first 17 slots are those of v6; what comes later is at the end of what was there before.
static_assert(sizeof(NetV6) == 136 && sizeof(NetV7) == 152 && sizeof(NetV8) == 152 && sizeof(NetV9) == 160 &&
              sizeof(NetV10) == 160 && sizeof(NetV11) == 176 && sizeof(NetV12) == 176);
static_assert(offsetof(NetV6, init) == 8 && offsetof(NetV6, devices) == 16 && offsetof(NetV6, get_properties) == 24 &&
              offsetof(NetV6, listen) == 32 && offsetof(NetV6, connect) == 40 && offsetof(NetV6, accept) == 48 &&
              offsetof(NetV6, register_memory) == 56 && offsetof(NetV6, register_dma_buf) == 64 &&
              offsetof(NetV6, deregister_memory) == 72 && offsetof(NetV6, isend) == 80 &&
              offsetof(NetV6, irecv) == 88 && offsetof(NetV6, iflush) == 96 && offsetof(NetV6, test) == 104 &&
              offsetof(NetV6, close_send) == 112 && offsetof(NetV6, close_receive) == 120 &&
              offsetof(NetV6, close_listen) == 128);

}  // namespace weir::nccl::abi
