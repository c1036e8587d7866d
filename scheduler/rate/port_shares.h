#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::scheduler {

/// The ports of a filling on which every flow crosses one uplink and one downlink: what each has left, how much weight
/// grows there, and which have least for it. A *position* is a port's place among those in use.
///
/// A plain helper of the fillings below; not thread safe. A flow that is taken costs one division. The least share is
/// kept for blocks of ports, so a round costs a look at the blocks in which something changed and one word for each
/// other.
class PortShares {
 public:
  /// Starts over with so many ports, without room or weight.
  void Open(std::size_t positions);
  std::size_t positions() const { return room_.size(); }

  double room(std::size_t position) const { return room_[position]; }
  double weight(std::size_t position) const { return weight_[position]; }
  /// Weight 0: nothing grows here.
  void Set(std::size_t position, double room, double weight) {
    room_[position] = room;
    weight_[position] = weight;
    Divide(position);
  }
  void Take(std::size_t position, double rate, double weight) {
    room_[position] -= rate;
    weight_[position] -= weight;
    Divide(position);
  }
  /// Nothing grows at this port any more, and no room is left.
  void Close(std::size_t position) { Set(position, 0, 0); }

  /// The least share of any port at which something grows, infinity without one; full() is who has that share.
  double FindFull();
  std::span<const std::uint32_t> full() const { return full_; }

  /// All rooms and weights, for who wants to come back to them.
  void Save(std::vector<double>* rooms, std::vector<double>* weights) const;
  void Restore(std::span<const double> rooms, std::span<const double> weights);

 private:
  static constexpr std::size_t kBlock = 16;

  /// Without weight the share is infinite or not a number, and less than no other.
  void Divide(std::size_t position) {
    share_[position] = (room_[position] > 0 ? room_[position] : 0) / weight_[position];
    stale_[position / kBlock] = 1;
  }

  std::vector<double> room_, weight_;
  std::vector<double> share_;         // by position, and infinities up to a whole block
  std::vector<double> least_;         // share, by block
  std::vector<unsigned char> stale_;  // the least of a block is not known
  std::vector<std::uint32_t> full_;
};

}  // namespace weir::scheduler
