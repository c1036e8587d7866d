#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agents/host/engine.h"
#include "agents/host/foreign_process.h"
#include "agents/host/guardian.h"
#include "agents/host/sock_diag.h"
#include "coflow/status.h"

namespace weir::agents {

/// Processes that could not be preloaded and are paced from outside: their TCP sockets are found in /proc, their demand
/// is read from the kernel's queues, and caps are set on borrowed duplicates that are closed at once. They can be
/// slowed, not held; every cap is known to a guardian that takes it off should we die.
///
/// Owned by AgentShell. Thread: the loop's. Limits: kMaxProcesses with the attached ones, client::kMaxLanes peers and
/// client::kMaxSockets sockets of a process; further ones are left alone.
class Adopter {
 public:
  static constexpr Nanoseconds kLookActive = 10 * kMillisecond;
  static constexpr Nanoseconds kLookIdle = 100 * kMillisecond;
  static constexpr Nanoseconds kScanEvery = 250 * kMillisecond;  ///< For new and closed sockets.

  Adopter(AgentEngine& engine, SockDiag& diag) : engine_(engine), diag_(diag) {}
  Adopter(const Adopter&) = delete;
  Adopter& operator=(const Adopter&) = delete;
  ~Adopter() { Release(); }

  /// `uid` is who asks: root, or the owner of the process.
  Result<ProcessId> Adopt(Nanoseconds now, std::int64_t pid, const JobInfo& job, std::uint32_t uid);
  /// When Look must be called next; far away if nothing was adopted.
  Nanoseconds NextLook() const;
  /// Finds sockets and demand, and tells the engine.
  void Look(Nanoseconds now);

  bool Has(ProcessId process) const { return processes_.contains(process); }
  void Write(LaneRef lane, const LaneControl& control);
  /// What the kernel says of the lane's sockets.
  Result<std::vector<SocketQueue>> Queues(LaneRef lane);
  /// Takes off every cap. Lanes may be written again afterwards.
  void Release();

 private:
  struct Socket {
    ForeignSocket id;
    SocketKey key;
    std::uint32_t lane = 0;
    std::uint64_t original = kNoPacing;
    bool capped = false;
    bool seen = false;  ///< In the scan that is running.
  };
  struct Process {
    ForeignProcess handle;
    std::vector<std::string> peers;           ///< One a lane.
    std::vector<std::uint64_t> rates;         ///< As last written, one a lane.
    std::map<std::uint64_t, Socket> sockets;  ///< By inode.
    std::map<std::uint64_t, bool> not_ours;   ///< Inodes that are no connected TCP sockets; true while seen.
    Nanoseconds scan_at = 0;
  };

  using Sockets = std::vector<const Socket*>;
  Result<std::vector<SocketQueue>> Queues(const Process& process, const Sockets& sockets);
  void Scan(Nanoseconds now, ProcessId id, Process& process);
  void AddSocket(Nanoseconds now, ProcessId id, Process& process, const ForeignSocket& found);
  void SampleLanes(Nanoseconds now, ProcessId id, const Process& process);
  void Cap(const Process& process, Socket& socket, std::uint64_t rate);
  bool Active(ProcessId id, const Process& process) const;

  AgentEngine& engine_;
  SockDiag& diag_;
  Guardian guardian_;
  std::map<ProcessId, Process> processes_;
  Nanoseconds look_at_ = 0;
};

}  // namespace weir::agents
