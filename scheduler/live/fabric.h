#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "coflow/ids.h"
#include "coflow/status.h"
#include "coflow/units.h"
#include "scheduler/live/chunk_pool.h"
#include "scheduler/share/max_min.h"

namespace weir::scheduler {

/// Dense indices, used again after their coflow or flow has gone.
using CoflowSlot = std::uint32_t;
using FlowIndex = std::uint32_t;

/// Whole bytes per second. Sums of whole numbers do not depend on the order of adding, which is what lets a repaired
/// allocation equal a fresh one in every bit, and makes "full" mean exactly 0 left.
using WholeRate = std::int64_t;

/// What the tables hold at most; all memory for it is taken at construction.
struct LiveLimits {
  std::uint32_t coflows = 16'384;
  std::uint32_t flows = 262'144;
  std::uint32_t hops = 2;  ///< Links of a flow's path in the mean; longer paths are allowed.
};

inline constexpr WholeRate kMaxLiveCapacity = 125'000'000'000'000;      ///< Bytes/s; 1 Pbit/s.
inline constexpr std::int64_t kMaxCoflowBytes = std::int64_t{1} << 62;  ///< All flows of a coflow together.

struct LiveFlow {
  std::int64_t bytes = 0;           ///< Left to send, >= 0.
  std::span<const LinkIndex> path;  ///< At least one link, none twice. Copied.
};

struct LiveCoflow {
  CoflowId id;              ///< Breaks ties; not looked at otherwise.
  Nanoseconds arrival = 0;  ///< Breaks ties before the id; the key of `fifo`.
  double key = 0;           ///< The key of `given`.
  std::span<const LiveFlow> flows;
};

/// The links, coflows and flows of a fabric that is running: one array per property, and sparse rows: a coflow has an
/// entry for each link it touches and none for others. On a big switch of P ports, link p is the uplink of port p and
/// link P + p its downlink. Pure data: LiveScheduler owns one and keeps it true; others read.
///
/// Time passes without a touch to any flow: what those of a coflow have left, and the sums of it, are as of the moment
/// when they were last settled, and their rates say the rest. Before a rate changes the coflow is settled. Parts of a
/// byte are kept, so what is left does not depend on how often that was done.
///
/// Memory: 36 bytes a flow, 8 a link of its path, 16 for each link that a coflow touches; chunks are up to half empty.
/// Thread: one at a time.
struct LiveFabric {
  struct Hop {
    LinkIndex link = 0;
    std::uint32_t row = 0;  ///< Entry of the coflow's row for that link.
  };
  struct Row {
    LinkIndex link = 0;
    std::uint32_t flows = 0;  ///< Of this coflow on this link, not ended. May fall to 0.
    std::int64_t load = 0;    ///< Bytes they had left when the coflow was settled.
  };
  static_assert(sizeof(Hop) == 8 && sizeof(Row) == 16);

  /// `capacity` in bytes/s, one per link; call ValidCapacity first.
  LiveFabric(std::span<const WholeRate> capacities, const LiveLimits& table_limits);

  /// InvalidArgument with the values unless 0 <= capacity <= kMaxLiveCapacity.
  static Status ValidCapacity(LinkIndex link, WholeRate value);
  /// InvalidArgument or ResourceExhausted if the coflow cannot be added.
  Status ValidCoflow(const LiveCoflow& coflow);

  CoflowSlot Add(const LiveCoflow& coflow);  ///< Must be valid.
  void Remove(CoflowSlot slot);
  void RemoveFlow(FlowIndex flow);
  /// Sets what a flow has left, and the rows with it. Settles its coflow.
  void SetRemaining(FlowIndex flow, std::int64_t bytes);
  /// Of all flows that have a rate. Nothing falls below 0, and nothing ends.
  void Advance(Nanoseconds duration);
  /// Writes down what the flows of a coflow have left now, and the sums of it.
  void Settle(CoflowSlot slot);
  /// To be called when flows of the coflow have got their first rate, or lost their last; it is settled then.
  void SetMoving(CoflowSlot slot, bool moves) { as_of[slot] = moves ? std::min(as_of[slot], now) : kAlways; }
  bool IsMoving(CoflowSlot slot) const { return as_of[slot] != kAlways; }
  std::int64_t Remaining(FlowIndex flow) const;  ///< Bytes that a flow has left now.

