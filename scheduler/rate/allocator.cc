#include "scheduler/rate/allocator.h"

#include <fmt/format.h>

#include <array>

namespace weir::scheduler {
namespace {

constexpr std::array kRates = {
    RateInfo{"matching", "a port serves one flow at a time at full rate, largest loads first",
             "Sincronia, SIGCOMM 2018"},
    RateInfo{"maxmin", "coflow by coflow in order, max-min inside each on what is left", "Sincronia, SIGCOMM 2018"},
    RateInfo{"greedy", "flow by flow in order, largest loads first, each as fast as it can", "Sincronia, SIGCOMM 2018"},
    RateInfo{"madd", "a coflow's flows end together; backfill=off leaves the rest unused", "Varys, SIGCOMM 2014"},
    RateInfo{"queues", "queues of the order one after the other, max-min inside", "Aalo, SIGCOMM 2015"},
    RateInfo{"weighted", "all at once, weighted max-min, more for the first queues", "Aalo, SIGCOMM 2015"},
    RateInfo{"drf", "all coflows at once, progress max-min fair; the order has no say", "DRF, NSDI 2011"},
    RateInfo{"hug", "all coflows at equal progress, then the rest, capped so that lying does not pay",
             "HUG, NSDI 2016"},
    RateInfo{"fair", "all flows at once, max-min; the order has no say", "Bertsekas and Gallager, Data Networks"},
};

}  // namespace

std::span<const RateInfo> Rates() {
  return kRates;
}

Result<std::unique_ptr<RateAllocator>> MakeRate(const RateOptions& options) {
  if (options.name == kMatching) {
    return nullptr;
  }
  for (auto* make : {&MakeMaxMinRate, &MakeMaddRate, &MakeGreedyRate, &MakeCorrelatedRate}) {
    if (auto rate = make(options)) {
      return rate;
    }
  }
  std::string names;
  for (const RateInfo& info : kRates) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return Error(StatusCode::kNotFound, fmt::format("rate \"{}\" is not known; allowed: {}", options.name, names));
}

}  // namespace weir::scheduler
