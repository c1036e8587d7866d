#include "scheduler/order/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::scheduler {
namespace {

constexpr std::array kOrders = {
    OrderInfo{"fifo", "first come, first served", "Orchestra, SIGCOMM 2011"},
    OrderInfo{"scf", "fewest bytes left first", "Varys, SIGCOMM 2014 (baseline)"},
    OrderInfo{"ncf", "fewest flows on the narrow side first", "Varys, SIGCOMM 2014 (baseline)"},
    OrderInfo{"lcf", "shortest longest flow first", "Varys, SIGCOMM 2014 (baseline)"},
    OrderInfo{"sebf", "smallest bottleneck of the bytes left first", "Varys, SIGCOMM 2014"},
    OrderInfo{"edf", "earliest deadline first, then sebf; admission=on: only admitted ones, which are met",
              "Varys, SIGCOMM 2014"},
    OrderInfo{"bssi", "primal-dual order on the bytes left", "Sincronia, SIGCOMM 2018"},
    OrderInfo{"ls", "local search over orders, ports taken as independent, from sebf and bssi", "Weir"},
    OrderInfo{"dclas", "queues by bytes sent, first come inside", "Aalo, SIGCOMM 2015"},
    OrderInfo{"saath", "queues by largest flow sent x flows, least contention inside", "Saath, CoNEXT 2017"},
    OrderInfo{"philae", "pilot flows once, then smallest estimated size", "Philae, arXiv 1906.02282"},
    OrderInfo{"pilots", "pilot flows; local search on estimated sizes, estimated anew as flows end", "Weir"},
};

}  // namespace

std::span<const OrderInfo> Orders() {
  return kOrders;
}

Result<std::unique_ptr<Order>> MakeOrder(const OrderOptions& options) {
  for (auto* make : {&MakeKnownSizeOrder, &MakeDeadlineOrder, &MakePrimalDualOrder, &MakeLocalSearchOrder,
                     &MakeAttainedOrder, &MakePilotOrder}) {
    auto order = make(options);
    if (order == nullptr) {
      continue;
    }
    if (options.age_bound > 0 && !order->needs_sizes()) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("policy key age_bound: order {} does not know sizes, which isolation is computed from; "
                               "allowed with: scf, lcf, sebf, edf, bssi, ls",
                               options.name));
    }
    if (options.admission && (options.name != "edf" || options.age_bound > 0)) {
      return Error(StatusCode::kInvalidArgument,
                   "policy key admission: allowed with order=edf and without age_bound, which would break promises");
    }
    return options.age_bound > 0 ? MakeAgeBound(std::move(order), options.age_bound) : std::move(order);
  }
  std::string names;
  for (const OrderInfo& info : kOrders) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return Error(StatusCode::kNotFound, fmt::format("order \"{}\" is not known; allowed: {}", options.name, names));
}

void SortByKey(const ActiveTable& table, const std::vector<double>& key, std::vector<std::uint32_t>* order) {
  order->assign(table.live().begin(), table.live().end());
  std::sort(order->begin(), order->end(), [&](std::uint32_t a, std::uint32_t b) {
    if (key[a] != key[b]) {
      return key[a] < key[b];
    }
    return table.arrival[a] != table.arrival[b] ? table.arrival[a] < table.arrival[b] : table.id[a] < table.id[b];
  });
}

}  // namespace weir::scheduler
