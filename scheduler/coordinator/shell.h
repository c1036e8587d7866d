#pragma once

#include <memory>
#include <string>

#include "coflow/status.h"
#include "coflow/topology.h"
#include "scheduler/turns/policy.h"

namespace weir::scheduler {

struct ShellOptions {
  std::string listen;      ///< ADDR:PORT for agents; port 0 picks one.
  std::string http;        ///< ADDR:PORT for status; empty: none.
  bool plaintext = false;  ///< Allows addresses other than loopback. There is no TLS yet.
};

/// The coordinator's IO around CoordinatorEngine: sockets of agents and of people, clock, signals. One thread:
/// everything that has arrived in one turn of the loop is decided upon once, at its end.
///
/// Limits: frames of wire::kMaxFrameBytes, kOutboxMax bytes that an agent has not taken yet (then it is dropped: it
/// comes back and starts afresh), kMaxAgents.
class CoordinatorShell {
 public:
  static constexpr std::size_t kOutboxMax = 8u << 20;

  CoordinatorShell(const Topology& topology, std::unique_ptr<Policy> policy, ShellOptions options);
  ~CoordinatorShell();
  /// Binds both sockets. Error kInvalidArgument for an address that is none or may not be used, kUnavailable if it is
  /// taken.
  Status Listen();
  std::string agents_address() const;
  std::string http_address() const;
  /// Serves until SIGINT or SIGTERM.
  void Run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::scheduler
