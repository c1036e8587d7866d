#include "agents/nccl/net_calls.h"

#include <algorithm>
#include <array>
#include <memory>

namespace weir::nccl {
namespace {

/// Gives an object that a Plugin call made to NCCL; null is "not yet".
template <typename T>
abi::Result Hand(const Result<T*>& made, void** out) {
  *out = made ? *made : nullptr;
  return made ? abi::Result::kSuccess : Told(made.error());
}

/// The handle of a registration is its number.
abi::Result Hand(const Result<transport::MemoryId>& memory, void** out) {
  *out = memory ? reinterpret_cast<void*>(memory->value) : nullptr;
  return memory ? abi::Result::kSuccess : Told(memory.error());
}

/// The memory of the end of a connection is freed even if what it does on its way should fail.
template <typename T>
abi::Result Close(const char* what, void* comm) noexcept {
  return Guarded(what, [&] {
    delete static_cast<T*>(comm);
    return abi::Result::kSuccess;
  });
}

}  // namespace

abi::Result InitV10(abi::Logger logger, abi::ProfilerCallback callback) noexcept {
  return Guarded("init", [&] {
    static_cast<void>(Told(Plugin::Instance().Open(logger, callback)));
    return abi::Result::kSuccess;
  });
}

abi::Result InitOld(abi::Logger logger) noexcept {
  return InitV10(logger, nullptr);
}

abi::Result InitV11(void** context, std::uint64_t comm_id, abi::Config* config, abi::Logger logger,
                    abi::ProfilerCallback callback) noexcept {
  return Guarded("init", [&] {
    *context = nullptr;
    if (Status status = Plugin::Instance().Open(logger, callback); !status.ok()) return Told(status);
    const int traffic_class = config == nullptr ? abi::kTrafficClassUnset : config->traffic_class;
    *context = Plugin::Instance().OpenContext(comm_id, traffic_class);
    return abi::Result::kSuccess;
  });
}

abi::Result Devices(int* count) noexcept {
  return Guarded("devices", [&] {
    *count = Plugin::Instance().devices();
    return abi::Result::kSuccess;
  });
}

abi::Result Listen(Context* context, int device, void* handle, void** comm) noexcept {
  return Guarded("listen", [&] { return Hand(Plugin::Instance().Listen(context, device, handle), comm); });
}

abi::Result Connect(Context* context, int device, int traffic_class, void* handle, void** comm) noexcept {
  return Guarded("connect",
                 [&] { return Hand(Plugin::Instance().Connect(context, device, traffic_class, handle), comm); });
}

abi::Result AcceptV6(void* listen_comm, void** comm) noexcept {
  return Guarded("accept",
                 [&] { return Hand(Plugin::Instance().Accept(static_cast<ListenComm*>(listen_comm)), comm); });
}

abi::Result AcceptV7(void* listen_comm, void** comm, abi::DeviceHandle**) noexcept {
  return AcceptV6(listen_comm, comm);
}

abi::Result Register(void* comm, void* data, std::size_t size, int kind, void** handle) noexcept {
  return Guarded("regMr", [&] { return Hand(static_cast<Comm*>(comm)->Register(data, size, kind), handle); });
}

abi::Result RegisterDmaBuf(void* comm, void* data, std::size_t size, int, std::uint64_t offset, int fd,
                           void** handle) noexcept {
  return Guarded("regMrDmaBuf",
                 [&] { return Hand(static_cast<Comm*>(comm)->RegisterDmaBuf(fd, offset, data, size), handle); });
}

abi::Result Deregister(void* comm, void* handle) noexcept {
  return Guarded("deregMr", [&] {
    const transport::MemoryId memory(reinterpret_cast<std::uintptr_t>(handle));
    return Told(static_cast<Comm*>(comm)->Deregister(memory));
  });
}

abi::Result Isend(void* comm, void* data, std::size_t size, int tag, void* memory, void* phandle,
                  void** request) noexcept {
  *request = nullptr;
  return Guarded("isend", [&] {
    Transfer* transfer = nullptr;
    const transport::MemoryId known(reinterpret_cast<std::uintptr_t>(memory));
    const abi::Result result = static_cast<SendComm*>(comm)->Isend(data, size, tag, known, phandle, &transfer);
    *request = transfer;
    return result;
  });
}

abi::Result Irecv(void* comm, std::span<const transport::Slot> slots, void* phandle, void** request) noexcept {
  // A receive that NCCL does not need to see the end of (kOptionalReceive on entry) is served as any other.
  *request = nullptr;
  return Guarded("irecv", [&] {
    Transfer* transfer = nullptr;
    const abi::Result result = static_cast<ReceiveComm*>(comm)->Irecv(slots, phandle, &transfer);
    *request = transfer;
    return result;
  });
}

/// NCCL asks for it after a receive into memory of a GPU that may not show yet what the device wrote: those before
/// Hopper. Host memory, and later ones, have it when the receive is done.
abi::Result Iflush(void* comm, int count, void** data, int* sizes, void** memories, void** request) noexcept {
  *request = nullptr;
  return Guarded("iflush", [&] {
    if (count < 0 || count > static_cast<int>(transport::kMaxSlots)) return abi::Result::kInvalidArgument;
    std::array<transport::Slot, transport::kMaxSlots> slots;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      slots[i] = {data[i], static_cast<Bytes>(std::max(sizes[i], 0)), 0,
                  transport::MemoryId(reinterpret_cast<std::uintptr_t>(memories[i]))};
    }
    Transfer* transfer = nullptr;
    const abi::Result result =
        static_cast<ReceiveComm*>(comm)->Iflush(std::span(slots).first(static_cast<std::size_t>(count)), &transfer);
    *request = transfer;
    return result;
  });
}

abi::Result Test(void* request, int* done, int* sizes) noexcept {
  return Guarded("test", [&] {
    auto* transfer = static_cast<Transfer*>(request);
    return transfer->comm->Test(transfer, done, sizes);
  });
}

abi::Result CloseSend(void* comm) noexcept {
  return Close<SendComm>("closeSend", comm);
}

abi::Result CloseReceive(void* comm) noexcept {
  return Close<ReceiveComm>("closeRecv", comm);
}

abi::Result CloseListen(void* comm) noexcept {
  return Close<ListenComm>("closeListen", comm);
}

abi::Result Finalize(void* context) noexcept {
  return Guarded("finalize", [&] {
    Plugin::Instance().CloseContext(context);
    return abi::Result::kSuccess;
  });
}

abi::Result SetAttributes(void* context, abi::NetAttributes* attributes) noexcept {
  return Guarded("setNetAttr", [&] {
    if (context != nullptr) static_cast<Context*>(context)->ladder.OnAttributes(attributes->operations);
    return abi::Result::kSuccess;
  });
}

}  // namespace weir::nccl
