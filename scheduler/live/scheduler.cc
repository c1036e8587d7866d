#include "scheduler/live/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "coflow/check.h"

namespace weir::scheduler {
namespace {

/// From this share of the coflows on, sorting anew costs less than putting them in one by one.
constexpr std::uint32_t kManyShare = 8;
constexpr std::uint32_t kManyAtLeast = 64;
/// A visit of the sweep costs about as much as three coflows when everything is computed anew.
constexpr std::uint32_t kManyVisits = 256;

Status NoSuch(std::string_view what, std::uint32_t index) {
  return Status(StatusCode::kNotFound, fmt::format("there is no {} {}", what, index));
}

Status ValidLimits(std::size_t links, const LiveLimits& limits) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 26;  // Chunks are addressed with 32 bits, slack included.
  const std::uint64_t entries = std::uint64_t{limits.flows} * limits.hops;
  if (links == 0 || links > kMost || limits.coflows == 0 || limits.coflows > kMost || entries == 0 || entries > kMost) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} links, {} coflows, {} flows of {} links: allowed are 1 to {} of links, coflows and "
                              "flows x links",
                              links, limits.coflows, limits.flows, limits.hops, kMost));
  }
  return Status::Ok();
}

}  // namespace

Result<std::unique_ptr<LiveScheduler>> LiveScheduler::Make(std::span<const WholeRate> capacity,
                                                           const LiveOptions& options) {
  if (Status status = ValidLimits(capacity.size(), options.limits); !status.ok()) {
    return tl::unexpected(status);
  }
  for (LinkIndex link = 0; link < capacity.size(); ++link) {
    if (Status status = LiveFabric::ValidCapacity(link, capacity[link]); !status.ok()) {
      return tl::unexpected(status);
    }
  }
  return std::make_unique<LiveScheduler>(capacity, options);
}

LiveScheduler::LiveScheduler(std::span<const WholeRate> capacity, const LiveOptions& options)
    : options_(options),
      fabric_(capacity, options.limits),
      keys_(&fabric_, options.key),
      order_(fabric_, &keys_),
      queues_(fabric_, order_),
      allocation_(&fabric_),
      fill_(fabric_.links(), options.limits.flows, options.limits.hops),
      sweep_(&fabric_, order_, &queues_, &allocation_, &fill_),
      place_(options.limits.coflows, Place::kNone),
      marked_(options.limits.coflows, 0),
      new_key_(options.limits.coflows, 0),
      crossed_(capacity.size(), 0),
      room_(capacity.size(), 0) {
  for (auto* slots : {&marks_, &falling_, &rising_, &waiting_}) {
    slots->reserve(options.limits.coflows);
  }
  overtakers_.reserve(2 * std::size_t{options.limits.coflows});
}

Result<CoflowSlot> LiveScheduler::AddCoflow(const LiveCoflow& coflow) {
  if (Status status = fabric_.ValidCoflow(coflow); !status.ok()) {
    return tl::unexpected(status);
  }
  const CoflowSlot slot = fabric_.Add(coflow);
  place_[slot] = Place::kWaiting;
  waiting_.push_back(slot);
  return slot;
}

Status LiveScheduler::RemoveCoflow(CoflowSlot slot) {
  if (!fabric_.IsLive(slot)) {
    return NoSuch("coflow in slot", slot);
  }
  if (place_[slot] == Place::kPlaced) {
    Unplace(slot);
    order_.Take(slot);
    allocation_.Forget(slot);
  } else {
    std::erase(waiting_, slot);
  }
  place_[slot] = Place::kNone;
  fabric_.Remove(slot);
  return Status::Ok();
}

Status LiveScheduler::EndFlow(FlowIndex flow) {
  if (!fabric_.IsFlow(flow)) {
    return NoSuch("flow", flow);
  }
  const CoflowSlot slot = fabric_.coflow_of[flow];
  Mark(slot);
  if (place_[slot] == Place::kPlaced) {
    for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
      if (fabric_.Rows(slot)[hop.row].flows == 1) {
        GiveUp(hop.link, slot);
      }
    }
    queues_.EraseFlow(flow);
    sweep_.Force(slot);
  }
  fabric_.RemoveFlow(flow);
  return Status::Ok();
}

Status LiveScheduler::SetRemaining(FlowIndex flow, std::int64_t bytes) {
  if (!fabric_.IsFlow(flow)) {
    return NoSuch("flow", flow);
  }
  const CoflowSlot slot = fabric_.coflow_of[flow];
  fabric_.Settle(slot);
  const std::int64_t others = fabric_.bytes_left[slot] - fabric_.remaining[flow];
  if (bytes < 0 || bytes > kMaxCoflowBytes - others) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("flow {} has {} bytes left; allowed are 0 to {}", flow, bytes, kMaxCoflowBytes - others));
  }
  Mark(slot);
  fabric_.SetRemaining(flow, bytes);
  return Status::Ok();
}

