#include "agents/nccl/plugin.h"

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "agents/nccl/fork_guard.h"
#include "agents/nccl/log.h"
#include "agents/nccl/transport_choice.h"
#include "transport/clock.h"

namespace weir::nccl {
namespace {

constexpr Nanoseconds kAbandonedAfter = 300 * kSecond;
constexpr int kSpeedUnknown_mbit = 10'000;  // What NCCL itself takes a card for that does not say.

static_assert(transport::kHandleBytes + sizeof(std::uint64_t) == abi::kHandleBytes);

struct Handle {
  transport::Handle address;
  std::uint64_t pending = 0;  ///< Of the connecting side; 0: not begun.
};

Handle ReadHandle(const void* bytes) {
  Handle handle;
  std::memcpy(handle.address.bytes.data(), bytes, transport::kHandleBytes);
  std::memcpy(&handle.pending, static_cast<const char*>(bytes) + transport::kHandleBytes, sizeof handle.pending);
  return handle;
}

void WriteHandle(const Handle& handle, void* bytes) {
  std::memcpy(bytes, handle.address.bytes.data(), transport::kHandleBytes);
  std::memcpy(static_cast<char*>(bytes) + transport::kHandleBytes, &handle.pending, sizeof handle.pending);
}

/// Both would tell the agent of the same bytes.
bool PreloadIsHere() {
  const auto look = [](dl_phdr_info* library, std::size_t, void*) {
    return std::strstr(library->dlpi_name, "libweir-preload.so") != nullptr ? 1 : 0;
  };
  return dl_iterate_phdr(look, nullptr) != 0;
}

}  // namespace

abi::Result ResultOf(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return abi::Result::kSuccess;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kAlreadyExists:
      return abi::Result::kInvalidArgument;
    case StatusCode::kUnavailable:
    case StatusCode::kProtocol:
    case StatusCode::kPermissionDenied:
      return abi::Result::kRemote;
    case StatusCode::kResourceExhausted:
      return abi::Result::kSystem;
    case StatusCode::kUnsupported:
      return abi::Result::kInvalidUsage;
    case StatusCode::kInternal:
      return abi::Result::kInternal;
  }
  return abi::Result::kInternal;
}

Plugin& Plugin::Instance() {
  static Plugin* const plugin = new Plugin;  // Never destroyed: see the class.
  return *plugin;
}

Status Plugin::Open(abi::Logger logger, abi::ProfilerCallback callback) {
  SetLogger(logger);
  const std::lock_guard lock(mutex_);
  if (!opened_) {
    opened_ = true;
    process_context_.callback = callback;
    opening_ = OpenOnce();
    if (!opening_.ok()) {
      opening_ =
          Status(opening_.code(),
                 opening_.message() + "; NCCL goes on without us, to its own network, unless NCCL_NET=Weir forbids it");
    }
  }
  return opening_;
}

Status Plugin::OpenOnce() {
  auto config = ConfigFromEnvironment();
  if (!config) return config.error();
  config_ = std::move(*config);
  for (const std::string& warning : config_.warnings) Warn(warning);
  if (config_.disabled) return Status(StatusCode::kUnsupported, "not used: WEIR_DISABLE is set");
  auto transport = OpenTransport(config_);
  if (!transport) return transport.error();
  WatchForks();
  if (config_.report != nullptr) coflows_ = std::make_unique<CoflowBook>();
  transport_ = std::move(*transport);
  if (config_.managed && PreloadIsHere()) {
    Inform("libweir-preload.so is loaded too, and manages this process by its writes");
  } else if (config_.managed) {
    link_ = new AgentLink(config_.request, config_.agent_socket, config_.manages_loopback);
  }
  std::string names;
  for (const transport::Device& device : transport_->devices()) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", device.name, device.address);
  }
  Inform(fmt::format("version {}, transport {}, devices {}", WEIR_VERSION, transport_->name(), names));
  return Status::Ok();
}

Context* Plugin::OpenContext(std::uint64_t comm_id, int traffic_class) {
  auto context = std::make_unique<Context>();
  context->comm_id = comm_id;
  context->traffic_class = traffic_class;
  Context* const key = context.get();
  const std::lock_guard lock(mutex_);
  context->callback = process_context_.callback;  // The core's is the same for all.
  contexts_.emplace(key, std::move(context));
  return key;
}

void Plugin::CloseContext(void* context) {
  const std::lock_guard lock(mutex_);
  const auto found = contexts_.find(static_cast<Context*>(context));
  if (found == contexts_.end()) return;
  std::erase_if(pending_, [&](const auto& one) { return one.second.context == found->first; });
  contexts_.erase(found);
}

