#include "tools/weir-perf/emulate/net.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace weir::tools::emulate {
namespace {

constexpr int kOldest = 6;
constexpr int kNewest = 12;

/// `Table` is that of one version; what the version lacks is left out, what it has smaller is made smaller.
template <typename Table, int kVersion>
class NetOf final : public Net {
 public:
  NetOf(void* library, Table* table) : library_(library), table_(table) {}

  int version() const override { return kVersion; }
  std::string name() const override { return table_->name; }
  void* library() const override { return library_; }

  abi::Result Init(void** context, std::uint64_t comm_id, abi::Logger logger, abi::ProfilerCallback callback) override {
    abi::Config config{abi::kTrafficClassUnset};
    *context = nullptr;
    if constexpr (kVersion >= 11) return table_->init(context, comm_id, &config, logger, callback);
    if constexpr (kVersion == 10) return table_->init(logger, callback);
    if constexpr (kVersion < 10) return table_->init(logger);
  }
  abi::Result Devices(int* count) override { return table_->devices(count); }
  abi::Result GetProperties(int device, Properties* out) override {
    PropertiesOf properties{};
    const abi::Result result = table_->get_properties(device, &properties);
    if (result != abi::Result::kSuccess) return result;
    out->name = properties.name == nullptr ? "" : properties.name;
    out->speed_mbit = properties.speed_mbit;
    out->receives_max = properties.receives_max;
    out->pointer_kinds = properties.pointer_kinds;
    return result;
  }
  abi::Result Listen(void* context, int device, void* handle, void** comm) override {
    if constexpr (kVersion >= 11) return table_->listen(context, device, handle, comm);
    if constexpr (kVersion < 11) return table_->listen(device, handle, comm);
  }
  abi::Result Connect(void* context, int device, void* handle, void** comm) override {
    abi::DeviceHandle* none = nullptr;
    if constexpr (kVersion >= 11) return table_->connect(context, device, handle, comm, &none);
    if constexpr (kVersion == 10) {
      abi::Config config{abi::kTrafficClassUnset};
      return table_->connect(device, &config, handle, comm, &none);
    }
    if constexpr (kVersion >= 7 && kVersion < 10) return table_->connect(device, handle, comm, &none);
    if constexpr (kVersion < 7) return table_->connect(device, handle, comm);
  }
  abi::Result Accept(void* listen_comm, void** comm) override {
    abi::DeviceHandle* none = nullptr;
    if constexpr (kVersion >= 7) return table_->accept(listen_comm, comm, &none);
    if constexpr (kVersion < 7) return table_->accept(listen_comm, comm);
  }
  abi::Result Register(void* comm, void* data, std::size_t size, void** memory) override {
    using Size = std::conditional_t<(kVersion >= 8), std::size_t, int>;
    return table_->register_memory(comm, data, static_cast<Size>(size), abi::kPointerHost, memory);
  }
  abi::Result Deregister(void* comm, void* memory) override { return table_->deregister_memory(comm, memory); }
  abi::Result Isend(void* comm, void* data, std::size_t size, int tag, void* memory, void* phandle,
                    void** request) override {
    if constexpr (kVersion >= 10) return table_->isend(comm, data, size, tag, memory, phandle, request);
    if constexpr (kVersion < 10) {
      return table_->isend(comm, data, static_cast<typename Table::Sizes>(size), tag, memory, request);
    }
  }
  abi::Result Irecv(void* comm, int count, void** data, const std::size_t* sizes, int* tags, void** memories,
                    void** phandles, void** request) override {
    std::array<typename Table::Sizes, kReceivesMax> own{};
    for (int i = 0; i < count; ++i) {
      own[static_cast<std::size_t>(i)] = static_cast<typename Table::Sizes>(sizes[i]);
    }
    if constexpr (kVersion < 9) *request = nullptr;  // What asks for an optional receive is hidden from old plugins.
    if constexpr (kVersion >= 10) {
      return table_->irecv(comm, count, data, own.data(), tags, memories, phandles, request);
    }
    if constexpr (kVersion < 10) return table_->irecv(comm, count, data, own.data(), tags, memories, request);
  }
  abi::Result Iflush(void* comm, int count, void** data, int* sizes, void** memories, void** request) override {
    return table_->iflush(comm, count, data, sizes, memories, request);
  }
  abi::Result Test(void* request, int* done, int* sizes) override { return table_->test(request, done, sizes); }
  abi::Result CloseSend(void* comm) override { return table_->close_send(comm); }
  abi::Result CloseReceive(void* comm) override { return table_->close_receive(comm); }
  abi::Result CloseListen(void* comm) override { return table_->close_listen(comm); }
  abi::Result Finalize(void* context) override {
    if constexpr (kVersion >= 11) return table_->finalize(context);
    return abi::Result::kSuccess;
  }
  abi::Result SetAttributes(void* context, abi::NetAttributes* attributes) override {
    if constexpr (kVersion >= 11) {
      if (table_->set_attributes != nullptr) return table_->set_attributes(context, attributes);
    }
    return abi::Result::kSuccess;
  }

 private:
  template <typename T>
  static T PropertiesArgument(abi::Result (*)(int, T*));
  using PropertiesOf = decltype(PropertiesArgument(std::declval<Table>().get_properties));

  void* const library_;
  Table* const table_;
};

template <typename Table, int kVersion>
std::unique_ptr<Net> Wrap(void* library, void* symbol) {
  return std::make_unique<NetOf<Table, kVersion>>(library, static_cast<Table*>(symbol));
}

using Wrapper = std::unique_ptr<Net> (*)(void* library, void* symbol);
constexpr std::array<Wrapper, kNewest - kOldest + 1> kWrappers = {
    Wrap<abi::NetV6, 6>,   Wrap<abi::NetV7, 7>,   Wrap<abi::NetV8, 8>,  Wrap<abi::NetV9, 9>,
    Wrap<abi::NetV10, 10>, Wrap<abi::NetV11, 11>, Wrap<abi::NetV12, 12>};

}  // namespace

Result<std::unique_ptr<Net>> Net::Open(const std::string& path, int version) {
  if (version != 0 && (version < kOldest || version > kNewest)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("version of the interface: found v{}, allowed: v{} to v{}", version, kOldest, kNewest));
  }
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error(StatusCode::kNotFound, fmt::format("{}: {}", path, dlerror()));
  std::string there;
  for (int candidate = kNewest; candidate >= kOldest; --candidate) {
    void* symbol = dlsym(library, fmt::format("ncclNetPlugin_v{}", candidate).c_str());
    if (symbol == nullptr) continue;
    if (version == 0 || version == candidate) {
      return kWrappers[static_cast<std::size_t>(candidate - kOldest)](library, symbol);
    }
    there += fmt::format("{}v{}", there.empty() ? "" : ", ", candidate);
  }
  return Error(StatusCode::kNotFound,
               there.empty() ? fmt::format("{}: no network plugin of NCCL's (no ncclNetPlugin_v6 to _v12)", path)
                             : fmt::format("{}: no ncclNetPlugin_v{}; it has {}", path, version, there));
}

}  // namespace weir::tools::emulate
