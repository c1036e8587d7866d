#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/rate/bit_rows.h"
#include "scheduler/rate/fabric.h"
#include "scheduler/rate/matcher.h"

namespace weir::scheduler {

/// What progressive filling knows of every link of the fabric, by link.
struct FillingLinks {
  std::vector<double> room;          ///< Not given away yet.
  std::vector<double> weight;        ///< Of the flows that still grow.
  std::vector<std::uint32_t> flows;  ///< How many those are.
};

/// The flows of one coflow (or of a part that is served by itself), their bytes and their rates on a Fabric. Every flow
/// has one *owner*: the link that limits it, or none. Its rate is
///
///     bytes left x proportional() + level of its owner
///
/// The first part is what MADD gives (all flows end together), the second what max-min gives (all flows that one link
/// limits are equally fast). Bytes left are kept as scale x (x - service): `scale` belongs to the group and `service`
/// to the owner, so that moving time on costs O(links of the group), not O(flows), and a new level costs only the flows
/// whose owner changed. Rates hold until somebody changes them: between two changes a flow moves in a straight line.
///
/// Time is in ticks, rates in bytes per tick. Not thread safe; owned by the simulator. Memory is reused by Open().
class FlowGroup {
 public:
  /// Starts over with these flows (sorted, each pair once, bytes > 0), all at rate 0. `scratch` maps links to local
  /// ones and is as long as the fabric has links; all UINT32_MAX before and after.
  void Open(const Fabric& fabric, std::span<const MatchFlow> flows, std::int64_t now,
            std::vector<std::uint32_t>* scratch);

  std::size_t live() const { return live_; }  ///< Flows that have not ended.
  /// The links that any of its flows uses, ascending; the index into it is the "local link" of what follows.
  std::span<const std::uint32_t> links() const { return links_; }
  bool has_inner_links() const { return downlinks_end_ < links_.size(); }
  /// How many of them, from the first on, are links of ports.
  std::size_t port_links() const { return downlinks_end_; }
  std::size_t uplinks() const { return uplinks_; }                        ///< The first of those.
  std::uint32_t Count(std::size_t local) const { return count_[local]; }  ///< Live flows.
  double Load(std::size_t local) const { return load_[local]; }           ///< Bytes left as of the last Settle().
  double OpenLoad(std::size_t local) const { return open_load_[local]; }  ///< Bytes at Open().
  double Use(std::size_t local) const { return use_[local]; }             ///< Sum of rates.
  /// Bytes that all flows have left at a time not before the last Settle(), if rates hold until then.
  double TotalLeft(std::int64_t now) const {
    return finished_ ? 0 : std::max(0.0, left_ - rate_ * static_cast<double>(now - settled_at_));
  }
  double TotalOpen() const { return open_; }
  double TotalRate() const { return rate_; }

  std::size_t flows() const { return flow_.size(); }
  const MatchFlow& flow(std::size_t f) const { return flow_[f]; }
  bool Ended(std::size_t f) const { return owner_[f] == kEnded; }
  double Left(std::size_t f) const;  ///< As of the last Settle().
  double Rate(std::size_t f) const;
  /// Most bytes any flow that has not ended has sent, as of the last Settle(), when what ended by then was taken out.
  /// O(links), and O(flows) once in a while; from the first call on, rates cost a little more to set.
  double LargestSent();

  /// The first tick after the last Settle() at which a flow has sent `bytes` or more at the present rates, INT64_MAX if
  /// none will; sooner where flows have proportional parts, of which only a bound is known, but not by less than a
  /// thousandth of `bytes`. O(links), as LargestSent().
  std::int64_t WhenOneSent(double bytes);

  /// Moves time on to `now` at the present rates.
  void Settle(std::int64_t now);
  /// The tick at which the next flow ends at the present rates; INT64_MAX: none does. Ends are rounded up to ticks.
  std::int64_t NextEnd();
  /// Adds up Load() and Use() from the flows where a shared filling has left that to whoever needs them. O(flows) then.
  void RefreshSums();
  /// Takes out the flows that have no bytes left and appends them to `ended` with `group` as their group.
  void TakeEnded(std::uint32_t group, std::vector<EndedFlow>* ended);
  /// True since a flow ended, until the next filling.
  bool changed() const { return changed_; }

