#include <algorithm>
#include <limits>
#include <numeric>

#include "scheduler/rate/allocator.h"
#include "scheduler/rate/progressive_filling.h"

namespace weir::scheduler {
namespace {

/// Minimum allocation for desired duration (Varys, section 5.2): a coflow's flows get just the rates with which they
/// all end when its bottleneck does, in order, on what the coflows before left; one that finds a link of its own full
/// gets nothing. With backfill, what is left over goes to the coflows in order, max-min among the flows of each.
class MaddRate final : public RateAllocator {
 public:
  explicit MaddRate(bool backfill) : backfill_(backfill) {}

  std::size_t Allocate(std::span<const RankedGroup> order, std::span<const double> capacity) override {
    filling_.Open(capacity);
    others_.clear();
    for (const RankedGroup& ranked : order) {
      FlowGroup& group = *ranked.group;
      const double before = group.proportional();
      group.SetProportional(PerTick(group, capacity));
      const auto links = group.links();
      for (std::size_t local = 0; local < links.size(); ++local) {
        filling_.Take(links[local], group.Use(local));
      }
      others_.push_back(group.proportional() != before ? group.live() : 0);
    }
    for (std::size_t i = 0; backfill_ && i < order.size(); ++i) {
      others_[i] = std::max(others_[i], filling_.Fill(order.subspan(i, 1)));
    }
    return std::accumulate(others_.begin(), others_.end(), std::size_t{0});
  }

  bool needs_sizes() const override { return true; }

 private:
  /// One over the time the slowest link needs for the group's bytes; 0 if one has no room.
  double PerTick(const FlowGroup& group, std::span<const double> capacity) const {
    constexpr double kRoomSlack = 1e-9;  // relative to the capacity; below it is rounding
    double per_tick = std::numeric_limits<double>::infinity();
    const auto links = group.links();
    for (std::size_t local = 0; local < links.size(); ++local) {
      const std::uint32_t link = links[local];
      if (group.Count(local) == 0 || group.Load(local) <= 0) {
        continue;
      }
      if (filling_.room()[link] <= capacity[link] * kRoomSlack) {
        return 0;
      }
      per_tick = std::min(per_tick, filling_.room()[link] / group.Load(local));
    }
    return per_tick == std::numeric_limits<double>::infinity() ? 0 : per_tick;
  }

  bool backfill_;
  ProgressiveFilling filling_;
  std::vector<std::size_t> others_;  // by place in the order: flows with another rate than before
};

}  // namespace

std::unique_ptr<RateAllocator> MakeMaddRate(const RateOptions& options) {
  return options.name == "madd" ? std::make_unique<MaddRate>(options.backfill) : nullptr;
}

}  // namespace weir::scheduler
