#include "scheduler/live/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace weir::scheduler {
namespace {

constexpr std::size_t kPrefetched = 32;  // Flows of one coflow. Behind them the processor has enough under way.

constexpr double kNoCapacity = 1e100;

/// Room for chunks of every size next to each other: a chunk is at most half empty, and as much again may lie idle in
/// sizes that are not asked for now.
constexpr std::size_t kPoolSlack = 4;

Status Invalid(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}

/// Lowest index last, so that it is taken first.
void FillFree(std::vector<std::uint32_t>* free, std::uint32_t count) {
  free->resize(count);
  std::iota(free->rbegin(), free->rend(), 0u);
}

}  // namespace

LiveFabric::LiveFabric(std::span<const WholeRate> capacities, const LiveLimits& table_limits)
    : limits(table_limits),
      capacity(capacities.size()),
      seconds_per_byte(capacities.size()),
      live(limits.coflows, 0),
      id(limits.coflows),
      arrival(limits.coflows, 0),
      given_key(limits.coflows, 0),
      bytes_left(limits.coflows, 0),
      as_of(limits.coflows, kAlways),
      flows_of(limits.coflows),
      rows_of(limits.coflows),
      coflow_of(limits.flows, kNobody),
      remaining(limits.flows, 0),
      moved_part(limits.flows, 0),
      rate(limits.flows, 0),
      path_of(limits.flows),
      seen_(capacities.size(), 0),
      row_index_(capacities.size(), 0) {
  for (LinkIndex link = 0; link < links(); ++link) {
    SetCapacity(link, capacities[link]);
  }
  FillFree(&free_slots_, limits.coflows);
  FillFree(&free_flows_, limits.flows);
  const std::size_t entries = std::size_t{limits.flows} * limits.hops;
  flow_lists.Reserve(kPoolSlack * limits.flows);
  rows.Reserve(kPoolSlack * entries);
  hops.Reserve(kPoolSlack * entries);
}

Status LiveFabric::ValidCapacity(LinkIndex link, WholeRate value) {
  if (value < 0 || value > kMaxLiveCapacity) {
    return Invalid(
        fmt::format("link {} has a capacity of {} bytes/s; allowed are 0 to {}", link, value, kMaxLiveCapacity));
  }
  return Status::Ok();
}

Status LiveFabric::ValidFlow(const LiveFlow& flow, std::size_t position) {
  if (flow.bytes < 0 || flow.bytes > kMaxCoflowBytes) {
    return Invalid(fmt::format("flow {} has {} bytes; allowed are 0 to {}, all of a coflow", position, flow.bytes,
                               kMaxCoflowBytes));
  }
  if (flow.path.empty()) {
    return Invalid(fmt::format("flow {} has no path; it needs at least one link", position));
  }
  ++stamp_;
  for (const LinkIndex link : flow.path) {
    if (link >= links()) {
      return Invalid(fmt::format("flow {} crosses link {}; there are links 0 to {}", position, link, links() - 1));
    }
    if (seen_[link] == stamp_) {
      return Invalid(fmt::format("flow {} crosses link {} twice", position, link));
    }
    seen_[link] = stamp_;
  }
  return Status::Ok();
}

Status LiveFabric::ValidCoflow(const LiveCoflow& coflow) {
  if (coflow.flows.empty()) {
    return Invalid(fmt::format("coflow {} has no flows", coflow.id.value));
  }
  if (!(std::abs(coflow.key) <= std::numeric_limits<double>::max())) {
    return Invalid(fmt::format("coflow {} has the key {}; it must be finite", coflow.id.value, coflow.key));
  }
  if (free_slots_.empty() || coflow.flows.size() > free_flows_.size()) {
    return Status(
        StatusCode::kResourceExhausted,
        fmt::format("coflow {} with {} flows does not fit: {} of {} coflows and {} of {} flows are in use",
                    coflow.id.value, coflow.flows.size(), coflow_count, limits.coflows, flow_count, limits.flows));
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < coflow.flows.size(); ++i) {
    if (Status status = ValidFlow(coflow.flows[i], i); !status.ok()) {
      return status;
    }
    if (coflow.flows[i].bytes > kMaxCoflowBytes - total) {
      return Invalid(fmt::format("coflow {} has more than {} bytes", coflow.id.value, kMaxCoflowBytes));
    }
    total += coflow.flows[i].bytes;
  }
  return Status::Ok();
}

CoflowSlot LiveFabric::Add(const LiveCoflow& coflow) {
  const CoflowSlot slot = free_slots_.back();
  free_slots_.pop_back();
  live[slot] = 1;
  id[slot] = coflow.id;
  arrival[slot] = coflow.arrival;
  given_key[slot] = coflow.key;
  bytes_left[slot] = 0;
  ++coflow_count;
  ++stamp_;
  for (const LiveFlow& flow : coflow.flows) {
    AddFlow(slot, flow);
  }
  return slot;
}

void LiveFabric::AddFlow(CoflowSlot slot, const LiveFlow& flow) {
  const FlowIndex index = free_flows_.back();
  free_flows_.pop_back();
  ++flow_count;
  coflow_of[index] = slot;
  remaining[index] = flow.bytes;
  moved_part[index] = 0;
  rate[index] = 0;
  bytes_left[slot] += flow.bytes;
  flow_lists.Append(&flows_of[slot], index);
  longest_path = std::max(longest_path, static_cast<std::uint32_t>(flow.path.size()));
  for (const LinkIndex link : flow.path) {
    if (seen_[link] != stamp_) {
      seen_[link] = stamp_;
      row_index_[link] = rows_of[slot].size;
      rows.Append(&rows_of[slot], Row{link, 0, 0});
    }
    Row& row = rows.Of(rows_of[slot])[row_index_[link]];
    ++row.flows;
    row.load += flow.bytes;
    hops.Append(&path_of[index], Hop{link, row_index_[link]});
  }
}

