#include "scheduler/order/size_estimates.h"

#include <algorithm>
#include <cmath>

namespace weir::scheduler {
namespace {

constexpr double kStep = 4;
constexpr double kAgainMin = 0.1;
constexpr double kOnlyTheMean = 1e9;  ///< Receivers that differ no more than their own flows do.

/// Variance of the flows of one receiver over the variance between receivers' means: how many ended flows of a receiver
/// the coflow's mean is worth when its next flow is guessed. One-way analysis of variance of the ended flows, with the
/// unequal-size correction of the method of moments (Searle, Casella, McCulloch, Variance Components, 1992, section
/// 3.6). 0 where no receiver has two ended flows or only one receiver has any.
double SpreadRatio(const SampleMoments& m) {
  if (!m.TellsSpread() || m.receivers < 2) {
    return 0;
  }
  const double of_means = std::max(0.0, m.explained - m.sum * m.sum / m.count) / (m.receivers - 1);
  const double between = (of_means - m.within) * (m.receivers - 1) / (m.count - m.count_squares / m.count);
  return between > 0 ? std::min(kOnlyTheMean, m.within / between) : kOnlyTheMean;
}

/// How much flows differ, from 0, all alike, to 1, as an exponential distribution or more: the variance inside the
/// receivers over the mean squared. By the pilots, which were chosen before anybody knew how long they are; by the
/// flows that ended where no receiver has two of them.
double Spread(const SampleMoments& pilots, const SampleMoments& ended) {
  const SampleMoments& sample = pilots.TellsSpread() ? pilots : ended;
  const double mean = sample.mean();
  return mean > 0 ? std::min(1.0, sample.within / (mean * mean)) : 0;
}

/// Pilots that have not ended are taken to be as long as the longest flow seen: those that ended first are the short
/// ones.
double MeanWithLongPilots(const ActiveTable& table, std::uint32_t slot, const SampleMoments& ended) {
  const auto open = static_cast<double>(table.pilots_left[slot]);
  const double longest = std::max(static_cast<double>(table.largest_seen[slot]), ended.mean());
  return ended.count + open > 0 ? (ended.sum + open * longest) / (ended.count + open) : 0;
}

}  // namespace

SampleMoments Moments(const FlowSample& sample) {
  SampleMoments m;
  std::int64_t sum = 0;
  std::int64_t count = 0;
  std::int64_t count_squares = 0;
  std::int64_t receivers = 0;
  for (std::size_t link = sample.ports; link < 2 * sample.ports; ++link) {
    if (const std::int64_t n = sample.flows[link]; n > 0) {
      sum += sample.bytes[link];
      count += n;
      count_squares += n * n;
      ++receivers;
      const auto bytes = static_cast<double>(sample.bytes[link]);
      m.explained += bytes * bytes / static_cast<double>(n);
    }
  }
  m.sum = static_cast<double>(sum);
  m.count = static_cast<double>(count);
  m.count_squares = static_cast<double>(count_squares);
  m.receivers = static_cast<double>(receivers);
  if (m.TellsSpread()) {
    m.within = std::max(0.0, sample.squares - m.explained) / (m.count - m.receivers);
  }
  return m;
}

double SizeEstimates::Update(const ActiveTable& table, std::uint32_t slot) {
  if (rows_.size() < table.id.size()) {
    rows_.resize(table.id.size());
    receivers_.resize(table.id.size() * table.ports());
  }
  Row& row = rows_[slot];
  const Seen seen = {table.id[slot], table.bytes_sent[slot], table.ended_squares[slot],
                     table.kin[slot] == 0 ? 0 : history_.lessons()};
  if (row.seen != seen) {
    row.seen = seen;
    if (Foreseen(table, slot)) {
      FromHistory(table, slot);
    } else if (table.ended_squares[slot] <= 0) {
      BeforeAnyEnded(table, slot);
    } else if (options_.sample == SampledFlows::kPilots) {
      ByPilots(table, slot);
    } else {
      ByEnded(table, slot);
    }
  }
  return static_cast<double>(table.bytes_sent[slot]) + row.left;
}

void SizeEstimates::Left(const ActiveTable& table, std::uint32_t slot, std::span<double> left) const {
  const std::size_t ports = table.ports();
  const auto flows = table.FlowsLeft(slot);
  for (std::size_t port = 0; port < ports; ++port) {
    left[port] = rows_[slot].per_flow * static_cast<double>(flows[port]);
    left[ports + port] = receivers_[slot * ports + port];
  }
}

void SizeEstimates::Learn(const ActiveTable& table, std::uint32_t slot) {
  if (options_.history) {
    history_.Learn(table, slot);
  }
}

void SizeEstimates::FromHistory(const ActiveTable& table, std::uint32_t slot) {
  const auto receivers = Receivers(table, slot);
  history_.LeftAtReceivers(table, slot, receivers);
  Row& row = rows_[slot];
  row.left = 0;
  std::int64_t flows = 0;
  for (std::size_t port = 0; port < receivers.size(); ++port) {
    row.left += receivers[port];
    flows += table.FlowsLeft(slot)[port];
  }
  row.per_flow = flows > 0 ? row.left / static_cast<double>(flows) : 0;
}

/// Nothing is known but what was sent. A flow is taken to be as long as the limit that it has yet to reach, as long as
/// first_limit or kStep times the limit before: so a coflow steps back while its first flows run long, and coflows that
/// have got equally far take their turns one after the other instead of sharing.
void SizeEstimates::BeforeAnyEnded(const ActiveTable& table, std::uint32_t slot) {
  auto flow = static_cast<double>(options_.first_limit);
  while (flow <= static_cast<double>(table.largest_seen[slot])) {
    flow *= kStep;
  }
  const std::size_t ports = table.ports();
  const auto flows = table.FlowsLeft(slot);
  const auto attained = table.Attained(slot);
  const auto receivers = Receivers(table, slot);
  Row& row = rows_[slot];
  row.left = 0;
  double count = 0;
  for (std::size_t port = 0; port < ports; ++port) {
    const auto here = static_cast<double>(flows[ports + port]);
    receivers[port] = std::max(0.0, flow * here - static_cast<double>(attained[ports + port]));
    row.left += receivers[port];
    count += here;
  }
  row.per_flow = count > 0 ? row.left / count : 0;
}

/// Of flows that differ, the short ones end first, so the mean of the ended ones alone is too small a guess, and the
/// smaller the more flows were begun and put aside. Two limits are known exactly. Flows that are all alike: the mean of
/// the ended ones, and who has sent a has a less left. Flows of an exponential distribution: all bytes sent over the
/// number of ended flows (maximum likelihood with censoring; Lawless, Statistical Models and Methods for Lifetime Data,
/// 2003, section 4.1), and who has sent a has as much left as at the start. In between, Spread() mixes the two.
void SizeEstimates::ByEnded(const ActiveTable& table, std::uint32_t slot) {
  const FlowSample ended = FlowSample::Ended(table, slot);
  const SampleMoments moments = Moments(ended);
  const double shrink = options_.shrink < 0 ? SpreadRatio(moments) : options_.shrink;
  const double spread = Spread(PilotMoments(table, slot), moments);
  const std::size_t ports = table.ports();
  const auto left = table.FlowsLeft(slot);
  const auto attained = table.Attained(slot);
  const auto receivers = Receivers(table, slot);
  const double begun = static_cast<double>(table.bytes_sent[slot]) - moments.sum;  // by the flows that have not ended
  const double mean = (moments.sum + spread * begun) / moments.count;
  double expected = 0;
  double flows_left = 0;
  for (std::size_t port = 0; port < ports; ++port) {
    const std::size_t link = ports + port;
    receivers[port] = 0;
    if (left[link] == 0) {
      continue;
    }
    const double begun_here = static_cast<double>(attained[link] - ended.bytes[link]);
    const double seen = static_cast<double>(ended.flows[link]) + shrink;
    const double sum = static_cast<double>(ended.bytes[link]) + spread * begun_here + shrink * mean;
    const double size = seen > 0 ? sum / seen : mean;
    const double count = static_cast<double>(left[link]);
    receivers[port] = std::max(size * count - (1 - spread) * begun_here, kAgainMin * begun_here);
    expected += receivers[port];
    flows_left += count;
  }
  rows_[slot].left = expected;
  rows_[slot].per_flow = flows_left > 0 ? expected / flows_left : 0;
}

/// As ByEnded(), of a coflow whose flows share links.
void SizeEstimates::ByPilots(const ActiveTable& table, std::uint32_t slot) {
  const FlowSample pilots = FlowSample::Pilots(table, slot);
  const SampleMoments& moments = PilotMoments(table, slot);
  const double shrink = options_.shrink < 0 ? SpreadRatio(moments) : options_.shrink;
  const double mean = MeanWithLongPilots(table, slot, moments);
  // The least that is left of flows that have sent a: nothing is known but that they are not among the short ones.
  // Where flows spread like an exponential distribution or more, as much again; where all are alike, a little, so that
  // a large coflow with too small a guess does not go before all small ones until it ends.
  const double spread = mean > 0 ? moments.within / (mean * mean) : 0;
  const double again = std::clamp(spread, kAgainMin, 1.0);
  const std::size_t ports = table.ports();
  const auto left = table.FlowsLeft(slot);
  const auto all = table.FlowsAtArrival(slot);
  const auto attained = table.Attained(slot);
  const FlowSample ended = FlowSample::Ended(table, slot);
  const auto receivers = Receivers(table, slot);
  double expected = 0;
  double flows_left = 0;
  for (std::size_t port = 0; port < ports; ++port) {
    const std::size_t link = ports + port;
    receivers[port] = 0;
    if (left[link] == 0) {
      continue;
    }
    // A receiver that no pilot tells of is guessed by what ended there, which is exact where flows are alike, and else
    // counts little against the mean.
    const FlowSample& sample = pilots.flows[link] > 0 ? pilots : ended;
    const double seen = static_cast<double>(sample.flows[link]) + shrink;
    const double size = seen > 0 ? (static_cast<double>(sample.bytes[link]) + shrink * mean) / seen : mean;
    receivers[port] = std::max(size * static_cast<double>(all[link]) - static_cast<double>(attained[link]),
                               again * static_cast<double>(attained[link] - ended.bytes[link]));
    expected += receivers[port];
    flows_left += static_cast<double>(left[link]);
  }
  rows_[slot].left = expected;
  rows_[slot].per_flow = flows_left > 0 ? expected / flows_left : 0;
}

/// Computed anew when another pilot has ended.
const SampleMoments& SizeEstimates::PilotMoments(const ActiveTable& table, std::uint32_t slot) {
  Row& row = rows_[slot];
  if (row.pilots_of != table.id[slot] || row.pilot_squares != table.pilot_squares[slot]) {
    row.pilots_of = table.id[slot];
    row.pilot_squares = table.pilot_squares[slot];
    row.pilots = Moments(FlowSample::Pilots(table, slot));
  }
  return row.pilots;
}

}  // namespace weir::scheduler
