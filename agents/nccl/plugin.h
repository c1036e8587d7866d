#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/nccl/abi/net.h"
#include "agents/nccl/agent_link.h"
#include "agents/nccl/coflow_book.h"
#include "agents/nccl/comm.h"
#include "agents/nccl/config.h"
#include "coflow/status.h"
#include "transport/transport.h"

namespace weir::nccl {

/// One communicator of NCCL's, or, for NCCL that knows no contexts (before v11), all of the process.
struct Context {
  abi::ProfilerCallback callback = nullptr;  ///< Null before v10.
  Ladder ladder;
  std::atomic<std::uint8_t> attributions_said{0};  ///< A bit for each Attribution that the log has.
  std::uint64_t comm_id = 0;                       ///< 0: not known.
  int traffic_class = abi::kTrafficClassUnset;     ///< The application's.
};

/// What the table of properties of any version says of a device. Texts live as long as the process.
struct DeviceFacts {
  char* name = nullptr;
  char* pci_path = nullptr;
  std::uint64_t guid = 0;
  int speed_mbit = 0;
  int receives_max = 1;
  int pointer_kinds = abi::kPointerHost;
};

/// The plugin of one process, behind all versions of NCCL's interface: what a call needs that is not a transfer. Made
/// at NCCL's first call and never destroyed, since NCCL calls from threads that outlive every destructor.
///
/// Errors are told to NCCL's log by the one who found them, and become NCCL's codes with ResultOf. Any thread.
class Plugin {
 public:
  static Plugin& Instance();

  /// Reads the environment and opens the transport, once; the same answer from then on. Errors: kUnsupported when the
  /// environment says so, and those of the transport.
  Status Open(abi::Logger logger, abi::ProfilerCallback callback);
  /// A context for one communicator, to be given back to CloseContext; both may be called at any time.
  Context* OpenContext(std::uint64_t comm_id, int traffic_class);
  /// Ignores what is no context of ours: NCCL 2.28 and 2.29 call this after a failed beginning too.
  void CloseContext(void* context);
  /// The one of NCCL that knows no contexts.
  Context* process_context() { return &process_context_; }

  int devices() const;
  /// Error kNotFound.
  Result<DeviceFacts> Facts(int device) const;

  /// `handle` has abi::kHandleBytes, all of which are written.
  Result<ListenComm*> Listen(Context* context, int device, void* handle);
  /// Null: not yet. Between calls what is under way is known by a number in `handle`.
  Result<SendComm*> Connect(Context* context, int device, int traffic_class, void* handle);
  /// After the last SendComm was closed, what the coflows sent is written where the environment says.
  void OnSendClosed();
  /// Null: nobody wants a report.
  CoflowBook* coflows() { return coflows_.get(); }
  /// Null: not yet.
  Result<ReceiveComm*> Accept(ListenComm* listener);

 private:
  /// A connection that is being made, by the number in the handle.
  struct Pending {
    std::unique_ptr<SendComm> comm;
    std::unique_ptr<transport::Connector> connector;
    Context* context = nullptr;
    Nanoseconds asked = 0;
  };
  static constexpr std::size_t kPendingMax = 65536;

  Plugin() = default;
  Status OpenOnce();
  Result<std::uint64_t> Begin(Context* context, int device, int traffic_class, const void* handle);
  void DropAbandoned(Nanoseconds now);

  std::mutex mutex_;
  bool opened_ = false;
  Status opening_;
  PluginConfig config_;
  std::unique_ptr<transport::Transport> transport_;
  std::unique_ptr<CoflowBook> coflows_;
  AgentLink* link_ = nullptr;  ///< Its thread may outlive everything; null: not managed.
  std::size_t senders_ = 0;
  Context process_context_;
  std::unordered_map<Context*, std::unique_ptr<Context>> contexts_;
  std::uint64_t last_pending_ = 0;
  std::unordered_map<std::uint64_t, Pending> pending_;
};

abi::Result ResultOf(StatusCode code);

}  // namespace weir::nccl