void LiveFabric::Remove(CoflowSlot slot) {
  for (const FlowIndex flow : Flows(slot)) {
    coflow_of[flow] = kNobody;
    rate[flow] = 0;
    hops.Release(&path_of[flow]);
    free_flows_.push_back(flow);
    --flow_count;
  }
  flow_lists.Release(&flows_of[slot]);
  rows.Release(&rows_of[slot]);
  live[slot] = 0;
  SetMoving(slot, false);
  free_slots_.push_back(slot);
  --coflow_count;
}

void LiveFabric::RemoveFlow(FlowIndex flow) {
  ChangeRemaining(flow, {});
  const CoflowSlot slot = coflow_of[flow];
  const auto mine = rows.Of(rows_of[slot]);
  for (const Hop& hop : Path(flow)) {
    --mine[hop.row].flows;
  }
  const auto list = Flows(slot);
  flow_lists.Erase(&flows_of[slot], static_cast<std::size_t>(std::ranges::find(list, flow) - list.begin()), 1);
  hops.Release(&path_of[flow]);
  coflow_of[flow] = kNobody;
  rate[flow] = 0;
  free_flows_.push_back(flow);
  --flow_count;
}

void LiveFabric::SetRemaining(FlowIndex flow, std::int64_t bytes) {
  Settle(coflow_of[flow]);
  ChangeRemaining(flow, {bytes, 0});
}

void LiveFabric::ChangeRemaining(FlowIndex flow, const Left& left) {
  const CoflowSlot slot = coflow_of[flow];
  const std::int64_t change = left.bytes - remaining[flow];
  remaining[flow] = left.bytes;
  moved_part[flow] = left.moved_part;
  bytes_left[slot] += change;
  const auto mine = rows.Of(rows_of[slot]);
  for (const Hop& hop : Path(flow)) {
    mine[hop.row].load += change;
  }
}

void LiveFabric::Advance(Nanoseconds duration) {
  now += std::clamp<Nanoseconds>(duration, 0, kAlways - now);
}

void LiveFabric::Settle(CoflowSlot slot) {
  if (as_of[slot] >= now) {
    return;
  }
  const Nanoseconds duration = now - as_of[slot];
  as_of[slot] = now;
  for (const FlowIndex flow : Flows(slot)) {
    if (rate[flow] > 0) {
      ChangeRemaining(flow, LeftAfter(flow, duration));
    }
  }
}

std::int64_t LiveFabric::Remaining(FlowIndex flow) const {
  const Nanoseconds settled = as_of[coflow_of[flow]];
  return settled < now ? LeftAfter(flow, now - settled).bytes : remaining[flow];
}

/// In whole numbers, so that two steps make as much as one. Each product fits: rate and time are split at 1e9.
LiveFabric::Left LiveFabric::LeftAfter(FlowIndex flow, Nanoseconds duration) const {
  const WholeRate speed = rate[flow];
  const std::int64_t left = remaining[flow];
  const std::int64_t seconds = duration / kSecond;
  if (seconds > 0 && speed > 0 && seconds > left / speed) {
    return {};
  }
  const std::int64_t rest = duration % kSecond;
  const std::int64_t parts = speed % kSecond * rest + moved_part[flow];
  const std::int64_t moved = speed * seconds + speed / kSecond * rest + parts / kSecond;
  return moved < left ? Left{left - moved, static_cast<std::uint32_t>(parts % kSecond)} : Left{};
}

void LiveFabric::Prefetch(std::span<const CoflowSlot> visits) const {
  constexpr std::size_t kPaths = 2;
  constexpr std::size_t kPathsOf = 4;
  constexpr std::size_t kLists = 6;
  constexpr std::size_t kListsOf = 12;
  if (visits.size() <= kListsOf) return;
  __builtin_prefetch(&flows_of[visits[kListsOf]]);
  __builtin_prefetch(Flows(visits[kLists]).data());
  PrefetchPathsOf(visits[kPathsOf]);
  PrefetchPaths(visits[kPaths]);
}

void LiveFabric::PrefetchPathsOf(CoflowSlot slot) const {
  const auto flows = Flows(slot);
  for (const FlowIndex flow : flows.first(std::min(flows.size(), kPrefetched))) __builtin_prefetch(&path_of[flow]);
}

void LiveFabric::PrefetchPaths(CoflowSlot slot) const {
  const auto flows = Flows(slot);
  for (const FlowIndex flow : flows.first(std::min(flows.size(), kPrefetched))) __builtin_prefetch(Path(flow).data());
}

LiveFabric::Busiest LiveFabric::BusiestLink(CoflowSlot slot) const {
  Busiest busiest;
  const auto mine = Rows(slot);
  for (std::uint32_t row = 0; row < mine.size(); ++row) {
    const double seconds = SecondsOf(mine[row]);
    if (seconds > busiest.seconds) {
      busiest = {seconds, row};
    }
  }
  return busiest;
}

void LiveFabric::SetCapacity(LinkIndex link, WholeRate value) {
  capacity[link] = value;
  seconds_per_byte[link] = SecondsPerByte(value);
}

double LiveFabric::SecondsPerByte(WholeRate value) {
  return value > 0 ? 1.0 / static_cast<double>(value) : kNoCapacity;
}

}  // namespace weir::scheduler
