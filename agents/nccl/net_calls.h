#pragma once

#include <array>
#include <exception>
#include <new>
#include <span>
#include <type_traits>

#include "agents/nccl/abi/net.h"
#include "agents/nccl/fork_guard.h"
#include "agents/nccl/log.h"
#include "agents/nccl/plugin.h"

/// NCCL's calls as the slots of a table want them: pointers without a type are given one, errors become codes, and no
/// exception leaves. What differs between versions is a parameter; net_tables.cc puts them together.
namespace weir::nccl {

/// In a forked child nothing works any more: the sockets are the parent's.
template <typename Call>
abi::Result Guarded(const char* what, Call&& call) noexcept {
  if (IsForkedChild()) return abi::Result::kInvalidUsage;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    Warn("out of memory");
    return abi::Result::kSystem;
  } catch (const std::exception& error) {
    Warn(error.what());
  } catch (...) {
    Warn(what);
  }
  return abi::Result::kInternal;
}

/// What went wrong becomes a line in NCCL's log and a code.
inline abi::Result Told(const Status& status) {
  if (status.ok()) return abi::Result::kSuccess;
  Warn(status.message());
  return ResultOf(status.code());
}

/// Before v11, NCCL has no way back from a beginning that failed in some of its versions: devices() then says that
/// there are none, which takes it to its own network.
abi::Result InitOld(abi::Logger logger) noexcept;
abi::Result InitV10(abi::Logger logger, abi::ProfilerCallback callback) noexcept;
abi::Result InitV11(void** context, std::uint64_t comm_id, abi::Config* config, abi::Logger logger,
                    abi::ProfilerCallback callback) noexcept;
abi::Result Devices(int* count) noexcept;
abi::Result Listen(Context* context, int device, void* handle, void** comm) noexcept;
abi::Result Connect(Context* context, int device, int traffic_class, void* handle, void** comm) noexcept;
abi::Result AcceptV6(void* listen_comm, void** comm) noexcept;
abi::Result AcceptV7(void* listen_comm, void** comm, abi::DeviceHandle** device_handle) noexcept;
abi::Result Register(void* comm, void* data, std::size_t size, int kind, void** handle) noexcept;
abi::Result RegisterDmaBuf(void* comm, void* data, std::size_t size, int kind, std::uint64_t offset, int fd,
                           void** handle) noexcept;
abi::Result Deregister(void* comm, void* handle) noexcept;
abi::Result Isend(void* comm, void* data, std::size_t size, int tag, void* memory, void* phandle,
                  void** request) noexcept;
/// `phandle`: of the first slot; null where there is none.
abi::Result Irecv(void* comm, std::span<const transport::Slot> slots, void* phandle, void** request) noexcept;
abi::Result Iflush(void* comm, int count, void** data, int* sizes, void** memories, void** request) noexcept;
abi::Result Test(void* request, int* done, int* sizes) noexcept;
abi::Result CloseSend(void* comm) noexcept;
abi::Result CloseReceive(void* comm) noexcept;
abi::Result CloseListen(void* comm) noexcept;
abi::Result Finalize(void* context) noexcept;
abi::Result SetAttributes(void* context, abi::NetAttributes* attributes) noexcept;

template <typename Properties>
abi::Result GetProperties(int device, Properties* out) noexcept {
  return Guarded("getProperties", [&] {
    const auto facts = Plugin::Instance().Facts(device);
    if (!facts) return Told(facts.error());
    *out = {};
    out->name = facts->name;
    out->pci_path = facts->pci_path;
    out->guid = facts->guid;
    out->pointer_kinds = facts->pointer_kinds;
    out->speed_mbit = facts->speed_mbit;
    out->port = 1;
    out->comms_max = 65536;
    out->receives_max = facts->receives_max;
    constexpr std::size_t kMost = transport::kMaxMessageBytes;
    if constexpr (requires { out->virtual_devices; }) {
      out->virtual_devices.count = 1;
      out->virtual_devices.devices[0] = device;
      out->p2p_bytes_max = kMost;
      out->collective_bytes_max = kMost;
    }
    if constexpr (requires { out->multi_request_max; }) out->multi_request_max = 1;
    if constexpr (requires { out->rail; }) out->rail = out->plane = abi::kRailUnset;
    return abi::Result::kSuccess;
  });
}

template <typename Size>
abi::Result RegisterSized(void* comm, void* data, Size size, int kind, void** handle) noexcept {
  if constexpr (std::is_signed_v<Size>) {
    if (size < 0) return abi::Result::kInvalidArgument;
  }
  return Register(comm, data, static_cast<std::size_t>(size), kind, handle);
}

template <typename Size>
abi::Result IsendOld(void* comm, void* data, Size size, int tag, void* memory, void** request) noexcept {
  if constexpr (std::is_signed_v<Size>) {
    if (size < 0) return abi::Result::kInvalidArgument;
  }
  return Isend(comm, data, static_cast<std::size_t>(size), tag, memory, nullptr, request);
}

template <typename Size>
abi::Result IrecvSized(void* comm, int count, void** data, Size* sizes, int* tags, void** memories, void** phandles,
                       void** request) noexcept {
  if (count < 1 || static_cast<std::size_t>(count) > transport::kMaxSlots) return abi::Result::kInvalidArgument;
  std::array<transport::Slot, transport::kMaxSlots> slots;
  const auto used = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < used; ++i) {
    if constexpr (std::is_signed_v<Size>) {
      if (sizes[i] < 0) return abi::Result::kInvalidArgument;
    }
    void* memory = memories == nullptr ? nullptr : memories[i];
    slots[i] = {data[i], static_cast<Bytes>(sizes[i]), tags == nullptr ? 0 : tags[i],
                transport::MemoryId(reinterpret_cast<std::uintptr_t>(memory))};
  }
  return Irecv(comm, std::span(slots).first(used), phandles == nullptr ? nullptr : phandles[0], request);
}

template <typename Size>
abi::Result IrecvOld(void* comm, int count, void** data, Size* sizes, int* tags, void** memories,
                     void** request) noexcept {
  return IrecvSized(comm, count, data, sizes, tags, memories, nullptr, request);
}

}  // namespace weir::nccl
