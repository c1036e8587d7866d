#include <algorithm>
#include <map>

#include "scheduler/rate/allocator.h"
#include "scheduler/rate/progressive_filling.h"
#include "scheduler/rate/shared_filling.h"

namespace weir::scheduler {
namespace {

/// Level by level, weighted max-min among the flows of a level on what the levels before have left. With a level for
/// every coflow this is order-preserving max-min; a coflow that nothing has changed for keeps its rates.
class MaxMinRate final : public RateAllocator {
 public:
  explicit MaxMinRate(Sharing sharing) : sharing_(sharing) {}

  std::size_t Allocate(std::span<const RankedGroup> order, std::span<const double> capacity) override {
    filling_.Open(capacity);
    std::size_t changed = 0;
    for (std::size_t begin = 0; begin < order.size();) {
      std::size_t end = begin + 1;
      while (end < order.size() && order[end].level == order[begin].level) {
        ++end;
      }
      changed += FillLevel(order.subspan(begin, end - begin));
      begin = end;
    }
    return changed;
  }
  Sharing sharing() const override { return sharing_; }

 private:
  std::size_t FillLevel(std::span<const RankedGroup> groups) {
    if (groups.size() == 1) {
      return filling_.FillIfChanged(groups.front());
    }
    const auto needs_paths = [](const RankedGroup& ranked) { return ranked.group->has_inner_links(); };
    if (std::any_of(groups.begin(), groups.end(), needs_paths)) {
      return filling_.Fill(groups);
    }
    return filling_.FillShared(groups, &shared_[groups.front().level]);
  }

  Sharing sharing_;
  ProgressiveFilling filling_;
  std::map<std::uint32_t, SharedFilling> shared_;  // by level
};

}  // namespace

std::unique_ptr<RateAllocator> MakeMaxMinRate(const RateOptions& options) {
  const std::pair<std::string_view, Sharing> kinds[] = {{"maxmin", Sharing::kOrder},
                                                        {"queues", Sharing::kQueues},
                                                        {"weighted", Sharing::kWeighted},
                                                        {"fair", Sharing::kAll}};
  for (const auto& [name, sharing] : kinds) {
    if (options.name == name) {
      return std::make_unique<MaxMinRate>(sharing);
    }
  }
  return nullptr;
}

}  // namespace weir::scheduler
