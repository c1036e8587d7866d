#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::scheduler {

/// The ports of a filling on which every flow crosses one uplink and one downlink: what each has left, how much weight
/// grows there, and which have least for it. A *position* is a port's place among those in use; uplinks come first.
///
/// A plain helper of the fillings below; not thread safe. A round costs a pass over the shares of the side on which
/// something changed, 16 bytes a port; what a closing port's flows use is taken flow by flow.
class PortShares {
 public:
  /// Starts over with `positions` ports, the first `uplinks` of which are uplinks, without room or weight.
  void Open(std::size_t positions, std::size_t uplinks);
  std::size_t positions() const { return room_.size(); }

  double room(std::size_t position) const { return room_[position]; }
  double weight(std::size_t position) const { return weight_[position]; }
  /// Weight 0: nothing grows here.
  void Set(std::size_t position, double room, double weight) {
    room_[position] = room;
    weight_[position] = weight;
  }
  void SetWeight(std::size_t position, double weight) { weight_[position] = weight; }
  void Take(std::size_t position, double rate, double weight) {
    room_[position] -= rate;
    weight_[position] -= weight;
  }
  /// Says that ports of this side have other room or weight than before.
  void Touch(bool uplinks) { sides_[uplinks ? 0 : 1].stale = true; }
  bool IsUplink(std::size_t position) const { return position < sides_[0].end; }
  /// Nothing grows at this port any more.
  void Close(std::size_t position);

  /// The least share of any port at which something grows, infinity without one; full() is who has that share.
  double FindFull();
  std::span<const std::uint32_t> full() const { return full_; }

  /// All rooms and weights, for who wants to come back to them.
  void Save(std::vector<double>* rooms, std::vector<double>* weights) const;
  void Restore(std::span<const double> rooms, std::span<const double> weights);

 private:
  struct Side {
    std::size_t begin = 0, end = 0;  // positions
    double least = 0;                // share
    bool stale = true;               // shares must be divided anew
    bool closed = false;             // the least must be looked for anew
  };
  void Refresh(Side* side);

  Side sides_[2];
  // By position. Without weight the share is infinite or not a number, and less than no other.
  std::vector<double> room_, weight_, share_;
  std::vector<std::uint32_t> full_;
};

}  // namespace weir::scheduler
