#include "scheduler/live/link_queues.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

constexpr std::size_t kPoolSlack = 4;  // As for the fabric's own tables.

}  // namespace

LinkQueues::LinkQueues(const LiveFabric& fabric, const RankedOrder& order)
    : fabric_(fabric),
      order_(order),
      queue_(fabric.links()),
      users_of_(fabric.links()),
      full_from_(fabric.links(), kNowhere) {
  const std::size_t entries = std::size_t{fabric.limits.flows} * fabric.limits.hops;
  entries_.Reserve(kPoolSlack * entries);
  users_.Reserve(kPoolSlack * entries);
  for (LinkIndex link = 0; link < fabric.links(); ++link) {
    FindFullFrom(link);
  }
}

/// Without branches: what is compared is not in the nearest cache, and a wrong guess would cost as much again.
std::size_t LinkQueues::Behind(LinkIndex link, std::uint64_t label) const {
  const auto entries = Entries(link);
  std::size_t first = 0;
  for (std::size_t rest = entries.size(); rest > 0;) {
    const std::size_t half = (rest + 1) / 2;
    first += half * static_cast<std::size_t>(order_.label(entries[first + half - 1].slot) <= label);
    rest -= half;
  }
  return first;
}

void LinkQueues::Insert(CoflowSlot slot) {
  const std::uint64_t label = order_.label(slot);
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
      entries_.Insert(&queue_[hop.link], Behind(hop.link, label), Entry{slot, flow});
    }
  }
}

void LinkQueues::Append(CoflowSlot slot) {
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
      entries_.Append(&queue_[hop.link], Entry{slot, flow});
    }
  }
}

void LinkQueues::Erase(CoflowSlot slot) {
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    if (row.flows > 0) {
      entries_.Erase(&queue_[row.link], Behind(row.link, order_.label(slot)) - row.flows, row.flows);
    }
  }
}

void LinkQueues::EraseFlow(FlowIndex flow) {
  const CoflowSlot slot = fabric_.coflow_of[flow];
  for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
    const auto entries = Entries(hop.link);
    std::size_t at = Behind(hop.link, order_.label(slot)) - 1;
    while (entries[at].flow != flow) {
      --at;
    }
    entries_.Erase(&queue_[hop.link], at, 1);
  }
}

bool LinkQueues::Carry(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label) {
  const auto entries = entries_.Of(queue_[link]);
  const std::size_t end = Behind(link, order_.label(slot));
  const std::size_t begin = end - flows;
  const auto at = [&](std::size_t index) { return entries.begin() + static_cast<std::ptrdiff_t>(index); };
  if (begin > 0 && order_.label(entries[begin - 1].slot) > label) {
    std::rotate(at(Behind(link, label)), at(begin), at(end));
    return true;
  }
  if (end < entries.size() && order_.label(entries[end].slot) < label) {
    std::rotate(at(begin), at(end), at(Behind(link, label)));
    return true;
  }
  return false;
}

void LinkQueues::Clear() {
  for (LinkIndex link = 0; link < queue_.size(); ++link) {
    queue_[link].size = 0;
    users_of_[link].size = 0;
  }
}

WholeRate LinkQueues::UsedBefore(LinkIndex link, std::uint64_t label) const {
  WholeRate used = 0;
  for (const User& user : Users(link)) {
    if (order_.label(user.slot) >= label) {
      break;
    }
    used += user.rate;
  }
  return used;
}

std::optional<WholeRate> LinkQueues::UseOf(LinkIndex link, CoflowSlot slot) const {
  const auto users = Users(link);
  const auto at = std::ranges::find(users, slot, &User::slot);
  return at == users.end() ? std::nullopt : std::optional(at->rate);
}

const LinkQueues::User* LinkQueues::NextUser(LinkIndex link, std::uint64_t label) const {
  const auto users = Users(link);
  const auto at = std::ranges::upper_bound(users, label, {}, [&](const User& user) { return order_.label(user.slot); });
  return at == users.end() ? nullptr : &*at;
}

void LinkQueues::SetUse(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> rate) {
  const auto users = users_.Of(users_of_[link]);
  const std::uint64_t label = order_.label(slot);
  const auto at = std::ranges::find_if(
      users, [&](const User& user) { return user.slot == slot || order_.label(user.slot) > label; });
  const bool found = at != users.end() && at->slot == slot;
  const auto position = static_cast<std::size_t>(at - users.begin());
  if (found && rate.has_value()) {
    at->rate = *rate;
  } else if (found) {
    users_.Erase(&users_of_[link], position, 1);
  } else if (rate.has_value()) {
    users_.Insert(&users_of_[link], position, User{slot, *rate});
  }
}

void LinkQueues::AppendUse(LinkIndex link, CoflowSlot slot, WholeRate rate) {
  users_.Append(&users_of_[link], User{slot, rate});
}

void LinkQueues::FindFullFrom(LinkIndex link) {
  WholeRate left = fabric_.capacity[link];
  full_from_[link] = left == 0 ? 0 : kNowhere;
  for (const User& user : Users(link)) {
    left -= user.rate;
    if (left == 0) {
      full_from_[link] = order_.label(user.slot);
      return;
    }
  }
}

}  // namespace weir::scheduler
