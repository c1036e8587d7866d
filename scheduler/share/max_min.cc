#include "scheduler/share/max_min.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {

void MaxMin::Open(std::span<const ShareFlow> flows, std::size_t links) {
  weight_on_link_.resize(std::max(weight_on_link_.size(), links), 0.0);
  full_.resize(std::max(full_.size(), links), false);
  growing_.clear();
  touched_.clear();
  level_ = 0;
  for (std::uint32_t i = 0; i < flows.size(); ++i) {
    growing_.push_back(i);
    for (const LinkIndex link : flows[i].links) {
      if (weight_on_link_[link] == 0) touched_.push_back(link);
      weight_on_link_[link] += flows[i].weight;
    }
  }
}

/// How much the rate per weight can still grow before the next flow or link is full.
double MaxMin::Step(std::span<const ShareFlow> flows, std::span<const BytesPerSecond> room) const {
  double step = std::numeric_limits<double>::infinity();
  for (const LinkIndex link : touched_) {
    if (weight_on_link_[link] > 0) step = std::min(step, std::max(room[link], 0.0) / weight_on_link_[link]);
  }
  for (const std::uint32_t i : growing_) step = std::min(step, flows[i].cap / flows[i].weight - level_);
  return std::max(step, 0.0);
}

void MaxMin::Advance(std::span<const ShareFlow> flows, double step, std::span<BytesPerSecond> room,
                     std::vector<BytesPerSecond>& rates) {
  level_ += step;
  for (const LinkIndex link : touched_) {
    if (weight_on_link_[link] <= 0) continue;
    const double before = room[link];
    room[link] = std::max(before - step * weight_on_link_[link], 0.0);
    // Relative to what was left, because subtraction leaves a rest of the size of a rounding error on a full link.
    full_[link] = room[link] <= std::max(before, step * weight_on_link_[link]) * 1e-9;
    if (full_[link]) room[link] = 0;
  }
  const auto stops = [&](std::uint32_t i) {
    const ShareFlow& flow = flows[i];
    const bool at_cap = flow.cap <= level_ * flow.weight * (1 + 1e-12);
    const bool blocked = std::ranges::any_of(flow.links, [&](LinkIndex link) { return full_[link]; });
    if (!at_cap && !blocked) return false;
    rates[i] = at_cap ? flow.cap : level_ * flow.weight;
    return true;
  };
  std::erase_if(growing_, stops);
  // Weights are summed anew: taking them away one by one would leave rounding errors that look like a claimant.
  for (const LinkIndex link : touched_) weight_on_link_[link] = 0;
  for (const std::uint32_t i : growing_) {
    for (const LinkIndex link : flows[i].links) weight_on_link_[link] += flows[i].weight;
  }
}

void MaxMin::Fill(std::span<const ShareFlow> flows, std::span<BytesPerSecond> room,
                  std::vector<BytesPerSecond>& rates) {
  rates.assign(flows.size(), 0.0);
  Open(flows, room.size());
  while (!growing_.empty()) {
    const double step = Step(flows, room);
    if (step == std::numeric_limits<double>::infinity()) {  // Neither cap nor link bounds what is left.
      for (const std::uint32_t i : growing_) rates[i] = flows[i].cap;
      break;
    }
    Advance(flows, step, room, rates);
  }
  for (const LinkIndex link : touched_) {
    weight_on_link_[link] = 0;
    full_[link] = false;
  }
}

}  // namespace weir::scheduler
