#include <algorithm>
#include <cmath>
#include <utility>

#include "scheduler/order/order.h"

namespace weir::scheduler {
namespace {

/// Wraps another order; see MakeAgeBound.
class AgeBound final : public Order {
 public:
  AgeBound(std::unique_ptr<Order> order, double beta) : order_(std::move(order)), beta_(beta) {}

  void Sort(const ActiveTable& table, std::int64_t now, std::vector<std::uint32_t>* order) override {
    order_->Sort(table, now, order);
    due_.clear();
    for (const std::uint32_t slot : *order) {
      if (Due(table, slot) <= now) {
        due_.push_back(slot);
      }
    }
    if (due_.empty()) {
      return;
    }
    std::sort(due_.begin(), due_.end(), [&](std::uint32_t a, std::uint32_t b) {
      const std::int64_t due_a = Due(table, a);
      const std::int64_t due_b = Due(table, b);
      return due_a != due_b ? due_a < due_b : table.id[a] < table.id[b];
    });
    for (const std::uint32_t slot : *order) {
      if (Due(table, slot) > now) {
        due_.push_back(slot);
      }
    }
    order->swap(due_);
  }

  void Ended(const ActiveTable& table, std::uint32_t slot) override { order_->Ended(table, slot); }
  Refresh refresh() const override { return order_->refresh(); }
  bool reads_links() const override { return order_->reads_links(); }
  bool reads_largest_flow() const override { return order_->reads_largest_flow(); }
  std::int64_t queue_count() const override { return order_->queue_count(); }
  void Queues(const ActiveTable& table, std::vector<std::uint32_t>* queue) const override {
    order_->Queues(table, queue);
  }
  std::int64_t NextChange(const ActiveTable& table, std::int64_t now, Motion& motion) const override {
    std::int64_t next = order_->NextChange(table, now, motion);
    for (const std::uint32_t slot : table.live()) {
      const std::int64_t due = Due(table, slot);
      next = due > now ? std::min(next, due) : next;
    }
    return next;
  }

 private:
  std::int64_t Due(const ActiveTable& table, std::uint32_t slot) const {
    const double due = static_cast<double>(table.arrival[slot]) + std::ceil(beta_ * table.isolation[slot]);
    return due < 9e18 ? static_cast<std::int64_t>(due) : kNever;
  }

  std::unique_ptr<Order> order_;
  double beta_;
  std::vector<std::uint32_t> due_;
};

}  // namespace

std::unique_ptr<Order> MakeAgeBound(std::unique_ptr<Order> order, double beta) {
  return std::make_unique<AgeBound>(std::move(order), beta);
}

}  // namespace weir::scheduler
