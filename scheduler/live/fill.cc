#include "scheduler/live/fill.h"

#include <algorithm>

namespace weir::scheduler {

RateFill::RateFill(std::uint32_t links, std::uint32_t flows, std::uint32_t hops)
    : local_(links, 0), stamp_at_(links, 0) {
  for (auto* by_link : {&open_flows_, &list_begin_, &links_left_}) {
    by_link->reserve(links + 1);
  }
  left_.reserve(links);
  uses_.reserve(links);
  rates_.reserve(flows);
  position_.reserve(flows);
  hops_begin_.reserve(flows + 1);
  closed_.reserve(flows);
  list_.reserve(std::size_t{flows} * hops);
  hops_.reserve(std::size_t{flows} * hops);
}

void RateFill::Fill(const LiveFabric& fabric, std::span<const FlowIndex> flows, LiveRates how,
                    std::vector<WholeRate>* room) {
  Open(fabric, flows, *room);
  if (position_.empty()) {
    return;
  }
  if (how == LiveRates::kMaxMin && position_.size() > 1) {
    ListFlowsOfLinks();
    Progressive();
  }
  TakeAll();
  for (std::size_t i = 0; i < uses_.size(); ++i) {
    WholeRate& at_link = (*room)[uses_[i].link];
    uses_[i].rate = at_link - left_[i];
    at_link = left_[i];
  }
}

/// Finds the flows that can have anything and numbers the links they cross.
void RateFill::Open(const LiveFabric& fabric, std::span<const FlowIndex> flows, const std::vector<WholeRate>& room) {
  ++stamp_;
  rates_.assign(flows.size(), 0);
  uses_.clear();
  left_.clear();
  open_flows_.clear();
  position_.clear();
  hops_.clear();
  hops_begin_.assign(1, 0);
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    const auto path = fabric.Path(flows[i]);
    if (std::ranges::all_of(path, [&](const LiveFabric::Hop& hop) { return room[hop.link] > 0; })) {
      OpenFlow(path, i, room);
    }
  }
}

void RateFill::OpenFlow(std::span<const LiveFabric::Hop> path, std::uint32_t position,
                        const std::vector<WholeRate>& room) {
  position_.push_back(position);
  for (const LiveFabric::Hop& hop : path) {
    if (stamp_at_[hop.link] != stamp_) {
      stamp_at_[hop.link] = stamp_;
      local_[hop.link] = static_cast<std::uint32_t>(uses_.size());
      uses_.push_back({hop.link, 0});
      left_.push_back(room[hop.link]);
      open_flows_.push_back(0);
    }
    ++open_flows_[local_[hop.link]];
    hops_.push_back(local_[hop.link]);
  }
  hops_begin_.push_back(static_cast<std::uint32_t>(hops_.size()));
}

std::span<const std::uint32_t> RateFill::LinksOf(std::size_t open) const {
  return {hops_.data() + hops_begin_[open], hops_begin_[open + 1] - hops_begin_[open]};
}

void RateFill::ListFlowsOfLinks() {
  const std::size_t links = uses_.size();
  list_begin_.assign(links + 1, 0);
  for (std::size_t i = 0; i + 1 < links; ++i) {
    list_begin_[i + 1] = list_begin_[i] + open_flows_[i];
  }
  list_.resize(hops_.size());
  for (std::uint32_t open = 0; open < position_.size(); ++open) {
    for (const std::uint32_t link : LinksOf(open)) {
      list_[list_begin_[link]++] = open;
    }
  }
  // Every begin has moved to the next one's place.
  std::copy_backward(list_begin_.begin(), list_begin_.end() - 1, list_begin_.end());
  list_begin_[0] = 0;
}

void RateFill::Progressive() {
  closed_.assign(position_.size(), 0);
  links_left_.resize(uses_.size());
  for (std::uint32_t i = 0; i < links_left_.size(); ++i) {
    links_left_[i] = i;
  }
  while (!links_left_.empty()) {
    CloseLink(Narrowest());
    std::erase_if(links_left_, [&](std::uint32_t link) { return open_flows_[link] == 0; });
  }
}

std::size_t RateFill::Narrowest() const {
  const auto narrower = [&](std::uint32_t a, std::uint32_t b) {
    const double share_a = static_cast<double>(left_[a]) / open_flows_[a];
    const double share_b = static_cast<double>(left_[b]) / open_flows_[b];
    return share_a != share_b ? share_a < share_b : uses_[a].link < uses_[b].link;
  };
  return *std::ranges::min_element(links_left_, narrower);
}

void RateFill::CloseLink(std::size_t at) {
  for (std::uint32_t i = list_begin_[at]; i < list_begin_[at + 1]; ++i) {
    const std::uint32_t open = list_[i];
    if (closed_[open] != 0) {
      continue;
    }
    const WholeRate claimants = open_flows_[at];
    Give(open, std::min((left_[at] + claimants - 1) / claimants, RoomOf(open)));
    closed_[open] = 1;
    for (const std::uint32_t link : LinksOf(open)) {
      --open_flows_[link];
    }
  }
}

/// In order, each flow takes all it can: the whole of greedy, and what rounding left of max-min.
void RateFill::TakeAll() {
  for (std::size_t open = 0; open < position_.size(); ++open) {
    Give(open, RoomOf(open));
  }
}

WholeRate RateFill::RoomOf(std::size_t open) const {
  WholeRate room = kMaxLiveCapacity;
  for (const std::uint32_t link : LinksOf(open)) {
    room = std::min(room, left_[link]);
  }
  return room;
}

void RateFill::Give(std::size_t open, WholeRate rate) {
  rates_[position_[open]] += rate;
  for (const std::uint32_t link : LinksOf(open)) {
    left_[link] -= rate;
  }
}

}  // namespace weir::scheduler