  bool IsLive(CoflowSlot slot) const { return slot < live.size() && live[slot] != 0; }
  bool IsFlow(FlowIndex flow) const { return flow < coflow_of.size() && coflow_of[flow] != kNobody; }
  std::span<const FlowIndex> Flows(CoflowSlot slot) const { return flow_lists.Of(flows_of[slot]); }
  std::span<const Row> Rows(CoflowSlot slot) const { return rows.Of(rows_of[slot]); }
  std::span<const Hop> Path(FlowIndex flow) const { return hops.Of(path_of[flow]); }
  /// Of coflows that are visited one after the other, in an order that memory does not have: asks for what the next
  /// ones need, each a step nearer than the last time. To be called at each of them.
  void Prefetch(std::span<const CoflowSlot> visits) const;
  void PrefetchPathsOf(CoflowSlot slot) const;  ///< Where they lie,
  void PrefetchPaths(CoflowSlot slot) const;    ///< and then themselves; of a coflow's first flows.
  std::uint32_t links() const { return static_cast<std::uint32_t>(capacity.size()); }
  struct Busiest {
    double seconds = 0;     ///< That the link needs for what is left, on full capacity (Gamma of Varys, section 4).
    std::uint32_t row = 0;  ///< Of the coflow; the first of several.
  };
  Busiest BusiestLink(CoflowSlot slot) const;
  double SecondsOf(const Row& row) const { return static_cast<double>(row.load) * seconds_per_byte[row.link]; }
  void SetCapacity(LinkIndex link, WholeRate value);
  static double SecondsPerByte(WholeRate value);  ///< Of a link of this capacity.

  static constexpr CoflowSlot kNobody = std::numeric_limits<CoflowSlot>::max();
  static constexpr Nanoseconds kAlways = std::numeric_limits<Nanoseconds>::max();

  LiveLimits limits;
  Nanoseconds now = 0;  ///< Time that has passed so far.
  std::uint32_t coflow_count = 0;
  std::uint32_t flow_count = 0;
  std::uint32_t longest_path = 0;  ///< Links of the longest path that any flow ever had.

  // By link.
  std::vector<WholeRate> capacity;
  std::vector<double> seconds_per_byte;  ///< 1e100 on a link without capacity: behind everything that can move.

  // By slot.
  std::vector<std::uint8_t> live;
  std::vector<CoflowId> id;
  std::vector<Nanoseconds> arrival;
  std::vector<double> given_key;
  std::vector<std::int64_t> bytes_left;  ///< Of all its flows, when it was settled.
  std::vector<Nanoseconds> as_of;        ///< When it was settled; kAlways: none of its flows has a rate.
  std::vector<Chunk> flows_of;           ///< In `flow_lists`, in the order they were given.
  std::vector<Chunk> rows_of;            ///< In `rows`.

  // By flow.
  std::vector<CoflowSlot> coflow_of;      ///< kNobody: the index is free.
  std::vector<std::int64_t> remaining;    ///< When its coflow was settled; see Remaining.
  std::vector<std::uint32_t> moved_part;  ///< 1e-9 bytes that had moved beyond.
  std::vector<WholeRate> rate;
  std::vector<Chunk> path_of;  ///< In `hops`.

  ChunkPool<FlowIndex> flow_lists;
  ChunkPool<Row> rows;
  ChunkPool<Hop> hops;

 private:
  Status ValidFlow(const LiveFlow& flow, std::size_t position);
  void AddFlow(CoflowSlot slot, const LiveFlow& flow);
  struct Left {
    std::int64_t bytes = 0;
    std::uint32_t moved_part = 0;
  };
  Left LeftAfter(FlowIndex flow, Nanoseconds duration) const;
  void ChangeRemaining(FlowIndex flow, const Left& left);

  std::vector<CoflowSlot> free_slots_;
  std::vector<FlowIndex> free_flows_;
  std::vector<std::uint64_t> seen_;       ///< Per link: stamp of the path or coflow that last touched it.
  std::vector<std::uint32_t> row_index_;  ///< Per link: entry in the row of the coflow that is being added.
  std::uint64_t stamp_ = 0;
};

}  // namespace weir::scheduler
