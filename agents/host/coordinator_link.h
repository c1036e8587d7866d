#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"

namespace boost::asio {
class io_context;
}

namespace weir::agents {

/// The agent's connection to its coordinator: connects, frames, and connects again for ever, with a backoff that ends
/// at kBackoffMax (a coordinator that restarts is found within one). Knows nothing of what the frames mean.
///
/// Owned by AgentShell. Thread: the loop's. Limits: frames of wire::kMaxFrameBytes; kPendingMax bytes the
/// coordinator has not taken yet, beyond which the connection is dropped rather than grown.
class CoordinatorLink {
 public:
  static constexpr std::size_t kPendingMax = 8u << 20;
  static constexpr Nanoseconds kBackoffMin = 20 * kMillisecond;
  static constexpr Nanoseconds kBackoffMax = 250 * kMillisecond;

  struct Handler {
    std::function<void()> on_connected;
    std::function<void(const std::string& reason)> on_disconnected;
    std::function<void(const std::string& reason)> on_unreachable;  ///< An attempt failed; another follows.
    std::function<void(std::string_view frame)> on_frame;           ///< May call Drop().
  };
  /// `address` is HOST:PORT or [V6]:PORT. Nothing happens before Start.
  CoordinatorLink(boost::asio::io_context& loop, const std::string& address, Handler handler);
  ~CoordinatorLink();

  void Start();
  /// Writes at once what the socket takes; the rest follows when it can. Ignored while not connected.
  void Send(const std::vector<std::string>& messages);
  /// Ends this connection, because of what was said on it, and begins the longest backoff.
  void Drop(const std::string& reason);
  /// Ends it for good.
  void Stop();
  bool connected() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with completions in flight, which may outlive the link.
};

/// Splits HOST:PORT or [V6]:PORT; ports are 1 to 65535.
Result<std::pair<std::string, std::string>> SplitAddress(const std::string& address);

}  // namespace weir::agents
