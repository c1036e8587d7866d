#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coflow/status.h"
#include "coflow/units.h"

/// What the ranks of an emulation share: memory mapped before they are forked, in place of NCCL's bootstrap network.
namespace weir::tools::emulate {

inline constexpr int kRanksMax = 64;
inline constexpr int kChannelsMax = 32;
inline constexpr std::size_t kCasesMax = 256;

/// What one rank tells. Written by it, read by all once its state says so.
struct RankTale {
  std::atomic<std::uint32_t> finished;  ///< 1: ran to its end; 2: failed, and `message` says why.
  char message[400];
  std::uint64_t sends;
  std::uint64_t receives;
  std::uint64_t flushes;
  std::uint64_t send_nulls;     ///< Times that isend said "not now".
  std::uint64_t receive_nulls;  ///< Times that irecv did.
  std::uint64_t bytes_sent;
  std::uint64_t numbers_checked;
  std::uint64_t sends_attributed;        ///< Sends of coflows that the plugin reported right,
  std::uint64_t coflows;                 ///< coflows there were,
  std::uint64_t coflows_whole;           ///< and those of them that it reported right.
  std::uint64_t errors_seen;             ///< Of calls, where one is provoked.
  Nanoseconds error_after;               ///< How long after it was provoked the first was seen.
  std::uint32_t error_code;              ///< NCCL's, of the first.
  Nanoseconds close_longest;             ///< Of one close call.
  std::int64_t descriptors_more;         ///< Open at the end beyond those after the first cycle.
  std::int64_t memory_more_kb;           ///< Resident, likewise.
  Nanoseconds case_time[kCasesMax];      ///< All rounds of a case together,
  std::uint64_t case_rounds[kCasesMax];  ///< and how many there were.
};

struct HandleCell {
  std::atomic<std::uint32_t> cycle;  ///< 1 + the cycle that the bytes are of.
  char bytes[128];
};

class Board {
 public:
  /// Error kResourceExhausted.
  static Result<std::unique_ptr<Board>> Make(int ranks, int channels);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  RankTale& tale(int rank) { return shared_->tales[rank]; }
  HandleCell& cell(int from, int to, int channel);
  /// Set by whoever fails or stops on purpose: the others need not wait.
  std::atomic<std::uint32_t>& stopped() { return shared_->stopped; }
  std::atomic<Nanoseconds>& provoked_at() { return shared_->provoked_at; }
  /// Waits until all ranks came here equally often. Error kUnavailable when one has stopped, or after `within`.
  Status Meet(Nanoseconds within);
  /// The ranks are to end after the round that they are in. From a signal handler too.
  void AskToEnd() noexcept { shared_->asked_to_end.store(1); }
  /// Meet, and whether this round is not to begin any more: the same answer for all ranks. `round` counts the calls
  /// from 1 and is the same for all ranks.
  Result<bool> MeetOrEnd(std::uint64_t round, Nanoseconds within);

 private:
  struct Shared {
    std::atomic<std::uint32_t> stopped;
    std::atomic<std::uint32_t> arrived;
    std::atomic<std::uint32_t> asked_to_end;
    std::atomic<std::uint64_t> first_not_begun;  ///< The round that is not to begin; 0: all do.
    std::atomic<Nanoseconds> provoked_at;
    RankTale tales[kRanksMax];
  };
  Board(int ranks, int channels, void* memory, std::size_t size);

  const int ranks_;
  const int channels_;
  void* const memory_;
  const std::size_t size_;
  Shared* const shared_;
  HandleCell* const cells_;
};

}  // namespace weir::tools::emulate
