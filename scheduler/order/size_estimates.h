#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/order/active_table.h"
#include "scheduler/order/job_history.h"
#include "scheduler/order/order.h"

namespace weir::scheduler {

/// Flows that have ended, as a sample of a coflow: bytes and number by link, and the sum of the squared bytes. Every
/// flow ends at one receiver, so the downlink half of a row holds each flow once.
struct FlowSample {
  std::span<const std::int64_t> bytes, flows;
  double squares = 0;
  std::size_t ports = 0;

  static FlowSample Ended(const ActiveTable& table, std::uint32_t slot) {
    return {table.EndedBytes(slot), table.EndedFlows(slot), table.ended_squares[slot], table.ports()};
  }
  static FlowSample Pilots(const ActiveTable& table, std::uint32_t slot) {
    return {table.PilotBytes(slot), table.PilotFlows(slot), table.pilot_squares[slot], table.ports()};
  }
};

struct SampleMoments {
  double sum = 0, count = 0;
  double count_squares = 0;  ///< Of the flows at each receiver.
  double receivers = 0;      ///< With any flow of the sample.
  double explained = 0;      ///< Sum over receivers of (bytes squared / flows).
  double within = 0;         ///< Variance of the flows of one receiver; 0 where no receiver has two.

  double mean() const { return count > 0 ? sum / count : 0; }
  bool TellsSpread() const { return count > receivers; }
};

SampleMoments Moments(const FlowSample& sample);

/// What coflows of unknown sizes are thought to have left, by port, from what was seen of them and of earlier coflows
/// of their job. Every ended flow sharpens the estimate: a receiver's flows are taken to be like its ended ones, pulled
/// towards the coflow's mean with the weight of `shrink` flows. One ended flow says everything about a receiver under
/// an even split and little under a skewed one, so by default that weight is measured (see SpreadRatio).
///
/// Flows that share a link end shortest first: those that have ended are then too small a guess for the rest, and a
/// coflow is thought to be nearly done while its long flows have hardly begun. So where flows share
/// (OrderOptions::sample), sizes are learnt from the pilots alone, which were chosen before anybody knew, and what a
/// receiver has left is the whole of its flows less what has arrived, ended or not.
///
/// One object serves one thread. No allocation once the largest table has been seen, but for Learn().
class SizeEstimates {
 public:
  explicit SizeEstimates(const OrderOptions& options) : options_(options) {}

  /// Brings the estimate of a live coflow up to date. Returns the bytes that it is thought to send in all. O(ports),
  /// and nothing to do for a coflow that has sent nothing since the last time.
  double Update(const ActiveTable& table, std::uint32_t slot);
  /// Bytes left on the uplink of each port, then on the downlink of each, as of the last Update().
  void Left(const ActiveTable& table, std::uint32_t slot, std::span<double> left) const;

  /// A coflow ends: later ones of its job are foreseen from it.
  void Learn(const ActiveTable& table, std::uint32_t slot);
  /// True if earlier coflows of its job tell what the coflow sends.
  bool Foreseen(const ActiveTable& table, std::uint32_t slot) const {
    return options_.history && history_.Foresees(table, slot);
  }

 private:
  /// What an estimate was computed from: while a coflow has sent nothing more and nothing was learnt, it stands.
  struct Seen {
    std::uint64_t id = 0;
    std::int64_t bytes = -1;
    double ended_squares = 0;
    std::uint64_t lessons = 0;
    bool operator==(const Seen&) const = default;
  };
  struct Row {
    Seen seen;
    double left = 0;      // bytes, over the receivers
    double per_flow = 0;  // mean over the flows that have not ended
    std::uint64_t pilots_of = 0;
    double pilot_squares = -1;
    SampleMoments pilots;
  };

  void FromHistory(const ActiveTable& table, std::uint32_t slot);
  void BeforeAnyEnded(const ActiveTable& table, std::uint32_t slot);
  void ByEnded(const ActiveTable& table, std::uint32_t slot);
  void ByPilots(const ActiveTable& table, std::uint32_t slot);
  const SampleMoments& PilotMoments(const ActiveTable& table, std::uint32_t slot);
  std::span<double> Receivers(const ActiveTable& table, std::uint32_t slot) {
    return {&receivers_[slot * table.ports()], table.ports()};
  }

  OrderOptions options_;
  JobHistory history_;
  std::vector<Row> rows_;          // by slot
  std::vector<double> receivers_;  // by slot and port: bytes left to receive
};

}  // namespace weir::scheduler
