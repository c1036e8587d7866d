#pragma once

#include <atomic>
#include <cstddef>

namespace weir::transport::dpdk {

/// Keeps what a driver does on DPDK's interrupt thread away from bursts on ours. Drivers do not: when the peer of a
/// memif port goes, that thread unmaps the rings while a burst may be reading them, and it takes the port down while
/// we may be doing the same.
///
/// Every burst is within a Turn of its port, and setting up or closing a port within an Exclusion. Callbacks of the
/// interrupt thread run within an Exclusion as well: the linker sends all registrations of callbacks in this library
/// through interrupts.cc (--wrap), since nothing in DPDK's own interface comes before them.
class PortTurns {
 public:
  static constexpr std::size_t kPorts = 32;  ///< RTE_MAX_ETHPORTS.

  /// From now on, a fork of this process moves nothing: the devices are its parent's.
  static void StopInForks() noexcept;

  /// For one burst; never waits. False: the port is being changed, and the burst moves nothing. About 10 ns.
  class Turn {
   public:
    explicit Turn(std::size_t port) noexcept
        : busy_(turns_[port].busy), mine_(!busy_.exchange(true, std::memory_order_acquire)) {}
    ~Turn() {
      if (mine_) busy_.store(false, std::memory_order_release);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return mine_; }

   private:
    std::atomic<bool>& busy_;
    bool mine_;
  };

  /// Waits until no burst is under way on any port, and keeps further ones away.
  class Exclusion {
   public:
    Exclusion() noexcept;
    ~Exclusion();
    Exclusion(const Exclusion&) = delete;
    Exclusion& operator=(const Exclusion&) = delete;
  };

 private:
  struct alignas(64) OfPort {
    std::atomic<bool> busy{false};
  };
  static OfPort turns_[kPorts];
};

}  // namespace weir::transport::dpdk
