#include <algorithm>
#include <numeric>

#include "scheduler/order/load_matrix.h"
#include "scheduler/order/order.h"
#include "scheduler/order/order_search.h"

namespace weir::scheduler {
namespace {

/// Loads the live coflows in order of arrival, so that rows are independent of how slots were reused.
class JointOrder : public Order {
 public:
  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) final {
    zero_keys_.assign(table.id.size(), 0.0);
    SortByKey(table, zero_keys_, &slots_);
    loads_.Load(table, slots_);
    weights_.clear();
    for (const std::uint32_t slot : slots_) {
      weights_.push_back(table.weight[slot]);
    }
    if (loads_.links() == 0) {
      *order = slots_;
      return;
    }
    SortRows();
    order->clear();
    for (const std::uint32_t row : rows_) {
      order->push_back(slots_[row]);
    }
  }

 protected:
  virtual void SortRows() = 0;

  LoadMatrix loads_;
  std::vector<double> weights_;
  std::vector<std::uint32_t> rows_;

 private:
  std::vector<double> zero_keys_;
  std::vector<std::uint32_t> slots_;
};

class PrimalDualOrder final : public JointOrder {
  void SortRows() override { primal_dual_.Sort(loads_, weights_, &rows_); }
  PrimalDual primal_dual_;
};

/// Improves the better of the primal-dual order and the smallest-bottleneck order. A few passes find what many find.
/// The reach of a move is limited, which bounds the decision when very many coflows run: one far away in the order is
/// not a good neighbour. What is left of a good order when a coflow leaves is a good order of what is left; searching
/// anew then only exchanges orders of nearly equal value, and each exchange leaves flows half done.
class LocalSearchOrder final : public JointOrder {
 public:
  Refresh refresh() const override { return Refresh::kArrivals; }

 private:
  static constexpr int kPasses = 4;
  static constexpr std::size_t kReach = 64;

  void SortRows() override {
    primal_dual_.Sort(loads_, weights_, &rows_);
    bottleneck_.resize(loads_.rows());
    for (std::size_t row = 0; row < loads_.rows(); ++row) {
      bottleneck_[row] = loads_.Bottleneck(row) / weights_[row];
    }
    other_.resize(loads_.rows());
    std::iota(other_.begin(), other_.end(), 0U);
    std::sort(other_.begin(), other_.end(), [this](std::uint32_t a, std::uint32_t b) {
      return bottleneck_[a] != bottleneck_[b] ? bottleneck_[a] < bottleneck_[b] : a < b;
    });
    if (IndependentLinksCost(loads_, weights_, other_) < IndependentLinksCost(loads_, weights_, rows_)) {
      rows_.swap(other_);
    }
    search_.Improve(loads_, weights_, kPasses, kReach, &rows_);
  }

  PrimalDual primal_dual_;
  OrderSearch search_;
  std::vector<double> bottleneck_;
  std::vector<std::uint32_t> other_;
};

}  // namespace

std::unique_ptr<Order> MakePrimalDualOrder(const OrderOptions& options) {
  return options.name == "bssi" ? std::make_unique<PrimalDualOrder>() : nullptr;
}

std::unique_ptr<Order> MakeLocalSearchOrder(const OrderOptions& options) {
  return options.name == "ls" ? std::make_unique<LocalSearchOrder>() : nullptr;
}

}  // namespace weir::scheduler
