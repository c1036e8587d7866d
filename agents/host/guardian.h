#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "agents/host/foreign_process.h"
#include "coflow/status.h"
#include "coflow/unique_fd.h"

namespace weir::agents {

/// A cap that the agent put on a socket of another process, and what was there before.
struct Setting {
  std::int64_t pid = 0;
  std::uint64_t start_time = 0;
  ForeignSocket socket;
  std::uint64_t original = kNoPacing;
};

/// The agent's end of its guardian: a child process that knows every cap set from outside and takes them all off when
/// the agent is gone, however it went. A socket option outlives who set it; without the guardian a killed agent would
/// leave training processes capped for ever.
///
/// The guardian is another run of our own program (`weir-agent guardian`), in its own session, fed by a pipe whose
/// closing is the sign. Started with the first cap, and again if it ends or does not read. Owned by Adopter. Thread:
/// the agent's loop, which waits for it kPatience_ms at the most.
class Guardian {
 public:
  static constexpr int kPatience_ms = 100;

  Guardian() = default;
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;
  ~Guardian();

  /// To be called before the cap is set. An error means that nobody would take it off: do not set it.
  Status Know(const Setting& setting);
  /// Starts it again if it has ended while there are caps. To be called now and then.
  void Tend();
  /// The cap was taken off, or its socket is gone.
  void Forget(std::int64_t pid, std::uint64_t inode);
  pid_t pid() const { return child_; }

 private:
  Status Start(int fd);
  Status StartAndTellAll();
  Status Tell(const std::string& line);
  Status Write(const std::string& line);
  bool WriteNow(const std::string& line);
  void End();

  UniqueFd pipe_;
  pid_t child_ = -1;
  std::map<std::pair<std::int64_t, std::uint64_t>, Setting> settings_;  ///< For a guardian that must be started again.
};

/// The guardian itself: reads settings from `fd` until it closes, then restores them all. Returns the exit code.
int RunGuardian(int fd);

}  // namespace weir::agents