Status LiveScheduler::SetKey(CoflowSlot slot, double key) {
  if (!fabric_.IsLive(slot)) {
    return NoSuch("coflow in slot", slot);
  }
  if (!std::isfinite(key)) {
    return Status(StatusCode::kInvalidArgument, fmt::format("the key of slot {} is {}; it must be finite", slot, key));
  }
  Mark(slot);
  fabric_.given_key[slot] = key;
  return Status::Ok();
}

Status LiveScheduler::SetCapacity(LinkIndex link, WholeRate capacity) {
  if (link >= fabric_.links()) {
    return NoSuch("link", link);
  }
  if (Status status = LiveFabric::ValidCapacity(link, capacity); !status.ok()) {
    return status;
  }
  sweep_.Touch(link);
  sweep_.Seed(link, 0);
  if (options_.key == LiveKey::kSebf) {
    MarkOnLink(link, capacity);
  }
  fabric_.SetCapacity(link, capacity);
  return Status::Ok();
}

/// Before its capacity changes: those for which it is the busiest link, those for which it will be, and those for which
/// it may have become that since they were settled.
void LiveScheduler::MarkOnLink(LinkIndex link, WholeRate capacity) {
  const double seconds_per_byte = LiveFabric::SecondsPerByte(capacity);
  for (const LinkQueues::Entry& entry : queues_.Entries(link)) {
    if (entry.row == keys_.busiest_row(entry.slot) || keys_.Falls(entry.slot) ||
        static_cast<double>(fabric_.Rows(entry.slot)[entry.row].load) * seconds_per_byte > keys_.key(entry.slot)) {
      Mark(entry.slot);
    }
  }
}

/// False if labels are new, so that what was announced to the sweep is void.
bool LiveScheduler::PlaceAll() {
  bool kept = true;
  for (const CoflowSlot slot : waiting_) {
    keys_.Set(slot, keys_.Find(slot));
    kept &= order_.Insert(slot);
    queues_.Insert(slot);
    sweep_.Force(slot);
    place_[slot] = Place::kPlaced;
  }
  waiting_.clear();
  return kept;
}

bool LiveScheduler::ManyWait() const {
  return waiting_.size() > kManyAtLeast + fabric_.coflow_count / kManyShare;
}

void LiveScheduler::Update() {
  allocation_.ClearChanged();
  if (!ManyWait() && RepairOrder() && PlaceAll() &&
      sweep_.Run(options_.rates, kManyVisits + fabric_.coflow_count / kManyShare)) {
    RelabelIfWanted();
  } else {
    ComputeAll();
  }
  EndLines();
}

void LiveScheduler::Recompute() {
  allocation_.ClearChanged();
  ComputeAll();
  EndLines();
}

void LiveScheduler::RelabelIfWanted() {
  if (order_.wants_labels()) {
    order_.Relabel();
    for (LinkIndex link = 0; link < fabric_.links(); ++link) {
      queues_.AfterRelabel(link);
      queues_.FindFullFrom(link);
    }
  }
}

/// Of all whose rates changed. The next comparison finds their keys anew.
void LiveScheduler::EndLines() {
  for (const FlowIndex flow : allocation_.changed()) {
    if (fabric_.IsFlow(flow)) {
      keys_.EndLine(fabric_.coflow_of[flow]);
    }
  }
}

void LiveScheduler::ComputeAll() {
  for (CoflowSlot slot = 0; slot < fabric_.live.size(); ++slot) {
    if (fabric_.live[slot] != 0) {
      keys_.Set(slot, keys_.Find(slot));
      place_[slot] = Place::kPlaced;
    }
    marked_[slot] = 0;
  }
  marks_.clear();
  waiting_.clear();
  ordered_at_ = fabric_.now;
  sweep_.Reset();
  order_.Rebuild();
  queues_.Clear();
  std::ranges::copy(fabric_.capacity, room_.begin());
  const std::span<const CoflowSlot> order = order_.order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    fabric_.Prefetch(order.subspan(i));
    const CoflowSlot slot = order[i];
    queues_.Append(slot);
    fill_.Fill(fabric_, fabric_.Flows(slot), options_.rates, &room_);
    if (fill_.uses().empty()) {
      allocation_.SetNothing(slot);
      continue;
    }
    allocation_.Set(slot, fill_.rates());
    for (const RateFill::Use& use : fill_.uses()) {
      if (use.rate > 0 || options_.rates == LiveRates::kMaxMin) {
        queues_.AppendUse(use.link, slot, use.rate);
      }
    }
  }
  queues_.CutHeads();
  for (LinkIndex link = 0; link < fabric_.links(); ++link) {
    queues_.FindFullFrom(link);
  }
}

}  // namespace weir::scheduler
