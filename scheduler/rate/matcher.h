#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::scheduler {

/// A flow as the matcher sees it. Flows of one group are given sorted by (source, destination), each pair once.
struct MatchFlow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::int64_t bytes = 0;
};

/// A flow that ended in an Advance().
struct EndedFlow {
  std::uint32_t group = 0;
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::int64_t bytes = 0;  ///< Its whole size.
};

/// Greedy matching of flows to ports: every port sends to, or receives from, one port at a time at full rate, all ports
/// equally fast. Groups (coflows, or parts of coflows) are served in a given order; a later group never takes a port
/// that an earlier one can use. Inside a group the ports with the largest key come first ("load-sorted port choice").
/// All arithmetic is exact: time is counted in the time a port needs for one byte, so an interval of n moves n bytes on
/// each matched pair.
///
/// Not for fabrics with unequal ports or inner links; there the fluid allocators apply.
/// Cost of Rematch: only ports freed since the last call are looked at, one pass over the group order and, for each
/// such port, one pass over a bit row (ports / 64 words) per group tried. No allocation once groups have been seen. Not
/// thread safe.
class Matcher {
 public:
  explicit Matcher(std::uint32_t ports);

  /// Returns the group's number; numbers of removed groups are used again.
  std::uint32_t AddGroup(std::span<const MatchFlow> flows);
  void RemoveGroup(std::uint32_t group);
  std::int64_t FlowsLeft(std::uint32_t group) const { return groups_[group].flows_left; }
  /// Pairs of this group that are being served now, i.e. bytes it moves per unit of time.
  std::int64_t Rate(std::uint32_t group) const { return groups_[group].pairs; }

  /// Sets who goes first. Everything is matched anew in the next Rematch.
  void SetOrder(std::span<const std::uint32_t> groups);

  /// Gives free ports to flows. `key_row[group] * 2 * ports` is where the group's keys start in `keys`: sources first,
  /// then destinations. Larger goes first, ties to the lower port.
  void Rematch(std::span<const std::int64_t> keys, std::span<const std::uint32_t> key_row);

  /// Time until the first matched flow ends; INT64_MAX when nothing is matched.
  std::int64_t NextEnd() const;

  /// Moves time on by `interval` <= NextEnd(). Calls moved(group, source, destination) for each matched pair, then
  /// fills ended().
  template <typename Moved>
  void Advance(std::int64_t interval, Moved&& moved) {
    ended_.clear();
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t bits = busy_source_[word]; bits != 0; bits &= bits - 1) {
        const auto source = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
        Held& held = held_[source];
        held.left -= interval;
        moved(held.group, source, held.destination, held.size - held.left);
        if (held.left == 0) {
          End(source);
        }
      }
    }
  }
  /// Calls visit(group, source, destination) for each matched pair, by source.
  template <typename Visit>
  void VisitPairs(Visit&& visit) const {
    for (std::size_t word = 0; word < words_; ++word) {
      for (std::uint64_t bits = busy_source_[word]; bits != 0; bits &= bits - 1) {
        const auto source = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
        visit(held_[source].group, source, held_[source].destination);
      }
    }
  }
  std::span<const EndedFlow> ended() const { return ended_; }
  void ForgetEnded() { ended_.clear(); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  /// Groups with at most so many flows left choose all their ports anew at every Rematch that concerns them: for them
  /// the largest-first choice decides the end, and it costs little. Larger ones only fill the ports that came free.
  static constexpr std::int64_t kRebuiltFlows = 2048;

  /// What a sending port is doing. `left` is kept here, not in the group, while the pair is served.
  struct Held {
    std::uint32_t group = kNone;
    std::uint32_t destination = 0;
    std::uint32_t flow = 0;
    std::int64_t left = 0;
    std::int64_t size = 0;
  };

  /// A port with its key; the one to be served first is the smaller.
  struct Ranked {
    std::int64_t key = 0;
    std::uint32_t port = 0;
    bool operator<(const Ranked& other) const { return key != other.key ? key > other.key : port < other.port; }
  };

  struct FlowBytes {
    std::int64_t left = 0;  // as of the last time it was not served
    std::int64_t size = 0;
  };

  struct Group {
    bool live = false;
    std::int64_t flows_left = 0;
    std::int64_t pairs = 0;
    std::vector<std::uint32_t> row_of_source, row_of_destination;  // by port; kNone: no flow there
    std::vector<std::uint32_t> first_flow;                         // by source row and word: flow of its first bit
    std::vector<FlowBytes> flows;
    std::vector<std::uint64_t> all_of_source;           // source row x words: destinations with a flow, ended or not
    std::vector<std::uint64_t> pending_of_source;       // the same, without the ended ones
    std::vector<std::uint64_t> pending_of_destination;  // destination row x words: sources
  };
  /// Which ports of a group a mask is of: those with any pending flow, and those that it is using.
  enum Ports : std::uint32_t { kSources, kDestinations, kHeldSources, kHeldDestinations, kMasks };

  std::uint64_t* Mask(std::uint32_t group, Ports ports) {
    return &masks_[(std::size_t{group} * kMasks + ports) * words_];
  }
  void IndexGroupRows(std::span<const MatchFlow> flows, std::uint32_t number);
  void End(std::uint32_t source);
  void Release(std::uint32_t source);
  void ReleaseAll(std::uint32_t number);
  struct Reach {
    bool open = false;    ///< Any freed port is left, for this group or a later one.
    bool useful = false;  ///< The group has a flow at one of them.
  };
  /// Takes the ports that the group holds from the free ones.
  Reach Pass(std::uint32_t number);
  void Fill(std::uint32_t number, const std::int64_t* keys);
  void Take(std::uint32_t number, std::uint32_t source, std::uint32_t destination);
  void CollectCandidates(std::uint32_t number, const std::int64_t* keys);
  std::uint32_t Best(const std::uint64_t* pending, const std::vector<std::uint64_t>& free,
                     const std::int64_t* keys) const;

  std::uint32_t ports_;
  std::size_t words_;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> masks_;  // of all groups side by side: every Rematch reads them in order
  std::vector<std::uint32_t> spare_groups_;
  std::vector<std::uint32_t> order_;
  std::vector<Held> held_;                // by source port
  std::vector<std::uint32_t> sender_to_;  // by destination port; kNone: idle
  std::vector<std::uint64_t> busy_source_;
  std::vector<std::uint64_t> dirty_source_, dirty_destination_;  // freed since the last Rematch
  std::vector<std::uint64_t> free_source_, free_destination_;    // scratch: not held by this or an earlier group
  std::vector<Ranked> candidates_;  // freed ports that have a flow to a free one: sources, and destinations + ports_
  std::vector<EndedFlow> ended_;
};

}  // namespace weir::scheduler
