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
  bool reads_links() const override { return false; }
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
    MarkBusyLinks(table);
    for (std::size_t row = 0; row < live.size(); ++row) {
      std::size_t contention = 0;
      for (std::size_t other = 0; other < live.size(); ++other) {
        contention += other != row && Share(row, other) ? 1U : 0U;
      }
      // Contention is below the number of coflows, so it never outweighs a queue.
      keys_[live[row]] = static_cast<double>(limits_.Queue(Metric(table, live[row]))) +
                         static_cast<double>(contention) / static_cast<double>(live.size() + 1);
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return false; }
  bool reads_links() const override { return false; }
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
  /// By row of the live coflows, the links on which it has flows left, 64 to a word.
  void MarkBusyLinks(const ActiveTable& table) {
    words_ = (table.links() + 63) / 64;
    busy_.assign(table.live().size() * words_, 0);
    std::uint64_t* row = busy_.data();
    for (const std::uint32_t slot : table.live()) {
      const auto left = table.FlowsLeft(slot);
      for (std::size_t link = 0; link < left.size(); ++link) {
        row[link / 64] |= std::uint64_t{left[link] > 0 ? 1U : 0U} << (link % 64);
      }
      row += words_;
    }
  }
  bool Share(std::size_t a, std::size_t b) const {
    std::uint64_t both = 0;
    for (std::size_t word = 0; word < words_; ++word) {
      both |= busy_[a * words_ + word] & busy_[b * words_ + word];
    }
    return both != 0;
  }

  QueueLimits limits_;
  std::vector<double> keys_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> busy_;
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

}  // namespace weir::scheduler
