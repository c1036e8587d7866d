#include <algorithm>
#include <cmath>

#include "scheduler/order/contention.h"
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
  bool reads_links() const override { return false; }
  std::int64_t queue_count() const override { return limits_.count(); }
  void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const override {
    queue->assign(table.id.size(), 0);
    for (const std::uint32_t slot : table.live()) {
      (*queue)[slot] = static_cast<std::uint32_t>(limits_.Queue(static_cast<double>(table.bytes_sent[slot])));
    }
  }
  std::int64_t NextChange(const ActiveTable& table, std::int64_t /*now*/, Motion& motion) const override {
    std::int64_t next = kNever;
    for (const std::uint32_t slot : table.live()) {
      const double limit = limits_.Limit(static_cast<double>(table.bytes_sent[slot]));
      next = std::min(next, motion.WhenSent(slot, std::floor(limit) + 1));
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
    contention_.Update(table);
    const auto others = static_cast<double>(table.live().size() + 1);
    for (const std::uint32_t slot : table.live()) {
      // Contention is below the number of coflows, so it never outweighs a queue.
      keys_[slot] = static_cast<double>(limits_.Queue(Metric(table, slot))) + contention_.Of(slot) / others;
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return false; }
  bool reads_links() const override { return false; }
  bool reads_largest_flow() const override { return true; }
  Refresh refresh() const override { return Refresh::kFlowEnds; }
  std::int64_t queue_count() const override { return limits_.count(); }
  void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const override {
    queue->assign(table.id.size(), 0);
    for (const std::uint32_t slot : table.live()) {
      (*queue)[slot] = static_cast<std::uint32_t>(limits_.Queue(Metric(table, slot)));
    }
  }
  std::int64_t NextChange(const ActiveTable& table, std::int64_t /*now*/, Motion& motion) const override {
    std::int64_t next = kNever;
    for (const std::uint32_t slot : table.live()) {
      const double flow_bytes = limits_.Limit(Metric(table, slot)) / static_cast<double>(table.width[slot]);
      next = std::min(next, motion.WhenOneSent(slot, std::floor(flow_bytes) + 1));
    }
    return next;
  }

 private:
  static double Metric(const ActiveTable& table, std::uint32_t slot) {
    return static_cast<double>(table.largest_seen[slot]) * static_cast<double>(table.width[slot]);
  }

  QueueLimits limits_;
  Contention contention_;
  std::vector<double> keys_;
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
