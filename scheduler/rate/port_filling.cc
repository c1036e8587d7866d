#include "scheduler/rate/port_filling.h"

#include <limits>

namespace weir::scheduler {

void PortFilling::Fill(FlowGroup* group, std::span<double> room, std::span<const double> full_below) {
  const auto links = group->links();
  group->BeginFilling();
  shares_.Open(links.size());
  begin_.resize(links.size());
  for (std::size_t local = 0; local < links.size(); ++local) {
    const std::uint32_t link = links[local];
    begin_[local] = group->Count(local) > 0 && room[link] < full_below[link] ? 0 : room[link];
    shares_.Set(local, begin_[local], group->Count(local));
  }
  double share = shares_.FindFull();
  while (share < std::numeric_limits<double>::infinity()) {
    Close(group, share);
    share = shares_.FindFull();
  }
  for (std::size_t local = 0; local < links.size(); ++local) {
    room[links[local]] = shares_.room(local);
    group->AddUse(local, begin_[local] - shares_.room(local));
  }
}

/// Closes the ports that are full. Whatever rounding leaves of their room counts as used.
void PortFilling::Close(FlowGroup* group, double share) {
  double stopping = 0;
  for (const std::uint32_t local : shares_.full()) {
    stopping += shares_.weight(local);
  }
  const bool flow_by_flow = stopping < static_cast<double>(shares_.positions());
  for (const std::uint32_t local : shares_.full()) {
    if (flow_by_flow) {
      group->ClosePort(local, share,
                       [&](std::uint32_t first, std::uint64_t bits) { shares_.TakeAll(first, bits, share, 1); });
    } else {
      group->ClosePort(local, share, [](std::uint32_t, std::uint64_t) {});
    }
    shares_.Close(local);
  }
  if (!flow_by_flow) {
    CountAnew(*group, share);
  }
}

void PortFilling::CountAnew(const FlowGroup& group, double share) {
  for (std::uint32_t local = 0; local < shares_.positions(); ++local) {
    if (const double before = shares_.weight(local); before > 0) {
      if (const double stopped = before - group.GrowingOfPort(local); stopped > 0) {
        shares_.Take(local, share * stopped, stopped);
      }
    }
  }
}

}  // namespace weir::scheduler
