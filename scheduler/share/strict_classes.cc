#include "scheduler/share/strict_classes.h"

#include <algorithm>

namespace weir::scheduler {

void StrictClasses::Select(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of,
                           std::size_t which) {
  selected_.clear();
  flow_of_.clear();
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    if (class_of[i] != which) continue;
    selected_.push_back(flows[i]);
    flow_of_.push_back(i);
  }
}

/// What each class would have if its floor were all there is.
void StrictClasses::Reserve(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of,
                            std::span<const double> floors, std::span<const BytesPerSecond> room) {
  reserved_.assign(floors.size() * room.size(), 0.0);
  for (std::size_t c = 1; c < floors.size(); ++c) {
    if (floors[c] <= 0) continue;
    Select(flows, class_of, c);
    available_.assign(room.begin(), room.end());
    for (BytesPerSecond& each : available_) each *= floors[c];
    max_min_.Fill(selected_, available_, rates_);
    for (std::size_t link = 0; link < room.size(); ++link) {
      reserved_[c * room.size() + link] = floors[c] * room[link] - available_[link];
    }
  }
}

void StrictClasses::FillClass(std::size_t which, std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates) {
  const std::size_t links = room.size();
  available_.assign(room.begin(), room.end());
  for (std::size_t c = which + 1; c * links < reserved_.size(); ++c) {
    for (std::size_t link = 0; link < links; ++link) available_[link] -= reserved_[c * links + link];
  }
  for (BytesPerSecond& each : available_) each = std::max(each, 0.0);
  for (std::size_t link = 0; link < links; ++link) room[link] -= available_[link];
  max_min_.Fill(selected_, available_, rates_);
  for (std::size_t link = 0; link < links; ++link) room[link] += available_[link];
  for (std::size_t i = 0; i < flow_of_.size(); ++i) rates[flow_of_[i]] = rates_[i];
}

/// A class may in the end take less of a link than was kept for it, because another link of its flows is full.
void StrictClasses::Backfill(std::span<BytesPerSecond> room, std::vector<BytesPerSecond>& rates) {
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    const BytesPerSecond got = rates[flow_of_[i]];
    selected_[i].cap = got < selected_[i].cap ? selected_[i].cap - got : 0;  // Both may be infinite.
  }
  max_min_.Fill(selected_, room, rates_);
  for (std::size_t i = 0; i < flow_of_.size(); ++i) rates[flow_of_[i]] += rates_[i];
}

void StrictClasses::Fill(std::span<const ShareFlow> flows, std::span<const std::uint8_t> class_of,
                         std::span<const double> floors, std::span<BytesPerSecond> room,
                         std::vector<BytesPerSecond>& rates) {
  rates.assign(flows.size(), 0.0);
  Reserve(flows, class_of, floors, room);
  for (std::size_t c = 0; c < floors.size(); ++c) {
    Select(flows, class_of, c);
    FillClass(c, room, rates);
  }
  for (std::size_t c = 0; c < floors.size(); ++c) {
    Select(flows, class_of, c);
    Backfill(room, rates);
  }
}

}  // namespace weir::scheduler
