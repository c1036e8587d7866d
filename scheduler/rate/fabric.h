#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "coflow/status.h"
#include "coflow/topology.h"
#include "coflow/units.h"

namespace weir::scheduler {

/// The directed links that flows share. Links 0 .. P-1 are the uplinks of the P ports, P .. 2P-1 their downlinks, the
/// rest are inner links. A flow takes its source's uplink, inner links between the two ports' groups, and its
/// destination's downlink; so an uplink is only ever the first link of a path, and a downlink only the last. Where two
/// groups have several paths, a pair of ports keeps to one that is chosen by a hash of both, as equal-cost multipath
/// does. Capacity is relative to a reference rate: bytes per tick, 1.0 for a port of that rate.
///
/// A plain value; paths do not change, capacities may.
class Fabric {
 public:
  /// No inner links: any two ports reach each other over their own links only.
  static Fabric BigSwitch(std::uint32_t ports, double capacity = 1.0);
  /// One port a host, in the order of hosts, and between any two sites all paths with the fewest links. Capacities are
  /// payload rates over `reference`. InvalidArgument names two sites without a path.
  static Result<Fabric> FromTopology(const Topology& topology, BytesPerSecond reference);

  /// Ports 0 .. `ports` - 1, each in its group; all of `group_of_port` below `groups`.
  Fabric(std::uint32_t ports, double capacity, std::vector<std::uint32_t> group_of_port, std::uint32_t groups);
  /// Adds an inner link; returns its number.
  std::uint32_t AddLink(double capacity);
  /// One more way from one group to another: its inner links, each at most once.
  void AddPath(std::uint32_t from_group, std::uint32_t to_group, std::vector<std::uint32_t> inner);
  void SetCapacity(std::uint32_t link, double capacity) { capacity_[link] = capacity; }

  std::uint32_t ports() const { return ports_; }
  std::uint32_t links() const { return static_cast<std::uint32_t>(capacity_.size()); }
  std::span<const double> capacity() const { return capacity_; }
  bool IsUplink(std::uint32_t link) const { return link < ports_; }
  bool IsDownlink(std::uint32_t link) const { return link >= ports_ && link < 2 * ports_; }
  /// Between uplink and downlink; empty inside a group unless a path was added.
  std::span<const std::uint32_t> InnerLinks(std::uint32_t source, std::uint32_t destination) const;

 private:
  std::uint32_t ports_;
  std::uint32_t groups_;
  std::vector<double> capacity_;
  std::vector<std::uint32_t> group_of_port_;
  using Paths = std::vector<std::vector<std::uint32_t>>;
  std::vector<Paths> inner_;  ///< [from group * groups + to group]
};

}  // namespace weir::scheduler
