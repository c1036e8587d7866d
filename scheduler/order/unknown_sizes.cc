#include <algorithm>
#include <cmath>

#include "scheduler/order/order.h"

namespace weir::scheduler {
namespace {

/// Queues with limits first, first x factor, first x factor^2, ...
class QueueLimits {
 public:
  QueueLimits(double first, double factor, std::int64_t queues) {
    double limit = first;
    for (std::int64_t i = 0; i + 1 < queues; ++i) {
      limits_.push_back(limit);
      limit *= factor;
    }
  }
  std::int64_t count() const { return static_cast<std::int64_t>(limits_.size()) + 1; }
  std::size_t Queue(double value) const {
    return static_cast<std::size_t>(std::lower_bound(limits_.begin(), limits_.end(), value) - limits_.begin());
  }
  /// The value above which the queue changes; infinity in the last one.
  double Limit(double value) const {
    const std::size_t queue = Queue(value);
    return queue < limits_.size() ? limits_[queue] : std::numeric_limits<double>::infinity();
  }

 private:
  std::vector<double> limits_;
};

constexpr double kTicksMax = 1e18;  ///< Beyond it nothing happens any more.

/// When a coflow that moves `rate` passes `distance` bytes more: the first whole time strictly beyond.
std::int64_t CrossingTime(std::int64_t now, double distance, double rate) {
  const double time = std::max(0.0, distance) / rate;
  if (!(rate > 0) || !(time < kTicksMax)) {
    return kNever;
  }
  return now + static_cast<std::int64_t>(std::floor(time)) + 1;
}

/// Attained service over all hosts picks the queue; inside, first come first served.
class AttainedService final : public Order {
 public:
  explicit AttainedService(const OrderOptions& o) : limits_(static_cast<double>(o.first_limit), o.factor, o.queues) {}

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      keys_[slot] = static_cast<double>(limits_.Queue(static_cast<double>(table.bytes_sent[slot])));
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return false; }
  bool changes_by_progress() const override { return true; }
  std::int64_t queue_count() const override { return limits_.count(); }
  void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const override {
    queue->assign(table.id.size(), 0);
    for (const std::uint32_t slot : table.live()) {
      (*queue)[slot] = static_cast<std::uint32_t>(limits_.Queue(static_cast<double>(table.bytes_sent[slot])));
    }
  }
  std::int64_t NextChange(const ActiveTable& table, std::int64_t now, std::span<const double> rate) const override {
    std::int64_t next = kNever;
    for (const std::uint32_t slot : table.live()) {
      const auto sent = static_cast<double>(table.bytes_sent[slot]);
      next = std::min(next, CrossingTime(now, limits_.Limit(sent) - sent, rate[slot]));
    }
    return next;
  }

 private:
  QueueLimits limits_;
  std::vector<double> keys_;
};

/// The largest flow so far times the number of flows picks the queue, so wide coflows step down early; inside a queue
/// the coflow that competes with the fewest others goes first.
class PerFlowThreshold final : public Order {
 public:
  explicit PerFlowThreshold(const OrderOptions& o) : limits_(static_cast<double>(o.first_limit), o.factor, o.queues) {}

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    const auto live = table.live();
    for (const std::uint32_t slot : live) {
      const auto contention =
          std::count_if(live.begin(), live.end(), [&](std::uint32_t other) { return Share(table, slot, other); });
      // Contention is below the number of coflows, so it never outweighs a queue.
      keys_[slot] = static_cast<double>(limits_.Queue(Metric(table, slot))) +
                    static_cast<double>(contention) / static_cast<double>(live.size() + 1);
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return false; }
  bool reads_largest_flow() const override { return true; }
  Refresh refresh() const override { return Refresh::kFlowEnds; }
  bool changes_by_progress() const override { return true; }
  std::int64_t queue_count() const override { return limits_.count(); }
  void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const override {
    queue->assign(table.id.size(), 0);
    for (const std::uint32_t slot : table.live()) {
      (*queue)[slot] = static_cast<std::uint32_t>(limits_.Queue(Metric(table, slot)));
    }
  }
  std::int64_t NextChange(const ActiveTable& table, std::int64_t now, std::span<const double> rate) const override {
    std::int64_t next = kNever;
    for (const std::uint32_t slot : table.live()) {
      const double metric = Metric(table, slot);
      const double limit = limits_.Limit(metric);
      const double flow_bytes = std::max(limit - metric, kLateShare * limit) / static_cast<double>(table.width[slot]);
      next = std::min(next, CrossingTime(now, flow_bytes, std::min(rate[slot], 1.0)));
    }
    return next;
  }

 private:
  /// Whether the flow that is served now is the largest one is not known. If it is not, the metric stands still while
  /// it catches up, and one just below the limit would be looked at after every byte; so never sooner than after this
  /// share of the limit.
  static constexpr double kLateShare = 1e-3;

  static double Metric(const ActiveTable& table, std::uint32_t slot) {
    return static_cast<double>(table.largest_seen[slot]) * static_cast<double>(table.width[slot]);
  }
  static bool Share(const ActiveTable& table, std::uint32_t a, std::uint32_t b) {
    const auto mine = table.FlowsLeft(a);
    const auto theirs = table.FlowsLeft(b);
    for (std::size_t link = 0; link < mine.size(); ++link) {
      if (mine[link] > 0 && theirs[link] > 0) {
        return a != b;
      }
    }
    return false;
  }