  // ---- For the allocators; all after Settle(). ----
  /// Forgets all rates and sets the proportional part: every live flow gets Left() x `per_tick`.
  void SetProportional(double per_tick);
  double proportional() const { return proportional_; }
  /// Drops all levels; every live flow is without an owner's rate, and every port open, until somebody closes it.
  void BeginFilling();
  /// Sets the rate of the growing flows of a port that is full, those whose other port is open: `rate` above their
  /// proportional part. Closes the port and calls take(first, bits) for the local links of their other ports, 64 at a
  /// time: a bit for each of `first` and those that follow. Not with inner links.
  template <typename Take>
  void ClosePort(std::uint32_t local, double rate, Take take);
  /// What the flows of a link use more than their proportional part.
  void AddUse(std::size_t local, double use) { use_[local] += use; }
  /// How many flows of a port that is open grow, in the same sense.
  std::uint32_t GrowingOfPort(std::uint32_t local) const {
    return local < uplinks_ ? live_pairs_.CountIn(local, open_down_.data())
                            : live_of_down_.CountIn(local - uplinks_, open_up_.data());
  }
  /// BeginFilling() without a proportional part and without sums: Load() and Use() hold again from RefreshSums() on.
  /// `by` is who does it; filled_by() says so until anybody else begins.
  void BeginSharedFilling(const void* by);
  const void* filled_by() const { return filled_by_; }
  /// Goes on with the last such filling, after ReopenPort() of the ports that are not settled.
  void ResumeFilling();
  void ReopenPort(std::uint32_t local);
  /// Local links of the flows that ended since then.
  struct EndedPair {
    std::uint32_t up, down, owner;
  };
  std::span<const EndedPair> ended_pairs() const { return ended_pairs_; }
  /// BeginFilling() for Freeze(), on any fabric.
  void BeginPathFilling();
  std::uint32_t Growing(std::size_t local) const { return growing_[local]; }
  /// The local links with growing flows at BeginPathFilling().
  std::span<const std::uint32_t> growing_links() const { return growing_links_; }
  /// Sets the rate of every growing flow that crosses one of the local links `full`, all of growing_links(): `rate`
  /// above its proportional part. `weight` is what each flow counts in links->weight. Takes what is given from
  /// links->room.
  void Freeze(std::span<const std::uint32_t> full, double rate, double weight, FillingLinks* links);
  /// Returns how many flows have another rate than before BeginFilling().
  std::size_t EndFilling();
  /// Gives flow f, which has no level yet and this path, `rate` by making `local`, a link of its path that owns no
  /// other flow, its owner.
  void Serve(std::size_t f, std::span<const std::uint32_t> path, std::size_t local, double rate);
  static constexpr std::uint32_t kNoFlow = UINT32_MAX;
  /// The flow between the local links of two ports; kNoFlow: there is none, or it has ended.
  std::uint32_t LiveFlow(std::uint32_t uplink, std::uint32_t downlink) const {
    const auto down = static_cast<std::uint32_t>(downlink - uplinks_);
    return live_pairs_.IsSet(uplink, down) ? FlowOf(uplink, down) : kNoFlow;
  }
  /// The local links of all ports, in the order in which an allocator has left them for itself; ascending at Open().
  std::span<std::uint32_t> port_order() { return port_order_; }
  /// What an allocator notes of the local links of all ports for itself; all 1 at Open().
  std::span<unsigned char> port_notes() { return port_notes_; }
  /// Which ports of the other side this one has live flows with, as bits, counted within that side.
  const std::uint64_t* LivePartners(std::uint32_t port) const {
    return port < uplinks_ ? live_pairs_.Row(port) : live_of_down_.Row(port - uplinks_);
  }
  /// The live flows of a link; drops ended ones from the list as it goes.
  std::span<const std::uint32_t> FlowsOf(std::size_t local);
  std::span<const std::uint32_t> PathOf(std::size_t f) const {
    return has_inner_links() ? std::span(path_.data() + path_begin_[f], path_begin_[f + 1] - path_begin_[f])
                             : std::span(path_.data() + 2 * f, 2);
  }
  /// Puts every flow back to no owner but those that `keeps` has at their owner's local link. O(flows with an owner).
  void DisownBut(std::span<const std::uint32_t> keeps);
  /// True if no flow ended and the room on its links is what NoteRoom() saw last: then the same rates would come out,
  /// and `room` is lowered by what they take.
  bool KeepRates(std::span<double> room) const;
  /// Notes the room on its links before (and after) rates were set; an empty span: forget it.
  void NoteRoom(std::span<const double> before);
  void NoteRoomLeft(std::span<const double> after);

 private:
  static constexpr std::uint32_t kEnded = UINT32_MAX;
  static constexpr std::uint32_t kNobody = UINT32_MAX;
  static constexpr double kTickSlack = 1e-4;   ///< Ends that far apart, in ticks, are the same.
  static constexpr double kByteSlack = 1e-12;  ///< Relative rounding of bytes left.
  static constexpr double kScaleMin = 1e-6;    ///< Below it, scale is brought back to 1.

  void IndexLinks(const Fabric& fabric, std::vector<std::uint32_t>* scratch);
  void IndexFlows();
  void IndexPairs();
  double OwnerLeft(std::size_t o) const { return scale_ * (least_[o] - service_[o]); }
  bool Done(double left, double rate, double x) const { return left <= kTickSlack * rate + kByteSlack * scale_ * x; }
  void Rescan(std::size_t o);
  void FindAllForemost();
  std::int64_t FindOneSent(double bytes);
  void FindForemost(std::size_t o);
  void CompareForemost(std::size_t o, std::uint32_t f);
  std::int64_t EndOf(std::size_t o);
  template <typename Visit>
  void ForOwned(std::size_t o, Visit visit);
  void Rescale();
  void Link(std::size_t f, std::uint32_t o);
  void Unlink(std::size_t f);
  void Move(std::size_t f, std::uint32_t o);
  void End(std::size_t f);
  void NoteOwner(std::size_t f, std::uint32_t o, bool owned);
  void StopFlowsOfPort(std::uint32_t local);
  void StopFlowsOfInner(std::uint32_t local);
  void TakeStopped(std::uint32_t local, std::uint32_t stopped, double rate, double weight, FillingLinks* links);
  void CountStopped(std::uint32_t up, std::uint32_t down);
  /// The flow from the `up`-th uplink to the `down`-th downlink of the group.
  std::uint32_t FlowOf(std::uint32_t up, std::uint32_t down) const { return first_flow_[up] + all_.Rank(up, down); }

