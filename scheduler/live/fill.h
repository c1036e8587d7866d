#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/live/fabric.h"

namespace weir::scheduler {

/// How a coflow's flows share what those in front left them.
enum class LiveRates {
  kGreedy,  ///< In the order they were given, each takes all it can (Sincronia, section 4).
  kMaxMin,  ///< Max-min fair among themselves.
};

/// Rates of one coflow's flows on what is left of the links: whole bytes per second, never more than a link has, and
/// no flow could have more. Max-min by progressive filling: of the links with flows still open, the one with the least
/// room per flow (then the lowest index) gives its room out in equal parts, rounded up for the first, and its flows are
/// closed. Rounding may leave single bytes per second; a last pass gives them away. A rate is so within
/// 2 bytes/s per link filled before it of the exact max-min rate, and the sums are exact.
///
/// A flow with a full link is closed from the start and has no influence on the others. The result depends on the
/// open flows, their order and the room on their links alone.
///
/// Cost: O(flows * path length) for greedy; max-min adds the square of the links of open flows. Owns scratch space and
/// allocates only beyond it. Thread: one at a time.
class RateFill {
 public:
  struct Use {
    LinkIndex link = 0;
    WholeRate rate = 0;
  };

  RateFill(std::uint32_t links, std::uint32_t flows, std::uint32_t hops);

  /// `room` by link, lowered by what is given. Only the links that the flows cross are looked at. Afterwards `rates()`
  /// is parallel to `flows`, and `uses()` has each link that an open flow crosses, with what was taken of it (0 too).
  void Fill(const LiveFabric& fabric, std::span<const FlowIndex> flows, LiveRates how, std::vector<WholeRate>* room);

  std::span<const WholeRate> rates() const { return rates_; }
  std::span<const Use> uses() const { return uses_; }

 private:
  void Open(const LiveFabric& fabric, std::span<const FlowIndex> flows, const std::vector<WholeRate>& room);
  void OpenFlow(std::span<const LiveFabric::Hop> path, std::uint32_t position, const std::vector<WholeRate>& room);
  void ListFlowsOfLinks();
  void Progressive();
  std::size_t Narrowest() const;
  void CloseLink(std::size_t at);
  void TakeAll();
  WholeRate RoomOf(std::size_t open) const;
  void Give(std::size_t open, WholeRate rate);
  std::span<const std::uint32_t> LinksOf(std::size_t open) const;

  std::vector<WholeRate> rates_;
  std::vector<Use> uses_;

  std::vector<std::uint32_t> local_;  ///< By link: index into the arrays below, valid if `stamp_at_` is current.
  std::vector<std::uint64_t> stamp_at_;
  std::uint64_t stamp_ = 0;
  // By local link.
  std::vector<WholeRate> left_;
  std::vector<std::uint32_t> open_flows_;  ///< Flows not closed yet.
  std::vector<std::uint32_t> list_begin_;  ///< Into `list_`; one more than there are links.
  std::vector<std::uint32_t> list_;        ///< Open flows of each link, in order.
  std::vector<std::uint32_t> links_left_;  ///< Local links with open flows.
  // By open flow.
  std::vector<std::uint32_t> position_;    ///< In the caller's list.
  std::vector<std::uint32_t> hops_begin_;  ///< Into `hops_`; one more than there are flows.
  std::vector<std::uint32_t> hops_;        ///< Local links.
  std::vector<std::uint8_t> closed_;
};

}  // namespace weir::scheduler
