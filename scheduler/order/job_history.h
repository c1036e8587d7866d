#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "scheduler/order/active_table.h"

namespace weir::scheduler {

/// What earlier coflows of a job say of a new one. A training job sends the same bytes between the same ports in every
/// iteration, so a coflow is foreseen from the last one of its job with the same flows (ActiveTable::kin), unless that
/// one differed from the one before it by more than a tenth. Sizes are learnt from coflows that have ended. Not thread
/// safe. Memory: one entry for each kin ever seen, with its receivers.
class JobHistory {
 public:
  /// A coflow ends: what it sent is in its ended_bytes.
  void Learn(const ActiveTable& table, std::uint32_t slot);
  /// True if it is known what the coflow sends, and it has not sent a tenth more by now.
  bool Foresees(const ActiveTable& table, std::uint32_t slot) const;
  /// Bytes that the coflow has left to receive, by port; 0 or more. Only where Foresees().
  void LeftAtReceivers(const ActiveTable& table, std::uint32_t slot, std::span<double> left) const;
  /// How many coflows it has learnt from.
  std::uint64_t lessons() const { return lessons_; }

 private:
  struct Received {
    std::uint32_t port = 0;
    std::int64_t bytes = 0;
  };
  struct Past {
    bool steady = false;
    std::int64_t bytes = 0;  // of the whole coflow
    std::vector<Received> received;
  };
  std::unordered_map<std::uint64_t, Past> past_;
  std::uint64_t lessons_ = 0;
};

}  // namespace weir::scheduler