  std::vector<MatchFlow> flow_;
  std::vector<std::uint32_t> path_begin_, path_;  // local links, by flow
  std::size_t live_ = 0;
  std::int64_t settled_at_ = 0;
  double scale_ = 1;
  double proportional_ = 0;
  bool finished_ = false;  // the proportional part has brought everything to an end
  bool changed_ = false;
  bool sums_known_ = true;
  const void* filled_by_ = nullptr;
  std::vector<EndedPair> ended_pairs_;  // while somebody has filled it
  bool idle_ = true;                    // every rate is 0
  bool ends_stale_ = true;              // ends_ are not known, nor the least of them
  std::int64_t next_end_ = 0;
  double left_ = 0, open_ = 0, rate_ = 0;  // of all flows

  // By flow. Those of an inner link or of nobody form a list, those of a port are bits.
  std::vector<double> x_;
  std::vector<std::uint32_t> owner_, next_, prev_;

  // By local link.
  std::vector<std::uint32_t> links_, count_, growing_, flows_begin_, flows_len_, flows_of_link_;
  std::vector<double> load_, open_load_, use_;
  std::vector<std::uint32_t> port_order_;
  std::vector<unsigned char> port_notes_;
  std::size_t uplinks_ = 0, downlinks_end_ = 0;  // local links [0, uplinks_) and [uplinks_, downlinks_end_)

  // By owner: local links, and one more that stands for none.
  std::vector<double> level_, old_level_, service_, least_;
  std::vector<unsigned char> stale_;  // least_ is not known
  std::vector<std::uint32_t> head_, owned_;
  std::vector<std::int64_t> ends_;  // when the first of its flows ends
  /// The flow that has sent most. A flow has sent bytes - scale x (x - service), so of two flows of one owner the same
  /// one is ahead until `scale`, which only falls, has fallen below the quotient of what they differ by.
  struct Foremost {
    std::uint32_t flow = kNoFlow;  // kNoFlow: not known
    double until = 0;              // not known at a scale below it
  };
  std::vector<Foremost> foremost_;  // empty until somebody asks for LargestSent()
  double x_max_ = 0;                // no flow has x - service above it
  double asked_bytes_ = -1;         // the last WhenOneSent(); < 0: to be found anew
  std::int64_t one_sent_ = 0;

  // Flows as bits, [uplink][downlink], and [downlink][uplink] where the name says so, both counted within the group: 64
  // of them are looked at at once.
  BitRows all_, live_pairs_, live_of_down_;  // as opened; not ended
  BitRows owned_by_up_, owned_by_down_;      // by the uplink [uplink][downlink], the downlink [downlink][uplink]
  std::vector<std::uint32_t> first_flow_;    // by uplink

  // Of a filling. A flow grows while both its ports are open and no inner link has stopped it.
  std::size_t moved_ = 0;
  std::vector<std::uint64_t> open_up_, open_down_;
  BitRows stopped_, stopped_of_down_;  // by inner links; empty without such
  std::vector<std::uint32_t> growing_links_;
  std::vector<std::uint32_t> stopping_;        // by local link, in one round
  std::vector<std::uint32_t> stopping_links_;  // those where it is not 0
  std::vector<double> room_seen_, room_left_;  // by local link; room_seen_ is empty when not known
};

template <typename Take>
void FlowGroup::ClosePort(std::uint32_t local, double rate, Take take) {
  const bool up = local < uplinks_;
  const auto row = static_cast<std::uint32_t>(up ? local : local - uplinks_);
  const std::uint64_t* live = up ? live_pairs_.Row(row) : live_of_down_.Row(row);
  const std::uint64_t* owned = up ? owned_by_up_.Row(row) : owned_by_down_.Row(row);
  const std::vector<std::uint64_t>& open = up ? open_down_ : open_up_;
  const auto other_side = static_cast<std::uint32_t>(up ? uplinks_ : 0);
  for (std::size_t word = 0; word < open.size(); ++word) {
    const std::uint64_t growing = live[word] & open[word];
    const auto base = static_cast<std::uint32_t>(word * 64);
    take(other_side + base, growing);
    ForBits(growing & ~owned[word], base,
            [&](std::uint32_t column) { Move(up ? FlowOf(row, column) : FlowOf(column, row), local); });
  }
  level_[local] = rate;
  idle_ = idle_ && rate <= 0;
  (up ? open_up_ : open_down_)[row / 64] &= ~(std::uint64_t{1} << (row % 64));
}

}  // namespace weir::scheduler
