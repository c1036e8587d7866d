#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "scheduler/rate/allocator.h"
#include "scheduler/rate/port_filling.h"
#include "scheduler/rate/shared_filling.h"

namespace weir::scheduler {

/// Weighted max-min over the flows of one or more groups, on the room that is left of each link: all flows grow in
/// proportion to their weights until a link is full, and its flows stop. Exact up to rounding: every flow crosses a
/// full link on which none has a larger rate for its weight. Unlike MaxMin it knows groups of up to some ten thousand
/// flows and costs O(rounds x links + flows that stop one by one): links that stop all flows of a group at once, the
/// usual case in a shuffle, do it without a look at the flows.
///
/// Keeps scratch memory. Thread: one at a time.
class ProgressiveFilling {
 public:
  /// Starts an allocation: everything is free.
  void Open(std::span<const double> capacity);
  std::span<const double> room() const { return links_.room; }
  void Take(std::uint32_t link, double rate) { links_.room[link] = std::max(0.0, links_.room[link] - rate); }

  /// Gives the growing flows of these groups their share, above what is proportional, and lowers room(). Returns how
  /// many flows have another rate than before.
  std::size_t Fill(std::span<const RankedGroup> groups);
  /// The same for one group, which is left alone if no flow of it ended and the room on its links is what it was at the
  /// last call. Not with a proportional part.
  std::size_t FillIfChanged(const RankedGroup& group);
  /// As Fill(), for groups without inner links and without a proportional part, going on from what `last` did before.
  std::size_t FillShared(std::span<const RankedGroup> groups, SharedFilling* last);

 private:
  void FillPaths(std::span<const RankedGroup> groups);
  void Enter(std::size_t place, const RankedGroup& ranked);
  void EnterLink(std::uint32_t link, std::uint32_t flows, double weight);
  double LowestShare();
  void MarkFull(double share);
  void CollectFull();

  PortFilling ports_;  // of one group without inner links
  FillingLinks links_;
  std::vector<double> full_below_;      // by link: less room than this counts as none
  std::vector<std::uint32_t> touched_;  // links with growing flows
  std::vector<double> share_;           // by position in touched_
  std::vector<std::uint32_t> marked_;   // links full in this round
  std::vector<double> before_;          // scratch of FillIfChanged()

  // The local links of each link, as lists.
  struct Entry {
    std::uint32_t place;  // of the group
    std::uint32_t local;
    std::uint32_t next;
  };
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> first_entry_;           // by link; kNoEntry: none
  std::vector<std::vector<std::uint32_t>> full_of_;  // by place: the local links that are full in this round
  std::vector<std::uint32_t> concerned_;             // places with any
};

}  // namespace weir::scheduler
