#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agents/client/segment.h"
#include "agents/host/lane.h"
#include "coflow/status.h"

namespace boost::asio {
class io_context;
}

namespace weir::agents {

/// Who is at the other end of a Unix socket, as the kernel says.
struct PeerCredentials {
  std::int64_t pid = 0;  ///< 0: not visible from our pid namespace.
  std::uint32_t uid = 0;
};

/// The agent's front door: one Unix stream socket for training processes (binary AttachRequest) and for the command
/// line (one line of JSON each way); the first byte tells which. Nobody can keep it busy: at most kPendingMax peers at
/// a time, each with kPatience to say what it wants.
///
/// Owned by AgentShell. Thread: the loop's; handlers run there and must not block.
class AttachServer {
 public:
  static constexpr std::size_t kPendingMax = 64;
  static constexpr std::size_t kLineMax = 64 * 1024;
  static constexpr Nanoseconds kPatience = 2 * kSecond;

  struct Attached {
    int memfd = -1;  ///< Borrowed for the call that sends it.
    int doorbell = -1;
    ProcessId process;
  };
  struct Handler {
    /// The peer waits until this returned, so its pid is its own.
    std::function<Result<Attached>(const PeerCredentials&, const JobInfo&)> on_attach;
    /// The reply has gone out (`sent`) or could not.
    std::function<void(ProcessId, bool sent)> on_attach_done;
    /// One request of the command line; answers one line of JSON.
    std::function<std::string(const PeerCredentials&, const std::string& line)> on_request;
  };

  AttachServer(boost::asio::io_context& loop, Handler handler);
  ~AttachServer();
  /// Refused if another agent answers at `path`; a socket file that nobody serves is replaced, a missing folder made.
  Status Listen(const std::string& path, std::uint32_t mode);
  /// Stops accepting and removes the file.
  void Stop();
  std::uint64_t refused() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with completions in flight.
};

/// Checks what a process says of itself: version, texts that end and can be printed, known class, finite weight.
Result<JobInfo> ReadAttachRequest(const client::AttachRequest& request);

}  // namespace weir::agents
