#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "agents/nccl/coflow_key.h"
#include "coflow/units.h"

namespace weir::nccl {

/// The coflows that a lane sent last: which were told of already, and what those of one kind really sent. Used by all
/// connections of a lane at once, without a lock; where two meet in one place, the older is forgotten.
/// Holds kCoflows coflows and kKinds kinds.
class LaneCoflows {
 public:
  static constexpr std::size_t kCoflows = 64;
  static constexpr std::size_t kKinds = 64;

  /// Whether this is the first connection that says so, as far as is remembered. Then `*expected` becomes what the one
  /// before the last of its kind sent, if there was one: the last may not be over yet. Kind: function and `*expected`.
  bool Begin(const CoflowKey& key, Bytes* expected) noexcept;
  /// It sends so much more.
  void Add(const CoflowKey& key, Bytes bytes) noexcept;
  /// Of the last message that was told; 0: none.
  std::uint64_t ticket() const noexcept { return ticket_.load(std::memory_order_relaxed); }
  void SetTicket(std::uint64_t ticket) noexcept { ticket_.store(ticket, std::memory_order_relaxed); }

 private:
  struct Coflow {
    std::atomic<std::uint64_t> hash{0};  ///< 0: none.
    std::atomic<Bytes> bytes{0};
  };
  struct Kind {
    std::atomic<std::uint64_t> hash{0};
    std::atomic<std::uint64_t> last{0};  ///< Of its coflows,
    std::atomic<std::uint64_t> before{0};
  };
  Coflow& At(std::uint64_t hash) { return coflows_[hash / 2 % kCoflows]; }

  std::atomic<std::uint64_t> ticket_{0};
  std::array<Coflow, kCoflows> coflows_;
  std::array<Kind, kKinds> kinds_;
};

}  // namespace weir::nccl
