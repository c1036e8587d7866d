#include "scheduler/live/link_queues.h"

#include <algorithm>

namespace weir::scheduler {
namespace {

constexpr std::size_t kPoolSlack = 4;  // As for the fabric's own tables.

/// A head gets so many entries more, and this share of all, when it is too short; it is cut when it has twice that.
constexpr std::size_t kHeadAtLeast = 32;
constexpr std::size_t kHeadShare = 16;

}  // namespace

LinkQueues::LinkQueues(const LiveFabric& fabric, const RankedOrder& order)
    : fabric_(fabric),
      order_(order),
      queue_(fabric.links()),
      head_(fabric.links(), 0),
      head_to_(fabric.links(), 0),
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
  const auto entries = Head(link);
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
    const auto path = fabric_.Path(flow);
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      Put(path[hop].link, label, EntryOf(slot, flow, path, hop));
    }
  }
}

/// Links at the ends of a path are those of hosts, which are full before those in between.
LinkQueues::Entry LinkQueues::EntryOf(CoflowSlot slot, FlowIndex flow, std::span<const LiveFabric::Hop> path,
                                      std::size_t hop) {
  const LiveFabric::Hop& other = 2 * hop < path.size() ? path.back() : path.front();
  return {slot, flow, other.link, path[hop].row};
}

void LinkQueues::Put(LinkIndex link, std::uint64_t label, const Entry& entry) {
  if (IsInHead(link, label)) {
    PutIntoHead(link, label, entry);
    CutHead(link, 2 * Target(link));
  } else {
    entries_.Append(&queue_[link], entry);
  }
}

/// The first of the rest makes room and becomes its last.
void LinkQueues::PutIntoHead(LinkIndex link, std::uint64_t label, const Entry& entry) {
  const auto at = static_cast<Index>(Behind(link, label));
  const std::uint32_t head = head_[link]++;
  entries_.Append(&queue_[link], entry);
  const auto all = All(link);
  all.back() = all[head];
  std::copy_backward(all.begin() + at, all.begin() + head, all.begin() + head + 1);
  all[static_cast<std::size_t>(at)] = entry;
}

void LinkQueues::Append(CoflowSlot slot) {
  for (const FlowIndex flow : fabric_.Flows(slot)) {
    const auto path = fabric_.Path(flow);
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      entries_.Append(&queue_[path[hop].link], EntryOf(slot, flow, path, hop));
    }
  }
}

void LinkQueues::Erase(CoflowSlot slot) {
  const std::uint64_t label = order_.label(slot);
  for (const LiveFabric::Row& row : fabric_.Rows(slot)) {
    if (row.flows > 0 && IsInHead(row.link, label)) {
      TakeFromHead(row.link, Behind(row.link, label) - row.flows, row.flows);
    } else {
      TakeFromRest(row.link, slot, row.flows);
    }
  }
}

/// The last of the rest fill what becomes free between it and the head.
void LinkQueues::TakeFromHead(LinkIndex link, std::size_t at, std::size_t count) {
  const auto all = All(link);
  const std::size_t kept = head_[link] - count;
  std::copy(all.begin() + static_cast<Index>(at + count), all.begin() + static_cast<Index>(kept + count),
            all.begin() + static_cast<Index>(at));
  const std::size_t moved = std::min(count, all.size() - head_[link]);
  std::copy(all.end() - static_cast<Index>(moved), all.end(), all.begin() + static_cast<Index>(kept));
  head_[link] = static_cast<std::uint32_t>(kept);
  queue_[link].size -= static_cast<std::uint32_t>(count);
}

void LinkQueues::TakeFromRest(LinkIndex link, CoflowSlot slot, std::size_t count) {
  const auto all = All(link);
  std::size_t end = all.size();
  for (std::size_t at = head_[link]; count > 0; ++at) {
    while (count > 0 && all[at].slot == slot) {
      all[at] = all[--end];
      --count;
    }
  }
  queue_[link].size = static_cast<std::uint32_t>(end);
}

void LinkQueues::EraseFlow(FlowIndex flow) {
  const std::uint64_t label = order_.label(fabric_.coflow_of[flow]);
  for (const LiveFabric::Hop& hop : fabric_.Path(flow)) {
    const auto all = All(hop.link);
    if (IsInHead(hop.link, label)) {
      std::size_t at = Behind(hop.link, label) - 1;
      while (all[at].flow != flow) {
        --at;
      }
      TakeFromHead(hop.link, at, 1);
    } else {
      *std::ranges::find(all.subspan(head_[hop.link]), flow, &Entry::flow) = all.back();
      --queue_[hop.link].size;
    }
  }
}

void LinkQueues::Carry(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label, bool alone) {
  const bool was_in_head = IsInHead(link, order_.label(slot));
  const bool is_in_head = IsInHead(link, label);
  if (was_in_head == is_in_head && (alone || !is_in_head)) {
    return;
  }
  if (!was_in_head) {
    CutHead(link, 2 * Target(link));
    if (IsInHead(link, label)) {
      CarryIntoHead(link, slot, flows, label);
    }
    return;
  }
  const std::size_t end = Behind(link, order_.label(slot));
  if (is_in_head) {
    CarryWithinHead(link, end - flows, end, label);
  } else {
    CarryOutOfHead(link, end - flows, end);
  }
}

