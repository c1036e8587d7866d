#include <algorithm>
#include <cmath>

#include "scheduler/order/load_matrix.h"
#include "scheduler/order/local_search.h"
#include "scheduler/order/order.h"
#include "scheduler/order/size_estimates.h"

namespace weir::scheduler {
namespace {

constexpr double kShare = 0.01;
constexpr double kShareOfPilotsOnly = 0.03;  ///< Nobody else is learnt from, so more of them.

/// What the two orders have in common: sizes are unknown, and a few flows of each coflow run first.
class SamplingOrder : public Order {
 public:
  explicit SamplingOrder(const OrderOptions& options) : options_(options) {}

  bool needs_sizes() const final { return false; }
  Refresh refresh() const final { return Refresh::kFlowEnds; }
  std::int64_t PilotCount(std::int64_t width) const final {
    const auto share = static_cast<std::int64_t>(std::ceil(options_.pilot_share * static_cast<double>(width)));
    return std::min(width, std::max(options_.pilots_min, share));
  }

 protected:
  OrderOptions options_;
};

/// Estimated once, when the pilots are done: the mean of the flows that have ended times their number, as published.
class PhilaeOrder final : public SamplingOrder {
 public:
  explicit PhilaeOrder(const OrderOptions& options) : SamplingOrder(options) {
    options_.pilot_share = options.pilot_share < 0 ? kShare : options.pilot_share;
  }

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    estimates_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      keys_[slot] = table.pilots_left[slot] > 0 ? BeforeSampling(table, slot) : Total(table, slot);
    }
    SortByKey(table, keys_, order);
  }

 private:
  struct Estimate {
    std::uint64_t id = UINT64_MAX;
    double bytes = 0;
  };

  double BeforeSampling(const ActiveTable& table, std::uint32_t slot) const {
    const double narrowest = static_cast<double>(table.wide_side[slot]) * static_cast<double>(options_.megabyte);
    const auto attained = table.Attained(slot);
    return std::max(narrowest, static_cast<double>(*std::max_element(attained.begin(), attained.end())));
  }
  double Total(const ActiveTable& table, std::uint32_t slot) {
    Estimate& estimate = estimates_[slot];
    if (estimate.id != table.id[slot]) {
      const double mean = Moments(FlowSample::Ended(table, slot)).mean();
      estimate = {table.id[slot], mean * static_cast<double>(table.width[slot])};
    }
    return estimate.bytes;
  }

  std::vector<double> keys_;
  std::vector<Estimate> estimates_;
};

/// What pilots, and every flow that ends after them, tell of the sizes (SizeEstimates) is searched for a good order as
/// if it were known. The order is searched anew when a coflow arrives or is thought to be another size than at the last
/// search; in between, what is left of a good order is a good order of what is left.
class PilotOrder final : public SamplingOrder {
 public:
  explicit PilotOrder(const OrderOptions& options) : SamplingOrder(options), estimates_(options) {
    if (options.pilot_share < 0) {
      options_.pilot_share = options.sample == SampledFlows::kPilots ? kShareOfPilotsOnly : kShare;
    }
  }

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    if (table.live().size() == 1) {
      order->assign(1, table.live().front());
      return;
    }
    if (AnythingNew(table)) {
      Search(table);
    }
    *order = placed_;
  }
  bool PilotsFirst(const ActiveTable& table, std::uint32_t slot) const override {
    return table.largest_seen[slot] < options_.first_limit && !estimates_.Foreseen(table, slot);
  }
  void Ended(const ActiveTable& table, std::uint32_t slot) override {
    estimates_.Learn(table, slot);
    std::erase(placed_, slot);
  }

 private:
  /// A size is another one when it has changed by more than this share.
  static constexpr double kChange = 0.01;

  struct Searched {
    std::uint64_t id = UINT64_MAX;
    double bytes = 0;  // in all, as it was thought
  };

  bool AnythingNew(const ActiveTable& table) {
    searched_.resize(table.id.size());
    bool any = placed_.size() != table.live().size();
    for (const std::uint32_t slot : table.live()) {
      const double bytes = estimates_.Update(table, slot);
      const Searched& searched = searched_[slot];
      any |= searched.id != table.id[slot] || std::abs(bytes - searched.bytes) > kChange * searched.bytes;
    }
    return any;
  }

  void Search(const ActiveTable& table) {
    const std::size_t links = 2 * std::size_t{table.ports()};
    same_.assign(table.id.size(), 0);
    SortByKey(table, same_, &placed_);  // by arrival: rows are independent of how slots were used again
    left_.resize(placed_.size() * links);
    weights_.clear();
    for (std::size_t row = 0; row < placed_.size(); ++row) {
      const std::uint32_t slot = placed_[row];
      estimates_.Left(table, slot, {&left_[row * links], links});
      weights_.push_back(table.weight[slot]);
      searched_[slot] = {table.id[slot], estimates_.Update(table, slot)};
    }
    loads_.Load(left_, placed_.size(), links);
    if (loads_.links() == 0) {
      return;
    }
    search_.Sort(loads_, weights_, &rows_);
    for (std::uint32_t& row : rows_) {
      row = placed_[row];
    }
    placed_.swap(rows_);
  }

  SizeEstimates estimates_;
  LocalSearch search_;
  LoadMatrix loads_;
  std::vector<Searched> searched_;     // by slot
  std::vector<std::uint32_t> placed_;  // live slots as last searched
  std::vector<std::uint32_t> rows_;    // the rest is scratch of Search()
  std::vector<double> same_, left_, weights_;
};

}  // namespace

std::unique_ptr<Order> MakePilotOrder(const OrderOptions& options) {
  if (options.name == "philae") {
    return std::make_unique<PhilaeOrder>(options);
  }
  return options.name == "pilots" ? std::make_unique<PilotOrder>(options) : nullptr;
}

}  // namespace weir::scheduler
