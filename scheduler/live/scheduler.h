#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "scheduler/live/allocation.h"
#include "scheduler/live/fabric.h"
#include "scheduler/live/falling_keys.h"
#include "scheduler/live/fill.h"
#include "scheduler/live/link_queues.h"
#include "scheduler/live/ranked_order.h"
#include "scheduler/live/sweep.h"

namespace weir::scheduler {

struct LiveOptions {
  LiveKey key = LiveKey::kSebf;
  LiveRates rates = LiveRates::kMaxMin;
  LiveLimits limits;
};

/// The decision for a whole cluster, kept up to date event by event: coflows in order, and in that order each takes
/// from the links what those in front left, so nobody is delayed by who comes behind and no link stays idle that a flow
/// could use. Events are announced one by one and take effect together with the next Update: the order is repaired
/// where keys changed, and rates are computed anew only for coflows that can be concerned. Update and Recompute give
/// the same rates, in every bit.
///
/// For coordinators and simulators that keep one state for long; `order/` sorts tables from scratch. Pure: no clock,
/// IO, threads. All memory is taken in Make; steady running allocates nothing (refusals do, for their message). Thread:
/// one at a time.
///
/// Cost at 2,000 links, 10,000 coflows, 100,000 flows: docs/scale.md.
class LiveScheduler {
 public:
  /// `capacity` in bytes/s by link. InvalidArgument for a capacity or limit out of range.
  static Result<std::unique_ptr<LiveScheduler>> Make(std::span<const WholeRate> capacity, const LiveOptions& options);
  LiveScheduler(std::span<const WholeRate> capacity, const LiveOptions& options);  ///< Of valid values; see Make.
  LiveScheduler(const LiveScheduler&) = delete;
  LiveScheduler& operator=(const LiveScheduler&) = delete;

  /// The slot stands for the coflow until RemoveCoflow; fabric().Flows(slot) has the indices of its flows, in the order
  /// given. InvalidArgument or ResourceExhausted with the values.
  Result<CoflowSlot> AddCoflow(const LiveCoflow& coflow);
  /// With the flows it still has. NotFound for a slot not in use; the same for flows below.
  Status RemoveCoflow(CoflowSlot slot);
  /// The flow is done. Its coflow stays, even without flows.
  Status EndFlow(FlowIndex flow);
  Status SetRemaining(FlowIndex flow, std::int64_t bytes);  ///< What a report says is left.
  Status SetKey(CoflowSlot slot, double key);               ///< Of `given`; finite.
  Status SetCapacity(LinkIndex link, WholeRate capacity);   ///< 0: the link is down.
  /// For so long, >= 0, flows move at the rates of the last Update. fabric().Remaining tells what they have left, whole
  /// bytes, never below 0, the same for many steps as for one. Ends no flow. O(1): the order follows in Update.
  void Advance(Nanoseconds duration) { fabric_.Advance(duration); }

  /// Makes order and rates true again after what was announced.
  void Update();
  /// The same from nothing but the fabric: every key, the whole order, all rates.
  void Recompute();

  const LiveFabric& fabric() const { return fabric_; }
  /// Since the last Update or Recompute: slots, most urgent first.
  std::span<const CoflowSlot> order() const { return order_.order(); }
  /// Flows whose rate the last Update or Recompute changed; the rate is fabric().rate[flow]. May name a flow twice.
  std::span<const FlowIndex> changed() const { return allocation_.changed(); }
  /// Coflows with a flow whose rate is above 0, in no order.
  std::span<const CoflowSlot> served() const { return allocation_.served(); }
  /// Who uses which link, and who waits there behind whom.
  const LinkQueues& queues() const { return queues_; }
  /// What the last Update that repaired had to do.
  const Sweep::Work& work() const { return sweep_.work(); }

 private:
  enum class Place : std::uint8_t { kNone, kWaiting, kPlaced };

  void Mark(CoflowSlot slot);
  void MarkOnLink(LinkIndex link, WholeRate capacity);
  bool RepairOrder();
  void FindOvertakers();
  bool HasOvertaken(CoflowSlot slot);
  bool CarryOvertakers();
  void SortMarks();
  bool CarryAfterFall();
  bool CarryAfterRise();
  bool Carry(std::size_t from, std::size_t to);
  bool FindMeetings(std::size_t from, std::size_t to);
  bool CarryOnLink(const LiveFabric::Row& row, CoflowSlot slot, std::uint64_t label, bool alone);
  void Unplace(CoflowSlot slot);
  void GiveUp(LinkIndex link, CoflowSlot slot);
  bool PlaceAll();
  void RelabelIfWanted();
  void ComputeAll();
  void EndLines();
  bool ManyWait() const;

  LiveOptions options_;
  LiveFabric fabric_;
  FallingKeys keys_;
  RankedOrder order_;
  LinkQueues queues_;
  Allocation allocation_;
  RateFill fill_;
  Sweep sweep_;
  std::vector<Place> place_;          ///< By slot.
  std::vector<std::uint8_t> marked_;  ///< By slot: its key may have changed.
  std::vector<CoflowSlot> marks_;
  Nanoseconds ordered_at_ = 0;          ///< The order has what moved until then.
  std::vector<CoflowSlot> overtakers_;  ///< Who is no longer behind the one in front.
  std::vector<CoflowSlot> falling_;     ///< Its key became smaller by an event.
  std::vector<CoflowSlot> rising_;
  std::vector<double> new_key_;         ///< By slot, of those.
  std::uint32_t moves_ = 0;             ///< Of this repair, past somebody met on a link.
  std::vector<std::uint64_t> crossed_;  ///< By link: number of the last move past a coflow that crosses it.
  std::uint64_t move_ = 0;
  std::vector<CoflowSlot> waiting_;  ///< To be put into the order.
  std::vector<WholeRate> room_;      ///< Of Recompute.
};

}  // namespace weir::scheduler
