#include "scheduler/rate/allocator.h"
#include "scheduler/rate/progressive_filling.h"

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
      changed +=
          end - begin == 1 ? filling_.FillIfChanged(order[begin]) : filling_.Fill(order.subspan(begin, end - begin));
      begin = end;
    }
    return changed;
  }
  Sharing sharing() const override { return sharing_; }

 private:
  Sharing sharing_;
  ProgressiveFilling filling_;
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
