#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "agents/nccl/coflow_key.h"
#include "coflow/units.h"

/// The profiler half: NCCL tells which collective each of its proxy's operations and steps belongs to, and, from within
/// a call of ours, which step a transfer is. Put together, each transfer has its coflow.
///
/// What NCCL keeps for us between calls ("handles") are numbers, not pointers: an index and a generation. NCCL may hand
/// us one that was meant for another process (PXN), or one whose record has been used again: both are noticed.
namespace weir::nccl {

/// What the network half asks for; filled while NCCL calls back.
struct TransferIdentity {
  bool known = false;
  CoflowKey key;
  Bytes expected = 0;  ///< To the peer, all channels together; 0: not known.
  int rank = 0;        ///< In the communicator.
  int peer = 0;
  std::uint8_t channel = 0;
};

/// Of the network half's own events: nobody else's `extra` is what we take it for. Its low 16 bits are a version.
inline constexpr std::int64_t kNetPluginId = 0x5765'6972'0000'0001;

/// A communicator, as the profiler is told of it. Threads: any.
class ProfiledComm {
 public:
  /// `ranks` 0: not known.
  explicit ProfiledComm(std::uint64_t comm_id, int ranks = 0) : comm_id_(comm_id), ranks_(ranks) {}
  int ranks() const { return ranks_; }
  /// `comm_id` 0: the one that we were made with.
  CoflowKey Collective(std::uint64_t comm_id, Function function, std::uint64_t sequence);
  /// All of one group have one key.
  CoflowKey PointToPoint(std::uint64_t comm_id, const void* group);

 private:
  const std::uint64_t comm_id_;
  const int ranks_;
  std::mutex mutex_;
  std::array<std::uint64_t, 256> highest_{};  ///< 1 + the highest number, by function.
  std::array<std::uint32_t, 256> repeats_{};  ///< Numbers that came again, by function: those of CUDA graphs.
  const void* last_group_ = nullptr;
  std::uint64_t groups_ = 0;
};

/// The records behind the handles. One a process. Any thread, no lock: records are claimed by an atomic each.
/// Holds kCollectives collectives and kOps operations at a time; beyond, transfers are attributed by other means.
/// Generations begin at a number of this process's own, so that a handle of another one is nobody's here.
class EventBook {
 public:
  static constexpr std::size_t kCollectives = 1 << 14;
  static constexpr std::size_t kOps = 1 << 14;
  static constexpr std::size_t kTries = 64;  ///< Records that are looked at for a free one.

  /// `first`: the first generation, from 1 to 2^46.
  explicit EventBook(std::uint64_t first);
  void* NewGroup();
  /// `expected`: as TransferIdentity has it.
  void* NewCollective(const CoflowKey& key, Bytes expected = 0);
  /// Null: the collective is not known, or no record is free among the kTries that are looked at.
  void* NewOp(const void* collective, pid_t pid, int rank, int peer, std::uint8_t channel);
  void EndOp(const void* op);
  /// A step is its operation under another name.
  void* NewStep(const void* op);
  /// False: it is no step of this process.
  bool Identify(const void* step, TransferIdentity* out) const;
  bool IsOp(const void* handle) const;

 private:
  /// Written once by the thread that claimed it; a reader compares the generation before and after.
  struct Collective {
    std::atomic<std::uint64_t> generation{0};
    std::atomic<std::uint64_t> comm_id{0};
    std::atomic<std::uint64_t> sequence{0};
    std::atomic<std::uint64_t> replay_and_function{0};
    std::atomic<Bytes> expected{0};
  };
  /// Used by the progress thread that claimed it, until it gives it back.
  struct Op {
    std::atomic<std::uint64_t> generation{0};  ///< 0: free.
    TransferIdentity identity;
  };
  bool ReadCollective(const void* handle, TransferIdentity* out) const;
  const Op* FindOp(const void* handle) const;

  const pid_t pid_;
  std::atomic<std::uint64_t> next_;
  std::unique_ptr<std::array<Collective, kCollectives>> collectives_;
  std::unique_ptr<std::array<Op, kOps>> ops_;
};

/// Made with the first communicator, never destroyed.
EventBook& Events();

}  // namespace weir::nccl
