#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::scheduler {

/// The ports of a filling on which every flow crosses one uplink and one downlink: what each has left, how much weight
/// grows there, and which have least for it. A *position* is a port's place among those in use.
///
/// A plain helper of the fillings below; not thread safe. Divisions are what a filling spends most of its time with,
/// and most are not needed: flows that stop have no more than the shares of the ports that they leave, so that a share
/// only rises from round to round, and one that was found earlier is at most the true one. So only the blocks of ports
/// are divided anew that could have the least. A flow that is taken costs no division; a round, a word for each block
/// and a look at the few blocks that may have the least. The flows of one port are taken eight at once where the
/// processor has AVX-512.
class PortShares {
 public:
  /// Starts over with so many ports, without room or weight.
  void Open(std::size_t positions);
  std::size_t positions() const { return positions_; }

  double room(std::size_t position) const { return room_[position]; }
  double weight(std::size_t position) const { return weight_[position]; }
  /// Weight 0: nothing grows here.
  void Set(std::size_t position, double room, double weight) {
    room_[position] = room;
    weight_[position] = weight;
    stale_[position / kBlock] = 1;
    least_[position / kBlock] = 0;
  }
  /// Not more for its weight than the port's share.
  void Take(std::size_t position, double rate, double weight) {
    room_[position] -= rate;
    weight_[position] -= weight;
    stale_[position / kBlock] = 1;
  }
  /// The same for up to 64 positions from `first` on, those whose bits are set.
  void TakeAll(std::size_t first, std::uint64_t bits, double rate, double weight) {
    if (bits != 0) {
      take_all_(&room_[first], &weight_[first], bits, rate, weight);
      const std::size_t last = first + 63 - static_cast<std::size_t>(__builtin_clzll(bits));
      for (std::size_t block = first / kBlock; block <= last / kBlock; ++block) {
        stale_[block] = 1;
      }
    }
  }
  /// The same for some of up to 64 positions from `first` on that `among` has: the first bit stands for the first one
  /// of those, and so on.
  void TakeAmong(std::size_t first, std::uint64_t among, std::uint64_t bits, double rate, double weight) {
    TakeAll(first, spread_(bits, among), rate, weight);
  }
  /// Nothing grows at this port any more, and no room is left.
  void Close(std::size_t position) {
    room_[position] = 0;
    weight_[position] = 0;
    stale_[position / kBlock] = 1;
  }

  /// The least share of any port at which something grows, infinity without one; full() is who has that share.
  double FindFull();
  std::span<const std::uint32_t> full() const { return full_; }

  /// All rooms and weights, for who wants to come back to them.
  void Save(std::vector<double>* rooms, std::vector<double>* weights) const;
  void Restore(std::span<const double> rooms, std::span<const double> weights);

  /// Takes `rate` and `step` from the rooms and weights whose bits are set; may write to the eight that one of them is
  /// in, counted from the first, what they have.
  using TakeAllKernel = void (*)(double* room, double* weight, std::uint64_t bits, double rate, double step);
  /// Those that this processor can run, the widest vectors first; never empty. All leave the same bits.
  static std::span<const TakeAllKernel> TakeAllKernels();
  /// Puts the first bits, as many as `among` has, where the bits of `among` are, in order.
  using SpreadKernel = std::uint64_t (*)(std::uint64_t bits, std::uint64_t among);
  /// Those that this processor can run, the fastest first; never empty.
  static std::span<const SpreadKernel> SpreadKernels();

 private:
  static constexpr std::size_t kBlock = 16;

  void Divide(std::size_t block);

  TakeAllKernel take_all_ = TakeAllKernels().front();
  SpreadKernel spread_ = SpreadKernels().front();
  std::size_t positions_ = 0;
  // By position, up to a whole block, rooms and weights with one more, to which kernels may write. Without weight the
  // share is infinite or not a number, and less than no other.
  std::vector<double> room_, weight_, share_;
  std::vector<double> least_;         // share, by block: at most the true one
  std::vector<std::uint32_t> stale_;  // by block: not 0 if it may be less than the true one
  std::vector<std::uint32_t> full_;
};

}  // namespace weir::scheduler