  QueueLimits limits_;
  std::vector<double> keys_;
};

/// A few flows of each coflow run first; what they teach orders the rest, from the first that ends. Every ended flow
/// sharpens the estimate: a receiver's flows are taken to be like its ended ones, pulled towards the coflow's mean with
/// the weight of `shrink` flows. One ended flow says everything about a receiver under an even split and little under a
/// skewed one, so by default that weight is measured (see SpreadRatio).
class PilotOrder final : public Order {
 public:
  explicit PilotOrder(const OrderOptions& o) : options_(o), once_(o.name == "philae") {}

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      if (once_) {
        keys_[slot] = table.pilots_left[slot] > 0 ? BeforeSampling(table, slot) : Total(table, slot);
      } else {
        keys_[slot] = table.ended_squares[slot] > 0 ? Bottleneck(table, slot) : BeforeAnyEnded(table, slot);
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

  /// Every flow ends at one receiver, so the downlink half of the row holds each ended flow once.
  static double MeanOfEnded(const ActiveTable& table, std::uint32_t slot) {
    const auto bytes = table.EndedBytes(slot);
    const auto flows = table.EndedFlows(slot);
    double sum = 0;
    double count = 0;
    for (std::size_t link = table.ports(); link < 2 * table.ports(); ++link) {
      sum += static_cast<double>(bytes[link]);
      count += static_cast<double>(flows[link]);
    }
    return count > 0 ? sum / count : 0;
  }

  /// Estimated once: the mean of the flows ended when sampling was over, as published.
  double Total(const ActiveTable& table, std::uint32_t slot) {
    if (estimate_.size() < keys_.size()) {
      estimate_.resize(keys_.size(), 0);
      estimate_of_.resize(keys_.size(), UINT64_MAX);
    }
    if (estimate_of_[slot] != table.id[slot]) {
      estimate_of_[slot] = table.id[slot];
      estimate_[slot] = MeanOfEnded(table, slot) * static_cast<double>(table.width[slot]);
    }
    return estimate_[slot];
  }

  /// Variance of the flows of one receiver over the variance between receivers' means: how many ended flows of a
  /// receiver the coflow's mean is worth when its next flow is guessed. One-way analysis of variance of the ended
  /// flows, with the unequal-size correction of the method of moments (Searle, Casella, McCulloch, Variance Components,
  /// 1992, section 3.6). Falls back to `none` where no receiver has two ended flows or only one receiver has any.
  static double SpreadRatio(const ActiveTable& table, std::uint32_t slot, double none) {
    const auto bytes = table.EndedBytes(slot);
    const auto flows = table.EndedFlows(slot);
    double sum = 0;
    double count = 0;
    double count_squares = 0;
    double receivers = 0;
    double explained = 0;
    for (std::size_t link = table.ports(); link < 2 * table.ports(); ++link) {
      if (flows[link] > 0) {
        const auto of_link = static_cast<double>(bytes[link]);
        const auto n = static_cast<double>(flows[link]);
        sum += of_link;
        count += n;
        count_squares += n * n;
        receivers += 1;
        explained += of_link * of_link / n;
      }
    }
    if (count <= receivers || receivers < 2) {
      return none;
    }
    const double within = std::max(0.0, table.ended_squares[slot] - explained) / (count - receivers);
    const double of_means = std::max(0.0, explained - sum * sum / count) / (receivers - 1);
    const double between = (of_means - within) * (receivers - 1) / (count - count_squares / count);
    return between > 0 ? std::min(kOnlyTheMean, within / between) : kOnlyTheMean;
  }

  double Bottleneck(const ActiveTable& table, std::uint32_t slot) const {
    const double shrink = options_.shrink < 0 ? SpreadRatio(table, slot, 0) : options_.shrink;
    const std::size_t half = table.ports();
    const auto left = table.FlowsLeft(slot);
    const auto attained = table.Attained(slot);
    const auto bytes = table.EndedBytes(slot);
    const auto flows = table.EndedFlows(slot);
    const double mean = MeanOfEnded(table, slot);
    double worst = 0;
    double expected = 0;  // over the flows left, by receiver
    double flows_left = 0;
    for (std::size_t link = half; link < 2 * half; ++link) {
      if (left[link] == 0) {
        continue;
      }
      const double seen = static_cast<double>(flows[link]) + shrink;
      const double size = seen > 0 ? (static_cast<double>(bytes[link]) + shrink * mean) / seen : mean;
      const double count = static_cast<double>(left[link]);
      worst = std::max(worst, size * count - static_cast<double>(attained[link] - bytes[link]));
      expected += size * count;
      flows_left += count;
    }
    const double sender_size = flows_left > 0 ? expected / flows_left : 0;
    for (std::size_t link = 0; link < half; ++link) {
      if (left[link] > 0) {
        worst = std::max(
            worst, sender_size * static_cast<double>(left[link]) - static_cast<double>(attained[link] - bytes[link]));
      }
    }
    return worst;
  }

  static constexpr double kOnlyTheMean = 1e9;  ///< Receivers that differ no more than their own flows do.

  OrderOptions options_;
  bool once_;
  std::vector<double> keys_, estimate_;
  std::vector<std::uint64_t> estimate_of_;
};

}  // namespace

std::unique_ptr<Order> MakeAttainedOrder(const OrderOptions& options) {
  if (options.name == "dclas") {
    return std::make_unique<AttainedService>(options);
  }
  if (options.name == "saath") {
    return std::make_unique<PerFlowThreshold>(options);
  }
  return nullptr;
}

std::unique_ptr<Order> MakePilotOrder(const OrderOptions& options) {
  return options.name == "pilots" || options.name == "philae" ? std::make_unique<PilotOrder>(options) : nullptr;
}

}  // namespace weir::scheduler
