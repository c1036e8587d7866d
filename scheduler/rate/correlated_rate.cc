#include <algorithm>
#include <numeric>

#include "scheduler/rate/allocator.h"
#include "scheduler/rate/ordered_filling.h"
#include "scheduler/rate/progressive_filling.h"
#include "scheduler/share/correlated.h"

namespace weir::scheduler {
namespace {

/// Every coflow is a tenant whose demands are the bytes it has left on its links; the order has no say. `drf` moves all
/// flows of a coflow in proportion to what they have left, coflows at progress that is max-min fair. `hug` does so at
/// the progress that all can have, then shares what HUG adds to the coflow on each link among its flows, max-min.
class CorrelatedRate final : public RateAllocator {
 public:
  explicit CorrelatedRate(bool hug) : hug_(hug) {}

  std::size_t Allocate(std::span<const RankedGroup> order, std::span<const double> capacity) override {
    CollectTenants(order);
    changed_.clear();
    if (!hug_) {
      shares_.Drf(tenants_, capacity, given_);
      for (std::size_t k = 0; k < order.size(); ++k) {
        SetProgress(given_[k], k, order[k].group);
      }
    } else {
      const double guarantee = shares_.Hug(tenants_, capacity, given_);
      std::size_t first = 0;
      for (std::size_t k = 0; k < order.size(); ++k) {
        const std::size_t links = order[k].group->links().size();
        const std::span<const double> shares = std::span<const double>(given_).subspan(first, links);
        const bool counts = std::any_of(shares.begin(), shares.end(), [](double share) { return share > 0; });
        SetProgress(counts ? guarantee * order[k].weight : 0.0, k, order[k].group);
        AddSpare(order.subspan(k, 1), shares, capacity);
        first += links;
      }
    }
    return std::accumulate(changed_.begin(), changed_.end(), std::size_t{0});
  }
  Sharing sharing() const override { return Sharing::kAll; }
  bool needs_sizes() const override { return true; }

 private:
  void CollectTenants(std::span<const RankedGroup> order) {
    demand_.clear();
    for (const RankedGroup& ranked : order) {
      for (std::size_t local = 0; local < ranked.group->links().size(); ++local) {
        demand_.push_back(ranked.group->Count(local) > 0 ? std::max(0.0, ranked.group->Load(local)) : 0.0);
      }
    }
    tenants_.clear();
    std::span<const double> rest = demand_;
    for (const RankedGroup& ranked : order) {
      const auto links = ranked.group->links();
      tenants_.push_back({links, rest.first(links.size()), ranked.weight});
      rest = rest.subspan(links.size());
    }
  }

  /// `progress` is bytes per tick on the link with most demand.
  void SetProgress(double progress, std::size_t k, FlowGroup* group) {
    const double largest = shares_.largest_demand(k);
    const double before = group->proportional();
    group->SetProportional(largest > 0 ? progress / largest : 0.0);
    changed_.push_back(group->proportional() != before ? group->live() : 0);
  }

  /// What a coflow has on each link beyond its proportional part.
  void AddSpare(std::span<const RankedGroup> one, std::span<const double> shares, std::span<const double> capacity) {
    constexpr double kRoomSlack = 1e-9;  // relative to the capacity; below it is rounding
    FlowGroup* group = one.front().group;
    const auto links = group->links();
    spare_.resize(links.size());
    for (std::size_t local = 0; local < links.size(); ++local) {
      const double spare = shares[local] - group->Use(local);
      spare_[local] = spare > capacity[links[local]] * kRoomSlack ? spare : 0.0;
    }
    changed_.back() = std::max(
        changed_.back(), group->has_inner_links() ? FillPaths(one, capacity.size()) : ordered_.Fill(group, spare_));
  }

  std::size_t FillPaths(std::span<const RankedGroup> one, std::size_t links) {
    room_.assign(links, 0.0);
    const auto of_group = one.front().group->links();
    for (std::size_t local = 0; local < of_group.size(); ++local) {
      room_[of_group[local]] = spare_[local];
    }
    filling_.Open(room_);
    return filling_.Fill(one);
  }

  bool hug_;
  CorrelatedShares shares_;
  OrderedFilling ordered_;      ///< Of groups without inner links,
  ProgressiveFilling filling_;  ///< and of others.
  std::vector<CorrelatedTenant> tenants_;
  std::vector<double> demand_;        ///< By tenant, then by local link; so are the shares.
  std::vector<double> given_;         ///< Shares, or progress by tenant.
  std::vector<double> spare_;         ///< By local link.
  std::vector<double> room_;          ///< By link.
  std::vector<std::size_t> changed_;  ///< By tenant: flows with another rate than before.
};

}  // namespace

std::unique_ptr<RateAllocator> MakeCorrelatedRate(const RateOptions& options) {
  if (options.name != "drf" && options.name != "hug") {
    return nullptr;
  }
  return std::make_unique<CorrelatedRate>(options.name == "hug");
}

}  // namespace weir::scheduler