int Plugin::devices() const {
  return transport_ == nullptr ? 0 : static_cast<int>(transport_->devices().size());
}

Result<DeviceFacts> Plugin::Facts(int device) const {
  if (device < 0 || device >= devices()) {
    return Error(StatusCode::kNotFound, fmt::format("device {} does not exist; there are {}", device, devices()));
  }
  const transport::Device& from = transport_->devices()[static_cast<std::size_t>(device)];
  DeviceFacts facts;
  // NCCL keeps the pointers; it does not write through them.
  facts.name = const_cast<char*>(from.name.c_str());
  facts.pci_path = from.pci_path.empty() ? nullptr : const_cast<char*>(from.pci_path.c_str());
  facts.guid = static_cast<std::uint64_t>(device) + 1;
  facts.speed_mbit = from.speed > 0 ? static_cast<int>(from.speed * 8 / 1e6) : kSpeedUnknown_mbit;
  facts.receives_max = static_cast<int>(config_.receives);
  if (config_.gpu_memory && (from.memory_kinds & static_cast<std::uint8_t>(transport::MemoryKind::kDmaBuf)) != 0) {
    facts.pointer_kinds |= abi::kPointerDmaBuf;
  }
  return facts;
}

Result<ListenComm*> Plugin::Listen(Context* context, int device, void* handle) {
  auto listener = transport_->Listen(static_cast<std::size_t>(device), config_.receives);
  if (!listener) return tl::unexpected(listener.error());
  WriteHandle({(*listener)->handle(), 0}, handle);
  return new ListenComm(context, std::move(*listener));
}

Result<SendComm*> Plugin::Connect(Context* context, int device, int traffic_class, void* handle) {
  Handle known = ReadHandle(handle);
  if (known.pending == 0) {
    const auto number = Begin(context, device, traffic_class, handle);
    if (!number) return tl::unexpected(number.error());
    known.pending = *number;
    WriteHandle(known, handle);
  }
  std::unique_lock lock(mutex_);
  const auto found = pending_.find(known.pending);
  if (found == pending_.end()) {
    return Error(StatusCode::kInvalidArgument, "connect: the handle names a connection that was not begun here");
  }
  found->second.asked = transport::SteadyClock().Now();
  auto sender = found->second.connector->Poll();
  if (sender && *sender == nullptr) return nullptr;
  std::unique_ptr<SendComm> comm = std::move(found->second.comm);
  pending_.erase(found);
  if (sender) ++senders_;
  lock.unlock();
  known.pending = 0;
  WriteHandle(known, handle);
  if (!sender) return tl::unexpected(sender.error());
  comm->Connected(std::move(*sender));
  return comm.release();
}

Result<std::uint64_t> Plugin::Begin(Context* context, int device, int traffic_class, const void* handle) {
  const Marking marking = ChooseMarking(config_.class_from, traffic_class, config_.traffic_class);
  auto comm = std::make_unique<SendComm>(context, link_, config_.hold_max, marking);
  auto connector = transport_->Connect(static_cast<std::size_t>(device), ReadHandle(handle).address, comm->lane());
  if (!connector) return tl::unexpected(connector.error());
  const Nanoseconds now = transport::SteadyClock().Now();
  const std::lock_guard lock(mutex_);
  DropAbandoned(now);
  if (pending_.size() >= kPendingMax) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("connect: {} connections are being made already, the most there may be", kPendingMax));
  }
  pending_.emplace(++last_pending_, Pending{std::move(comm), std::move(*connector), context, now});
  return last_pending_;
}

/// NCCL says nothing when it gives up on a connection.
void Plugin::DropAbandoned(Nanoseconds now) {
  std::erase_if(pending_, [&](const auto& one) { return now - one.second.asked > kAbandonedAfter; });
}

void Plugin::OnSendClosed() {
  const std::lock_guard lock(mutex_);
  if (--senders_ > 0 || coflows_ == nullptr) return;
  const std::string path = fmt::format("{}.{}", config_.report, getpid());
  std::ofstream file(path, std::ios::app);
  file << coflows_->Report();
  file.close();
  if (!file) {
    Warn(fmt::format("WEIR_NCCL_REPORT: cannot write {}: {}; name a file in a folder that this process may write to",
                     path, std::strerror(errno)));
  }
}

Result<ReceiveComm*> Plugin::Accept(ListenComm* listener) {
  auto receiver = listener->listener().Accept();
  if (!receiver) return tl::unexpected(receiver.error());
  if (*receiver == nullptr) return nullptr;
  return new ReceiveComm(listener->context(), std::move(*receiver));
}

}  // namespace weir::nccl
