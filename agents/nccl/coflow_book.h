#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "agents/nccl/coflow_key.h"
#include "coflow/status.h"
#include "coflow/units.h"

namespace weir::nccl {

/// What each coflow of this process has sent so far. Any thread; the lock is held for a look into a table.
/// Holds kCoflows at a time; the oldest make room, and are kept as lines for the report, at most kReported.
class CoflowBook {
 public:
  static constexpr std::size_t kCoflows = 4096;
  static constexpr std::size_t kReported = 1 << 16;

  void OnSend(const CoflowKey& key, Bytes bytes, Nanoseconds now);
  /// One line of JSON a coflow, in the order in which they began, of all that ended; and starts anew.
  std::string Report();

 private:
  struct Entry {
    CoflowKey key;
    std::uint64_t sends = 0;  ///< 0: free.
    Bytes bytes = 0;
    Nanoseconds began = 0;
    Nanoseconds last = 0;
  };
  struct Hash {
    std::size_t operator()(const CoflowKey& key) const noexcept { return HashOf(key); }
  };
  static std::string Line(const Entry& entry);
  void End(Entry* entry);

  std::mutex mutex_;
  std::vector<Entry> ring_ = std::vector<Entry>(kCoflows);
  std::size_t next_ = 0;
  std::unordered_map<CoflowKey, std::size_t, Hash> index_;
  std::vector<std::string> told_;
};

/// Coflows where NCCL does not say which is which: a new one begins after a pause, or when NCCL says that the operation
/// is another. One a context.
class Ladder {
 public:
  /// Shorter pauses are within a collective: its steps wait for each other.
  static constexpr Nanoseconds kPause = kMillisecond;

  CoflowKey OnSend(std::uint64_t comm_id, Nanoseconds now);
  /// `operations`: as NetAttributes has it.
  void OnAttributes(std::uint32_t operations);

 private:
  std::mutex mutex_;
  Function function_ = Function::kNone;
  bool begin_ = false;
  std::uint64_t sequence_ = 0;
  Nanoseconds last_ = 0;
};

}  // namespace weir::nccl
