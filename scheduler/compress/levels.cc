#include "scheduler/compress/levels.h"

#include <algorithm>

namespace weir::scheduler {

void ShareLastLevel(const ActiveTable& table, int levels, std::vector<std::uint32_t>* order) {
  const auto own = static_cast<std::size_t>(levels - 1);
  if (order->size() <= own + 1) {
    return;
  }
  const auto tail = order->begin() + static_cast<std::ptrdiff_t>(own);
  std::sort(tail, order->end(), [&](std::uint32_t a, std::uint32_t b) {
    return table.arrival[a] != table.arrival[b] ? table.arrival[a] < table.arrival[b] : table.id[a] < table.id[b];
  });
}

}  // namespace weir::scheduler
