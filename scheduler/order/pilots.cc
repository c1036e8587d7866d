#include <algorithm>
#include <cmath>

#include "scheduler/order/order.h"

namespace weir::scheduler {
namespace {

/// Flows that have ended, as a sample of a coflow: bytes and number by link, and the sum of the squared bytes. Every
/// flow ends at one receiver, so the downlink half of a row holds each flow once.
struct Sample {
  std::span<const std::int64_t> bytes, flows;
  double squares = 0;
  std::size_t ports = 0;
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

SampleMoments Moments(const Sample& sample) {
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

/// A few flows of each coflow run first; what they teach orders the rest, from the first that ends. Every ended flow
/// sharpens the estimate: a receiver's flows are taken to be like its ended ones, pulled towards the coflow's mean with
/// the weight of `shrink` flows. One ended flow says everything about a receiver under an even split and little under a
/// skewed one, so by default that weight is measured (see SpreadRatio).
///
/// Flows that share a link end shortest first: those that have ended are then too small a guess for the rest, and a
/// coflow is thought to be nearly done while its long flows have hardly begun. So where flows share
/// (OrderOptions::sample), sizes are learnt from the pilots alone, which were chosen before anybody knew, and what a
/// receiver has left is the whole of its flows less what has arrived, ended or not.
class PilotOrder final : public Order {
 public:
  explicit PilotOrder(const OrderOptions& o)
      : options_(o), once_(o.name == "philae"), pilots_only_(!once_ && o.sample == SampledFlows::kPilots) {
    if (options_.pilot_share < 0) {
      options_.pilot_share = pilots_only_ ? kShareOfPilotsOnly : kShare;
    }
  }

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    if (table.live().size() == 1 && !once_) {
      order->assign(1, table.live().front());
      return;
    }
    keys_.resize(table.id.size());
    seen_.resize(table.id.size());
    pilot_moments_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      const Seen seen = {table.id[slot], table.bytes_sent[slot], table.ended_squares[slot]};
      if (seen_[slot] == seen) {
        continue;
      }
      seen_[slot] = seen;
      if (once_) {
        keys_[slot] = table.pilots_left[slot] > 0 ? BeforeSampling(table, slot) : Total(table, slot);
      } else {
        keys_[slot] = table.ended_squares[slot] <= 0 ? BeforeAnyEnded(table, slot)
                      : pilots_only_                 ? BottleneckByPilots(table, slot)
                                                     : Bottleneck(table, slot);
      }
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return false; }
  Refresh refresh() const override { return Refresh::kFlowEnds; }
  std::int64_t PilotCount(std::int64_t width) const override {
    const auto share = static_cast<std::int64_t>(std::ceil(options_.pilot_share * static_cast<double>(width)));
    return std::min(width, std::max(options_.pilots_min, share));
  }
  bool PilotsFirst(const ActiveTable& table, std::uint32_t slot) const override {
    return once_ || table.largest_seen[slot] < options_.first_limit;
  }

 private:
  double BeforeSampling(const ActiveTable& table, std::uint32_t slot) const {
    const double narrowest = static_cast<double>(table.wide_side[slot]) * static_cast<double>(options_.megabyte);
    const auto attained = table.Attained(slot);
    return std::max(narrowest, static_cast<double>(*std::max_element(attained.begin(), attained.end())));
  }

  /// Every flow is taken to be as long as the longest seen so far: a coflow steps back while its first flows run long.
  double BeforeAnyEnded(const ActiveTable& table, std::uint32_t slot) const {
    const auto flow = static_cast<double>(std::max(options_.megabyte, table.largest_seen[slot]));
    const auto left = table.FlowsLeft(slot);
    const auto attained = table.Attained(slot);
    double worst = 0;
    for (std::size_t link = 0; link < left.size(); ++link) {
      worst = std::max(worst, flow * static_cast<double>(left[link]) - static_cast<double>(attained[link]));
    }
    return worst;
  }

  static Sample Ended(const ActiveTable& table, std::uint32_t slot) {
    return {table.EndedBytes(slot), table.EndedFlows(slot), table.ended_squares[slot], table.ports()};
  }
  static Sample Pilots(const ActiveTable& table, std::uint32_t slot) {
    return {table.PilotBytes(slot), table.PilotFlows(slot), table.pilot_squares[slot], table.ports()};
  }

  /// Computed anew when another pilot has ended.
  const SampleMoments& PilotMoments(const ActiveTable& table, std::uint32_t slot) {
    PilotMomentsOf& of = pilot_moments_[slot];
    if (of.id != table.id[slot] || of.squares != table.pilot_squares[slot]) {
      of = {table.id[slot], table.pilot_squares[slot], Moments(Pilots(table, slot))};
    }
    return of.moments;
  }

  /// Estimated once: the mean of the flows ended when sampling was over, as published.
  double Total(const ActiveTable& table, std::uint32_t slot) {
    if (estimate_.size() < keys_.size()) {
      estimate_.resize(keys_.size(), 0);
      estimate_of_.resize(keys_.size(), UINT64_MAX);
    }
    if (estimate_of_[slot] != table.id[slot]) {
      estimate_of_[slot] = table.id[slot];
      estimate_[slot] = Moments(Ended(table, slot)).mean() * static_cast<double>(table.width[slot]);
    }
    return estimate_[slot];
  }

  /// Variance of the flows of one receiver over the variance between receivers' means: how many ended flows of a
  /// receiver the coflow's mean is worth when its next flow is guessed. One-way analysis of variance of the ended
  /// flows, with the unequal-size correction of the method of moments (Searle, Casella, McCulloch, Variance Components,
  /// 1992, section 3.6). Falls back to `none` where no receiver has two ended flows or only one receiver has any.
  static double SpreadRatio(const SampleMoments& m, double none) {
    if (!m.TellsSpread() || m.receivers < 2) {
      return none;
    }
    const double of_means = std::max(0.0, m.explained - m.sum * m.sum / m.count) / (m.receivers - 1);
    const double between = (of_means - m.within) * (m.receivers - 1) / (m.count - m.count_squares / m.count);
    return between > 0 ? std::min(kOnlyTheMean, m.within / between) : kOnlyTheMean;
  }

  /// Of flows that differ, the short ones end first, so the mean of the ended ones alone is too small a guess, and the
  /// smaller the more flows were begun and put aside. Two limits are known exactly. Flows that are all alike: the mean
  /// of the ended ones, and who has sent a has a less left. Flows of an exponential distribution: all bytes sent over
  /// the number of ended flows (maximum likelihood with censoring; Lawless, Statistical Models and Methods for Lifetime
  /// Data, 2003, section 4.1), and who has sent a has as much left as at the start. In between, Spread() mixes the two.
  double Bottleneck(const ActiveTable& table, std::uint32_t slot) {
    const Sample ended = Ended(table, slot);
    const SampleMoments moments = Moments(ended);
    const double shrink = options_.shrink < 0 ? SpreadRatio(moments, 0) : options_.shrink;
    const double spread = Spread(PilotMoments(table, slot), moments);
    const std::size_t half = table.ports();
    const auto left = table.FlowsLeft(slot);
    const auto attained = table.Attained(slot);
    const double begun = static_cast<double>(table.bytes_sent[slot]) - moments.sum;  // by the flows that have not ended
    const double mean = (moments.sum + spread * begun) / moments.count;
    double worst = 0;
    double expected = 0;  // bytes left, over the receivers
    double flows_left = 0;
    for (std::size_t link = half; link < 2 * half; ++link) {
      if (left[link] == 0) {
        continue;
      }
      const double begun_here = static_cast<double>(attained[link] - ended.bytes[link]);
      const double seen = static_cast<double>(ended.flows[link]) + shrink;
      const double sum = static_cast<double>(ended.bytes[link]) + spread * begun_here + shrink * mean;
      const double size = seen > 0 ? sum / seen : mean;
      const double count = static_cast<double>(left[link]);
      const double rest = std::max(size * count - (1 - spread) * begun_here, kAgainMin * begun_here);
      worst = std::max(worst, rest);
      expected += rest;
      flows_left += count;
    }
    return std::max(worst, flows_left > 0 ? expected / flows_left * MostFlows(left.first(half)) : 0);
  }

  static double MostFlows(std::span<const std::int64_t> flows) {
    return static_cast<double>(*std::max_element(flows.begin(), flows.end()));
  }

  /// How much flows differ, from 0, all alike, to 1, as an exponential distribution or more: the variance inside the
  /// receivers over the mean squared. By the pilots, which were chosen before anybody knew how long they are; by the
  /// flows that ended where no receiver has two of them.
  static double Spread(const SampleMoments& pilots, const SampleMoments& ended) {
    const SampleMoments& sample = pilots.TellsSpread() ? pilots : ended;
    const double mean = sample.mean();
    return mean > 0 ? std::min(1.0, sample.within / (mean * mean)) : 0;
  }

  /// As Bottleneck(), of a coflow whose flows share links.
  double BottleneckByPilots(const ActiveTable& table, std::uint32_t slot) {
    const Sample pilots = Pilots(table, slot);
    const SampleMoments& moments = PilotMoments(table, slot);
    const double shrink = options_.shrink < 0 ? SpreadRatio(moments, 0) : options_.shrink;
    const double mean = MeanWithLongPilots(table, slot, moments);
    // The least that is left of flows that have sent a: nothing is known but that they are not among the short ones.
    // Where flows spread like an exponential distribution or more, as much again; where all are alike, a little, so
    // that a large coflow with too small a guess does not go before all small ones until it ends.
    const double spread = mean > 0 ? moments.within / (mean * mean) : 0;
    const double again = std::clamp(spread, kAgainMin, 1.0);
    const std::size_t half = table.ports();
    const auto left = table.FlowsLeft(slot);
    const auto all = table.FlowsAtArrival(slot);
    const auto attained = table.Attained(slot);
    const Sample ended = Ended(table, slot);
    double worst = 0;
    double expected = 0;  // bytes left, over the receivers
    double flows_left = 0;
    for (std::size_t link = half; link < 2 * half; ++link) {
      if (left[link] == 0) {
        continue;
      }
      // A receiver that no pilot tells of is guessed by what ended there, which is exact where flows are alike, and
      // else counts little against the mean.
      const Sample& sample = pilots.flows[link] > 0 ? pilots : ended;
      const double seen = static_cast<double>(sample.flows[link]) + shrink;
      const double size = seen > 0 ? (static_cast<double>(sample.bytes[link]) + shrink * mean) / seen : mean;
      const double rest = std::max(size * static_cast<double>(all[link]) - static_cast<double>(attained[link]),
                                   again * static_cast<double>(attained[link] - ended.bytes[link]));
      worst = std::max(worst, rest);
      expected += rest;
      flows_left += static_cast<double>(left[link]);
    }
    return std::max(worst, flows_left > 0 ? expected / flows_left * MostFlows(left.first(half)) : 0);
  }

  /// Pilots that have not ended are taken to be as long as the longest flow seen: those that ended first are the short
  /// ones.
  static double MeanWithLongPilots(const ActiveTable& table, std::uint32_t slot, const SampleMoments& ended) {
    const auto open = static_cast<double>(table.pilots_left[slot]);
    const double longest = std::max(static_cast<double>(table.largest_seen[slot]), ended.mean());
    return ended.count + open > 0 ? (ended.sum + open * longest) / (ended.count + open) : 0;
  }

  static constexpr double kShare = 0.01;
  static constexpr double kShareOfPilotsOnly = 0.03;  ///< Nobody else is learnt from, so more of them.
  static constexpr double kAgainMin = 0.1;
  static constexpr double kOnlyTheMean = 1e9;  ///< Receivers that differ no more than their own flows do.

  /// What a key was computed from: while a coflow has sent nothing more, it keeps its key.
  struct Seen {
    std::uint64_t id = 0;
    std::int64_t bytes = -1;
    double ended_squares = 0;
    bool operator==(const Seen&) const = default;
  };

  struct PilotMomentsOf {
    std::uint64_t id = 0;
    double squares = -1;
    SampleMoments moments;
  };

  OrderOptions options_;
  bool once_;
  bool pilots_only_;
  std::vector<Seen> seen_;  // by slot, as the next
  std::vector<PilotMomentsOf> pilot_moments_;
  std::vector<double> keys_, estimate_;
  std::vector<std::uint64_t> estimate_of_;
};

}  // namespace

std::unique_ptr<Order> MakePilotOrder(const OrderOptions& options) {
  return options.name == "pilots" || options.name == "philae" ? std::make_unique<PilotOrder>(options) : nullptr;
}

}  // namespace weir::scheduler
