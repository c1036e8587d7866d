#include "scheduler/order/active_table.h"

#include <algorithm>

namespace weir::scheduler {

ActiveTable::ActiveTable(std::uint32_t links, std::uint32_t ports)
    : time_per_byte(links, 1.0), links_(links), ports_(ports) {}

std::uint32_t ActiveTable::AddSlot() {
  if (spare_.empty()) {
    const std::size_t slots = id.size() + 1;
    id.resize(slots);
    kin.resize(slots);
    weight.resize(slots);
    isolation.resize(slots);
    ended_squares.resize(slots);
    pilot_squares.resize(slots);
    for (auto* column : {&arrival, &deadline, &width, &narrow_side, &wide_side, &bytes_left, &longest_flow, &bytes_sent,
                         &largest_seen, &pilots_left, &flows_ended}) {
      column->resize(slots);
    }
    for (auto* rows :
         {&load, &flows_left, &attained, &ended_bytes, &ended_flows, &flows_at_arrival, &pilot_bytes, &pilot_flows}) {
      rows->resize(slots * links_);
    }
    spare_.push_back(static_cast<std::uint32_t>(slots - 1));
  }
  const std::uint32_t slot = spare_.back();
  spare_.pop_back();
  for (auto* column : {&arrival, &deadline, &width, &narrow_side, &wide_side, &bytes_left, &longest_flow, &bytes_sent,
                       &largest_seen, &pilots_left, &flows_ended}) {
    (*column)[slot] = 0;
  }
  for (auto* rows :
       {&load, &flows_left, &attained, &ended_bytes, &ended_flows, &flows_at_arrival, &pilot_bytes, &pilot_flows}) {
    std::ranges::fill(Row(rows, slot), 0);
  }
  kin[slot] = 0;
  weight[slot] = 1.0;
  ended_squares[slot] = 0;
  pilot_squares[slot] = 0;
  live_.push_back(slot);
  return slot;
}

void ActiveTable::FreeSlot(std::uint32_t slot) {
  std::erase(live_, slot);
  spare_.push_back(slot);
}

}  // namespace weir::scheduler