void LinkQueues::CarryWithinHead(LinkIndex link, std::size_t begin, std::size_t end, std::uint64_t label) {
  const auto all = All(link);
  const auto at = [&](std::size_t index) { return all.begin() + static_cast<Index>(index); };
  if (begin > 0 && order_.label(all[begin - 1].slot) > label) {
    std::rotate(at(Behind(link, label)), at(begin), at(end));
  } else if (end < head_[link] && order_.label(all[end].slot) < label) {
    std::rotate(at(begin), at(end), at(Behind(link, label)));
  }
}

void LinkQueues::CarryOutOfHead(LinkIndex link, std::size_t begin, std::size_t end) {
  const auto all = All(link);
  std::rotate(all.begin() + static_cast<Index>(begin), all.begin() + static_cast<Index>(end),
              all.begin() + head_[link]);
  head_[link] -= static_cast<std::uint32_t>(end - begin);
}

void LinkQueues::CarryIntoHead(LinkIndex link, CoflowSlot slot, std::size_t flows, std::uint64_t label) {
  const auto all = All(link);
  const auto place = static_cast<Index>(Behind(link, label));
  const std::size_t head = head_[link];
  for (std::size_t at = head; head_[link] < head + flows; ++at) {
    if (all[at].slot == slot) {
      std::swap(all[at], all[head_[link]++]);
    }
  }
  std::rotate(all.begin() + place, all.begin() + static_cast<Index>(head), all.begin() + head_[link]);
}

std::size_t LinkQueues::Target(LinkIndex link) const {
  return kHeadAtLeast + queue_[link].size / kHeadShare;
}

/// Between two coflows, all of whose labels are those of the order.
void LinkQueues::CutHead(LinkIndex link, std::size_t longest) {
  if (head_[link] <= longest) {
    return;
  }
  const auto all = All(link);
  std::size_t head = Target(link);
  while (head < head_[link] && all[head].slot == all[head - 1].slot) {
    ++head;
  }
  head_[link] = static_cast<std::uint32_t>(head);
  head_to_[link] = order_.label(all[head - 1].slot);
}

bool LinkQueues::Extend(LinkIndex link) {
  const auto rest = All(link).subspan(head_[link]);
  if (rest.empty()) {
    return false;
  }
  const auto by_label = [&](const Entry& entry) { return order_.label(entry.slot); };
  const auto more = static_cast<Index>(std::min(rest.size(), Target(link)));
  std::ranges::nth_element(rest, rest.begin() + more - 1, {}, by_label);
  const CoflowSlot last = rest[static_cast<std::size_t>(more - 1)].slot;
  const auto end =
      std::partition(rest.begin() + more, rest.end(), [&](const Entry& entry) { return entry.slot == last; });
  std::ranges::sort(rest.begin(), end, {}, by_label);
  head_[link] += static_cast<std::uint32_t>(end - rest.begin());
  head_to_[link] = order_.label(last);
  return true;
}

void LinkQueues::CutHeads() {
  for (LinkIndex link = 0; link < queue_.size(); ++link) {
    head_[link] = queue_[link].size;
    AfterRelabel(link);
    CutHead(link, Target(link));
  }
}

void LinkQueues::AfterRelabel(LinkIndex link) {
  head_to_[link] = head_[link] == 0 ? 0 : order_.label(Entries(link)[head_[link] - 1].slot);
}

void LinkQueues::Clear() {
  for (LinkIndex link = 0; link < queue_.size(); ++link) {
    queue_[link].size = 0;
    users_of_[link].size = 0;
    head_[link] = 0;
    head_to_[link] = 0;
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

/// Index of the first user from the label on.
std::size_t LinkQueues::UserFrom(LinkIndex link, std::uint64_t label) const {
  const auto users = Users(link);
  const auto at = std::ranges::lower_bound(users, label, {}, [&](const User& user) { return order_.label(user.slot); });
  return static_cast<std::size_t>(at - users.begin());
}

std::optional<WholeRate> LinkQueues::UseOf(LinkIndex link, CoflowSlot slot) const {
  const auto users = Users(link);
  const std::size_t at = UserFrom(link, order_.label(slot));
  return at < users.size() && users[at].slot == slot ? std::optional(users[at].rate) : std::nullopt;
}

const LinkQueues::User* LinkQueues::NextUser(LinkIndex link, std::uint64_t label) const {
  const auto users = Users(link);
  const std::size_t at = UserFrom(link, label + 1);
  return at < users.size() ? &users[at] : nullptr;
}

bool LinkQueues::IsUsedBetween(LinkIndex link, CoflowSlot slot, std::uint64_t front, std::uint64_t back) const {
  const auto users = Users(link);
  std::size_t at = UserFrom(link, front);
  if (at < users.size() && users[at].slot == slot) {
    ++at;
  }
  return at < users.size() && order_.label(users[at].slot) <= back;
}

void LinkQueues::SetUse(LinkIndex link, CoflowSlot slot, std::optional<WholeRate> rate) {
  const auto users = users_.Of(users_of_[link]);
  const std::size_t at = UserFrom(link, order_.label(slot));
  const bool found = at < users.size() && users[at].slot == slot;
  if (found && rate.has_value()) {
    users[at].rate = *rate;
  } else if (found) {
    users_.Erase(&users_of_[link], at, 1);
  } else if (rate.has_value()) {
    users_.Insert(&users_of_[link], at, User{slot, *rate});
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
