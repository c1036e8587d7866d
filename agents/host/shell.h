#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "agents/host/engine.h"
#include "coflow/status.h"

namespace weir::agents {

struct ShellOptions {
  EngineOptions engine;
  std::string coordinator;  ///< HOST:PORT or [V6]:PORT.
  std::string socket;       ///< Where processes attach.
  std::string http;         ///< ADDR:PORT for metrics and status; empty: none.
  bool plaintext = false;   ///< Allows `http` to be an address other than loopback. There is no TLS yet.
  std::uint32_t socket_mode = 0666;
};

/// The agent's IO around AgentEngine: attach socket, segments, doorbell, kernel queries, coordinator, clock, signals.
/// One loop thread; the doorbell's thread only posts to it. What a ring leads to is carried out in the same turn of the
/// loop: look, decide, write gates, wake, tell the coordinator.
class AgentShell {
 public:
  explicit AgentShell(ShellOptions options);
  ~AgentShell();
  /// Opens what can fail: the attach socket, the doorbell, the kernel's socket query, the port for metrics.
  Status Start();
  /// "none" without a port for metrics.
  std::string http_address() const;
  /// Serves until SIGINT or SIGTERM; then lets every process go and returns.
  void Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::agents
