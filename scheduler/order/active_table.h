#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::scheduler {

/// The coflows that are running now, as the orders see them: dense rows ("slots"), one array per property. A slot is
/// used again after its coflow left. Links are the fabric's directed links: of P ports, link p is the uplink of port p,
/// link P + p its downlink, and the rest are inner links. Pure data, no invariants of its own beyond the sizes; the
/// engine that owns it keeps it true.
///
/// The first block is what a scheduler with known sizes may read, the second what can be observed without them.
class ActiveTable {
 public:
  /// `links` >= 2 x `ports`.
  ActiveTable(std::uint32_t links, std::uint32_t ports);
  explicit ActiveTable(std::uint32_t links) : ActiveTable(links, links / 2) {}

  /// A cleared row for a new coflow.
  std::uint32_t AddSlot();
  void FreeSlot(std::uint32_t slot);

  std::uint32_t links() const { return links_; }
  std::uint32_t ports() const { return ports_; }
  std::span<const std::uint32_t> live() const { return live_; }

  std::span<std::int64_t> Load(std::uint32_t slot) { return Row(&load, slot); }
  std::span<const std::int64_t> Load(std::uint32_t slot) const { return Row(load, slot); }
  std::span<const std::int64_t> FlowsLeft(std::uint32_t slot) const { return Row(flows_left, slot); }
  std::span<const std::int64_t> Attained(std::uint32_t slot) const { return Row(attained, slot); }
  std::span<const std::int64_t> EndedBytes(std::uint32_t slot) const { return Row(ended_bytes, slot); }
  std::span<const std::int64_t> EndedFlows(std::uint32_t slot) const { return Row(ended_flows, slot); }
  std::span<const std::int64_t> FlowsAtArrival(std::uint32_t slot) const { return Row(flows_at_arrival, slot); }
  std::span<const std::int64_t> PilotBytes(std::uint32_t slot) const { return Row(pilot_bytes, slot); }
  std::span<const std::int64_t> PilotFlows(std::uint32_t slot) const { return Row(pilot_flows, slot); }
  std::span<std::int64_t> FlowsLeft(std::uint32_t slot) { return Row(&flows_left, slot); }
  std::span<std::int64_t> Attained(std::uint32_t slot) { return Row(&attained, slot); }
  std::span<std::int64_t> EndedBytes(std::uint32_t slot) { return Row(&ended_bytes, slot); }
  std::span<std::int64_t> EndedFlows(std::uint32_t slot) { return Row(&ended_flows, slot); }
  std::span<std::int64_t> FlowsAtArrival(std::uint32_t slot) { return Row(&flows_at_arrival, slot); }
  std::span<std::int64_t> PilotBytes(std::uint32_t slot) { return Row(&pilot_bytes, slot); }
  std::span<std::int64_t> PilotFlows(std::uint32_t slot) { return Row(&pilot_flows, slot); }

  // By link: time one byte takes. 1.0 everywhere when time is counted in byte times of equal ports.
  std::vector<double> time_per_byte;

  // By slot: identity and what is known at arrival.
  std::vector<std::uint64_t> id;
  std::vector<std::uint64_t> kin;  ///< The same for coflows of one job with flows between the same ports; 0: of no job.
  std::vector<std::int64_t> arrival;
  std::vector<std::int64_t> deadline;  ///< Absolute; INT64_MAX: none.
  std::vector<double> weight;
  std::vector<std::int64_t> width;        ///< Flows.
  std::vector<std::int64_t> narrow_side;  ///< min(mappers, reducers)
  std::vector<std::int64_t> wide_side;    ///< max(mappers, reducers)

  // By slot: only with known sizes.
  std::vector<std::int64_t> bytes_left;
  std::vector<std::int64_t> longest_flow;  ///< Of the whole coflow, as it arrived.
  std::vector<double> isolation;           ///< Its time on an empty fabric, as it arrived.
  // By slot and link: bytes left.
  std::vector<std::int64_t> load;

  // By slot: what can be observed without known sizes.
  std::vector<std::int64_t> bytes_sent;
  std::vector<std::int64_t> largest_seen;  ///< Most bytes any one flow, or any pilot, has sent so far.
  std::vector<std::int64_t> pilots_left;   ///< Pilot flows that have not ended.
  std::vector<std::int64_t> flows_ended;   ///< Grows whenever a flow ends, so it says whether flows_left has changed.
  std::vector<double> ended_squares;       ///< Sum of the squared bytes of the flows that ended.
  std::vector<double> pilot_squares;       ///< The same of the pilots alone.
  // By slot and link: flows not ended; bytes sent; bytes and number of the flows that ended.
  std::vector<std::int64_t> flows_left, attained, ended_bytes, ended_flows;
  // By slot and link: flows of the whole coflow; bytes and number of the pilots that ended.
  std::vector<std::int64_t> flows_at_arrival, pilot_bytes, pilot_flows;

 private:
  std::span<std::int64_t> Row(std::vector<std::int64_t>* v, std::uint32_t slot) const {
    return {v->data() + std::size_t{slot} * links_, links_};
  }
  std::span<const std::int64_t> Row(const std::vector<std::int64_t>& v, std::uint32_t slot) const {
    return {v.data() + std::size_t{slot} * links_, links_};
  }

  std::uint32_t links_;
  std::uint32_t ports_;
  std::vector<std::uint32_t> live_;
  std::vector<std::uint32_t> spare_;
};

}  // namespace weir::scheduler
