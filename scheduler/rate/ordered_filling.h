#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/rate/flow_group.h"

namespace weir::scheduler {

/// Max-min over the flows of one group that uses no inner links, again and again on room that has changed a little on
/// every link: what PortFilling does, but it guesses the order in which ports get full from the last time, so that no
/// round has to look for the port with the least share.
///
/// Ports are closed one after the other as guessed, each at the share that it has by then: what the closed ports at the
/// other end leave it, divided by the flows that grow. If no share is less than the one before, and those that stay
/// open have room for what their flows got, then every flow has a port that is full and on which none is faster, which
/// is max-min. A port whose share is less than the one before should have closed earlier: closings are taken back until
/// it fits, and done again after it. Where that takes more steps than it would to look for each port anew, that is
/// done.
///
/// Nothing is subtracted from room flow by flow: what a port at the other end with flows to all of its open partners
/// has lost is one sum, the same for all such ports; only ports some of whose flows have ended add up their own.
///
/// O(ports + steps taken back), for ports some of whose flows have ended times the ports at the other end / 8 where the
/// processor has AVX-512. The order is kept in the group's port_order(). Keeps scratch memory. Thread: one at a time.
class OrderedFilling {
 public:
  /// Sets the levels of the group on `room`, by local link. 0 and not a little more: nothing is left there. The sums of
  /// the group hold afterwards. Returns how many flows have another rate than before.
  std::size_t Fill(FlowGroup* group, std::span<const double> room);

  /// Sum of `values` at the set bits of the words; as long as the bits.
  using SumKernel = double (*)(const double* values, const std::uint64_t* bits, std::size_t words);
  /// Those that this processor can run, the widest vectors first; never empty. Sums differ by rounding.
  static std::span<const SumKernel> SumKernels();

  /// Steps taken back so far, for tests and measurements.
  std::uint64_t taken_back() const { return taken_back_; }
  /// How often there was nothing to guess from, or the guess was too bad.
  std::uint64_t searches() const { return searches_; }

 private:
  struct Closing {
    std::uint32_t port;
    double share;
    double closed_sum;  // of its side before
  };
  struct Side {
    std::uint32_t first = 0, last = 0;  // local links
    std::uint32_t alive = 0;            // ports with live flows
    std::uint32_t open = 0;
    double closed_sum = 0;  // shares of the closed ones
    std::vector<std::uint64_t> open_bits;
  };

  void Begin(FlowGroup* group, std::span<const double> room);
  bool FollowOrder();
  void Place();
  bool DeferThoseThatFit();
  void Search();
  void QueuePorts(std::span<const std::uint32_t> order);
  double Taken(std::uint32_t port, const Side& other) const;
  std::uint32_t Growing(std::uint32_t port, const Side& other) const;
  double ShareOf(std::uint32_t port);
  void Close(std::uint32_t port, double share);
  void TakeBack();
  void Finish();
  const Side& Other(std::uint32_t port) const { return sides_[port < sides_[1].first ? 1 : 0]; }

  SumKernel sum_ = SumKernels().front();
  FlowGroup* group_ = nullptr;
  std::span<const double> room_;
  Side sides_[2];                       // uplinks, downlinks
  std::vector<double> level_;           // by port; 0 while it is open
  std::vector<double> taken_;           // by port all of whose flows others have stopped: what these have got,
  std::vector<std::uint64_t> seen_at_;  // as of so many steps taken back
  std::vector<Closing> closings_;
  std::vector<std::uint32_t> pending_;   // ports to close, the next one last
  std::vector<std::uint32_t> deferred_;  // ports all of whose flows others have stopped
  std::vector<std::uint32_t> ended_;     // ports without live flows
  std::uint64_t taken_back_ = 0, searches_ = 0;
};

}  // namespace weir::scheduler
