#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/key_values.h"
#include "transport/transport.h"

/// The backends that weir-perf can measure, by name. A new one joins with a file backend_NAME.cc, a function declared
/// below and a line in backends.cc; no other file of weir-perf knows one backend from another.
namespace weir::tools {

/// What the command line says to every backend. A zero or an empty text is "the backend's own default".
struct BackendSettings {
  bool loopback = false;      ///< Both ends are in this process: use what reaches this host itself.
  std::string interfaces;     ///< Which network cards, as in NCCL_SOCKET_IFNAME.
  std::uint32_t streams = 0;  ///< Connections, queue pairs or paths that one channel spreads large messages over.
  Bytes stripe_bytes = 0;     ///< Pieces that it spreads.
  Nanoseconds dead_after = 0;
  transport::KeyValues options;  ///< --options: what only this backend knows.
};

/// One thing that a host has or lacks for a backend.
struct Finding {
  enum class Weight : std::uint8_t {
    kGood,     ///< As it should be.
    kAdvice,   ///< Works, and would work better otherwise.
    kMissing,  ///< Without it the backend does not run here.
  };
  Weight weight = Weight::kGood;
  std::string what;    ///< "memlock"
  std::string found;   ///< "64 KiB"
  std::string advice;  ///< What to do; empty for kGood.
};

/// What `weir-perf faults` must know of a backend.
struct FaultSupport {
  std::string_view no_link;                 ///< Why it cannot run over a TestLink; empty: it can.
  std::uint32_t mtu = 9000;                 ///< Of that link.
  std::array<std::string_view, 2> options;  ///< --options of the two ends there, unless others are given.
  bool told_of_exit = true;  ///< The kernel says when the peer's process has ended; else it is noticed as silence is.
};

struct Backend {
  std::string_view name;
  std::string_view summary;  ///< For --help and the doctor, a few words.
  /// Errors: kInvalidArgument for a setting, naming it and what is allowed; kUnsupported for a host that cannot.
  Result<std::unique_ptr<transport::Transport>> (*make)(const BackendSettings& settings);
  /// What the doctor says of this host. Changes nothing, needs no privilege, and is over at once.
  std::vector<Finding> (*examine)(const BackendSettings& settings);
  FaultSupport faults;
};

std::span<const Backend> Backends();
/// Error kInvalidArgument with the names that there are.
Result<const Backend*> FindBackend(std::string_view name);

Backend TcpBackend();
Backend DpdkBackend();
Backend RdmaBackend();

}  // namespace weir::tools
