#include "scheduler/order/load_matrix.h"
#include "scheduler/order/local_search.h"
#include "scheduler/order/order.h"

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

/// What is left of a good order when a coflow leaves is a good order of what is left; searching anew then only
/// exchanges orders of nearly equal value, and each exchange leaves flows half done.
class LocalSearchOrder final : public JointOrder {
 public:
  Refresh refresh() const override { return Refresh::kArrivals; }

 private:
  void SortRows() override { search_.Sort(loads_, weights_, &rows_); }
  LocalSearch search_;
};

}  // namespace

std::unique_ptr<Order> MakePrimalDualOrder(const OrderOptions& options) {
  return options.name == "bssi" ? std::make_unique<PrimalDualOrder>() : nullptr;
}

std::unique_ptr<Order> MakeLocalSearchOrder(const OrderOptions& options) {
  return options.name == "ls" ? std::make_unique<LocalSearchOrder>() : nullptr;
}

}  // namespace weir::scheduler
