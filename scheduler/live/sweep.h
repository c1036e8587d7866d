#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "scheduler/live/allocation.h"
#include "scheduler/live/fill.h"
#include "scheduler/live/link_queues.h"

namespace weir::scheduler {

/// Repairs an in-order allocation after changes: goes once through the order, from the first change on, and visits only
/// coflows whose rates can have changed.
///
/// A coflow's rates depend on what those in front leave on its links, and on nothing else. So a change goes backwards
/// along the links only. A link is *open* from the position where what is left of it differs from before until it
/// differs no more; on an open link the sweep stops at
///   - those that use it now or did before, and
///   - where nothing was left of it before, those that have a flow on it all of whose other links had or have something
///     left. Where something was left, a flow that got nothing was kept from it by another link, and is found there.
/// A coflow at which all open links stop that were no bottleneck for it and are none is passed, not visited: its rates
/// are what its bottlenecks make them.
/// Where links are contended few have such a flow, and most stops are found by reading the link's queue and one number
/// for each other link of a flow (LinkQueues::full_from).
///
///   order:   a   b   c   d   e   f          link 1: open from b on, the change: b has gone
///   link 1:      x-------u-----------       u: d uses what b left; if it takes all of it, the link closes there
///   link 2:              u------u----       opened by d's visit, closes at f
///
/// Changes are announced while they are made (Touch before a link's users or capacity change, Seed, Force); Run
/// repairs. Result: exactly what a fresh allocation in the same order gives. Cost: O(visits * links of the coflow +
/// entries read). Thread: one at a time.
class Sweep {
 public:
  struct Work {
    std::uint64_t visits = 0;   ///< Coflows whose rates were computed.
    std::uint64_t entries = 0;  ///< Queue entries read.
  };

  /// All must outlive this.
  Sweep(LiveFabric* fabric, const RankedOrder& order, LinkQueues* queues, Allocation* allocation, RateFill* fill);

  /// Keeps what the link had and who used it.
  void Touch(LinkIndex link);
  /// From the label on, what is left of the link may differ. Touch comes first.
  void Seed(LinkIndex link, std::uint64_t label);
  /// Whether the link was touched, and somebody with a label from `front` to `back` used it until then.
  bool WasUsedBetween(LinkIndex link, std::uint64_t front, std::uint64_t back) const;
  /// Visit this coflow: it is new in its place, or its flows changed.
  void Force(CoflowSlot slot);
  /// False if it gave up after `most_visits`: rates and queues are then half repaired, and everything must be computed
  /// anew.
  bool Run(LiveRates how, std::uint64_t most_visits);
  /// Forgets what was announced, because everything was computed anew.
  void Reset();

  const Work& work() const { return work_; }

 private:
  static constexpr LinkIndex kForced = std::numeric_limits<LinkIndex>::max();
  static constexpr std::uint32_t kNotRead = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t kSeeded = std::numeric_limits<std::uint32_t>::max();

  struct Before {
    std::uint64_t label = 0;
    WholeRate rate = 0;
    CoflowSlot slot = 0;
  };
  struct LinkState {
    std::uint64_t touched = 0;  ///< Number of the sweep for which `before` is kept.
    std::uint32_t before_begin = 0;
    std::uint32_t before_count = 0;
    std::uint32_t before_next = 0;  ///< The first that is not yet taken off `before_left`.
    std::uint32_t version = 0;      ///< Stops of other versions are void.
    WholeRate before_capacity = 0;
    WholeRate before_left = 0;  ///< While open: behind the last stop.
    WholeRate left = 0;
    WholeRate stop_use = 0;     ///< Of the user that the next stop is at; 0: it is at none.
    std::uint32_t stop_at = 0;  ///< Entry of the queue's head where the last search for a flow ended, or kNotRead.
    bool open = false;
  };
  struct Stop {
    std::uint64_t label = 0;
    CoflowSlot slot = 0;  ///< kNobody: where somebody was.
    LinkIndex link = 0;   ///< Or kForced.
    std::uint32_t version = 0;
  };

  void Start();
  void Finish();
  void Push(const Stop& stop);
  Stop Pop();
  void TakeAllAt(std::uint64_t label);
  bool IsUnconcerned(const Stop& stop) const;
  void Take(const Stop& stop);
  void Visit(CoflowSlot slot);
  WholeRate RoomAt(LinkIndex link, std::uint64_t label) const;
  std::optional<WholeRate> UseOf(const RateFill::Use& before) const;
  void Pass(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> use);
  void Open(LinkIndex link, std::uint64_t label);
  void GoOn(LinkIndex link, std::uint64_t label);
  void TakeOffBefore(LinkState* state, std::uint64_t label) const;
  void FindStop(LinkIndex link, std::uint64_t label);
  bool FindFlow(LinkIndex link, std::uint64_t label, std::uint64_t end);
  CoflowSlot OwnerOf(LinkIndex link, const Before& before) const;
  bool CanRun(FlowIndex flow, std::uint64_t label) const;

  LiveFabric& fabric_;
  const RankedOrder& order_;
  LinkQueues& queues_;
  Allocation& allocation_;
  RateFill& fill_;
  LiveRates how_ = LiveRates::kMaxMin;
  std::uint64_t number_ = 1;      ///< Of the sweep that is announced or runs.
  std::vector<LinkState> state_;  ///< By link.
  std::vector<Before> before_;    ///< Users as they were, of all touched links.
  std::vector<LinkIndex> touched_;
  std::vector<Stop> seeds_;
  std::vector<CoflowSlot> forced_;
  std::vector<std::uint64_t> visited_;  ///< By slot: number of the last sweep that did.
  std::vector<Stop> heap_;              ///< Smallest label first.
  std::vector<Stop> unconcerned_;       ///< Of the label that is looked at.
  std::vector<WholeRate> room_;         ///< By link, valid for the coflow that is visited.
  std::vector<RateFill::Use> found_;    ///< Its links that are not full in front of it, with what is left there.
  Work work_;
};

}  // namespace weir::scheduler
