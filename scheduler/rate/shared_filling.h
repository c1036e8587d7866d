#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/rate/allocator.h"
#include "scheduler/rate/port_shares.h"

namespace weir::scheduler {

/// Weighted max-min over the flows of many groups that use no inner links, again and again: what ProgressiveFilling
/// does, but it goes on from the last time. A filling is a list of rounds, each of which closes the ports that are
/// full. When flows have ended since, and nothing else is new, then all rounds before the first one in which a port of
/// such a flow closed come out as they did: the flow was growing there, so that its ports have more for each of the
/// others now, and they were not the least before. Fast flows end soonest and are in the last rounds, so most is kept.
///
/// Weights count in steps, so fine that the sum over all flows just has 52 bits and is exact: of a million flows none
/// has a weight that is wrong by more than 2^-31 of the largest.
///
/// O(rounds x ports + flows) from the round on that is the first to differ; 16 bytes x rounds x ports of memory. Levels
/// only: the groups have no proportional part, and their sums are left to FlowGroup::RefreshSums(). Thread: one at a
/// time.
class SharedFilling {
 public:
  /// Sets the rates of the groups and lowers `room`, by link; room below `full_below` counts as none. Returns how many
  /// flows have another rate than before.
  std::size_t Fill(std::span<const RankedGroup> groups, std::span<double> room, std::span<const double> full_below);

 private:
  struct Entry {
    std::uint32_t place, local;  // of the group and in it
  };
  /// Where ports of a group are that follow each other in it.
  struct Stretch {
    std::uint32_t first;       // position
    std::uint64_t ports_here;  // a bit for it and each of the next 63
  };

  bool IsTheSame(std::span<const RankedGroup> groups, std::span<const double> room) const;
  void Start(std::span<const RankedGroup> groups, std::span<const double> room, std::span<const double> full_below);
  void PlaceLinks(std::size_t links);
  void PlaceBlocks(std::span<const std::uint32_t> positions);
  void CountSteps();
  void EnterFlows();
  std::size_t FirstRoundThatDiffers() const;
  void TakeOutEnded(std::size_t rounds);
  void GoBackTo(std::size_t round);
  void RunRounds();
  void Close(std::uint32_t position, double share);
  void Take(std::size_t place, std::uint32_t first, std::uint64_t bits, double rate);
  std::span<const Entry> EntriesOf(std::uint32_t position) const {
    return std::span(entries_).subspan(first_entry_[position], first_entry_[position + 1] - first_entry_[position]);
  }
  std::uint32_t PositionOf(std::size_t place, std::uint32_t local) const { return position_[begin_[place] + local]; }

  // Of the last filling.
  std::vector<RankedGroup> groups_;
  std::vector<double> steps_;       // weight, by place
  std::vector<double> room_given_;  // by position
  std::vector<std::uint32_t> links_, position_of_link_;
  std::vector<std::uint32_t> begin_, position_;  // positions of each group's local links, one group after the other
  std::vector<std::uint32_t> first_block_;       // by place, of 64 ports each of one side of the group
  std::vector<std::uint32_t> first_stretch_;     // by block
  std::vector<Stretch> stretches_;
  std::vector<Entry> entries_;            // of each position, in order of places
  std::vector<std::size_t> first_entry_;  // by position, and one more
  std::vector<std::size_t> rounds_;       // the first of each one's closings
  std::vector<double> rooms_, weights_;   // of shares_ before each round, by round and position
  std::vector<std::uint32_t> closings_;   // positions in the order in which they closed
  std::vector<std::uint32_t> closed_in_;  // round, by position

  PortShares shares_;  // weights in steps
};

}  // namespace weir::scheduler
