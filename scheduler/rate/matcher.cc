#include "scheduler/rate/matcher.h"

#include <algorithm>
#include <limits>

namespace weir::scheduler {
namespace {

void Set(std::vector<std::uint64_t>* bits, std::uint32_t i) {
  (*bits)[i / 64] |= std::uint64_t{1} << (i % 64);
}
void Clear(std::vector<std::uint64_t>* bits, std::uint32_t i) {
  (*bits)[i / 64] &= ~(std::uint64_t{1} << (i % 64));
}

bool IsSet(const std::vector<std::uint64_t>& bits, std::uint32_t i) {
  return (bits[i / 64] >> (i % 64) & 1) != 0;
}

bool AnyCommon(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if ((a[i] & b[i]) != 0) {
      return true;
    }
  }
  return false;
}

/// True if any bit is set in all three.
bool AnyUseful(const std::vector<std::uint64_t>& dirty, const std::vector<std::uint64_t>& free,
               const std::vector<std::uint64_t>& useful) {
  for (std::size_t i = 0; i < dirty.size(); ++i) {
    if ((dirty[i] & free[i] & useful[i]) != 0) {
      return true;
    }
  }
  return false;
}

bool AllZero(const std::uint64_t* bits, std::size_t words) {
  return std::all_of(bits, bits + words, [](std::uint64_t w) { return w == 0; });
}

/// Row numbers of the distinct ports in order; returns how many there are.
template <typename PortOf>
std::uint32_t NumberRows(std::span<const MatchFlow> flows, std::uint32_t none, std::vector<std::uint32_t>* rows,
                         PortOf port_of) {
  std::uint32_t count = 0;
  for (const MatchFlow& flow : flows) {
    std::uint32_t& row = (*rows)[port_of(flow)];
    if (row == none) {
      row = count++;
    }
  }
  return count;
}

}  // namespace

Matcher::Matcher(std::uint32_t ports)
    : ports_(ports),
      words_((ports + 63) / 64),
      held_(ports),
      sender_to_(ports, kNone),
      busy_source_(words_, 0),
      dirty_source_(words_, 0),
      dirty_destination_(words_, 0),
      free_source_(words_, 0),
      free_destination_(words_, 0) {
  candidates_.reserve(2 * std::size_t{ports});
  ended_.reserve(ports);
}

std::uint32_t Matcher::AddGroup(std::span<const MatchFlow> flows) {
  if (spare_groups_.empty()) {
    spare_groups_.push_back(static_cast<std::uint32_t>(groups_.size()));
    groups_.emplace_back();
  }
  const std::uint32_t number = spare_groups_.back();
  spare_groups_.pop_back();
  Group& group = groups_[number];
  group.live = true;
  group.flows_left = static_cast<std::int64_t>(flows.size());
  group.pairs = 0;
  for (auto* mask : {&group.sources, &group.destinations, &group.held_sources, &group.held_destinations}) {
    mask->assign(words_, 0);
  }
  IndexGroupRows(flows, &group);
  return number;
}

void Matcher::IndexGroupRows(std::span<const MatchFlow> flows, Group* group) {
  group->row_of_source.assign(ports_, kNone);
  group->row_of_destination.assign(ports_, kNone);
  const auto sources = NumberRows(flows, kNone, &group->row_of_source, [](const MatchFlow& f) { return f.source; });
  const auto destinations =
      NumberRows(flows, kNone, &group->row_of_destination, [](const MatchFlow& f) { return f.destination; });
  group->pending_of_source.assign(sources * words_, 0);
  group->pending_of_destination.assign(destinations * words_, 0);
  group->first_flow.assign(1, 0);
  group->left.clear();
  for (const MatchFlow& flow : flows) {
    const std::size_t row = group->row_of_source[flow.source];
    if (row + 2 > group->first_flow.size()) {
      group->first_flow.push_back(0);
    }
    group->left.push_back(flow.bytes);
    group->first_flow[row + 1] = static_cast<std::uint32_t>(group->left.size());
    group->pending_of_source[row * words_ + flow.destination / 64] |= std::uint64_t{1} << (flow.destination % 64);
    group->pending_of_destination[group->row_of_destination[flow.destination] * words_ + flow.source / 64] |=
        std::uint64_t{1} << (flow.source % 64);
    Set(&group->sources, flow.source);
    Set(&group->destinations, flow.destination);
  }
  group->size = group->left;
  group->all_of_source = group->pending_of_source;
}

void Matcher::RemoveGroup(std::uint32_t number) {
  for (std::uint32_t source = 0; source < ports_; ++source) {
    if (held_[source].group == number) {
      Release(source);
    }
  }
  groups_[number].live = false;
  spare_groups_.push_back(number);
  std::erase(order_, number);
}

void Matcher::SetOrder(std::span<const std::uint32_t> groups) {
  order_.assign(groups.begin(), groups.end());
  for (std::uint32_t source = 0; source < ports_; ++source) {
    if (held_[source].group != kNone) {
      Release(source);
    }
  }
  std::fill(dirty_source_.begin(), dirty_source_.end(), ~std::uint64_t{0});
  std::fill(dirty_destination_.begin(), dirty_destination_.end(), ~std::uint64_t{0});
}

void Matcher::Release(std::uint32_t source) {
  Held& held = held_[source];
  Group& group = groups_[held.group];
  group.left[held.flow] = held.left;
  --group.pairs;
  Clear(&group.held_sources, source);
  Clear(&group.held_destinations, held.destination);
  Clear(&busy_source_, source);
  Set(&dirty_source_, source);
  Set(&dirty_destination_, held.destination);
  sender_to_[held.destination] = kNone;
  held.group = kNone;
}

void Matcher::End(std::uint32_t source) {
  const Held held = held_[source];
  Group& group = groups_[held.group];
  ended_.push_back({held.group, source, held.destination, held.size});
  Release(source);
  --group.flows_left;
  std::uint64_t* from = &group.pending_of_source[group.row_of_source[source] * words_];
  std::uint64_t* to = &group.pending_of_destination[group.row_of_destination[held.destination] * words_];
  from[held.destination / 64] &= ~(std::uint64_t{1} << (held.destination % 64));
  to[source / 64] &= ~(std::uint64_t{1} << (source % 64));
  if (AllZero(from, words_)) {
    Clear(&group.sources, source);
  }
  if (AllZero(to, words_)) {
    Clear(&group.destinations, held.destination);
  }
}

std::int64_t Matcher::NextEnd() const {
  std::int64_t next = std::numeric_limits<std::int64_t>::max();
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::uint64_t bits = busy_source_[word]; bits != 0; bits &= bits - 1) {
      next = std::min(next, held_[word * 64 + static_cast<std::size_t>(__builtin_ctzll(bits))].left);
    }
  }
  return next;
}

void Matcher::Rematch(std::span<const std::int64_t> keys, std::span<const std::uint32_t> key_row) {
  std::fill(free_source_.begin(), free_source_.end(), ~std::uint64_t{0});
  std::fill(free_destination_.begin(), free_destination_.end(), ~std::uint64_t{0});
  for (const std::uint32_t number : order_) {
    const Group& group = groups_[number];
    for (std::size_t i = 0; i < words_; ++i) {
      free_source_[i] &= ~group.held_sources[i];
      free_destination_[i] &= ~group.held_destinations[i];
    }
    if (!AnyCommon(dirty_source_, free_source_) && !AnyCommon(dirty_destination_, free_destination_)) {
      break;
    }
    if (!AnyUseful(dirty_source_, free_source_, group.sources) &&
        !AnyUseful(dirty_destination_, free_destination_, group.destinations)) {
      continue;
    }
    if (group.flows_left <= kRebuiltFlows && group.pairs > 0) {
      ReleaseAll(number);
    }
    const std::int64_t* group_keys = &keys[std::size_t{key_row[number]} * 2 * ports_];
    Fill(number, group_keys);
  }
  std::fill(dirty_source_.begin(), dirty_source_.end(), 0);
  std::fill(dirty_destination_.begin(), dirty_destination_.end(), 0);
}

void Matcher::ReleaseAll(std::uint32_t number) {
  Group& group = groups_[number];
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::uint64_t bits = group.held_sources[word]; bits != 0; bits &= bits - 1) {
      const auto source = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
      Set(&free_source_, source);
      Set(&free_destination_, held_[source].destination);
      Release(source);
    }
  }
}

void Matcher::CollectCandidates(const Group& group, const std::int64_t* keys) {
  candidates_.clear();
  for (std::size_t word = 0; word < words_; ++word) {
    const auto base = static_cast<std::uint32_t>(word * 64);
    for (std::uint64_t bits = dirty_source_[word] & free_source_[word] & group.sources[word]; bits != 0;
         bits &= bits - 1) {
      candidates_.push_back(base + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
    for (std::uint64_t bits = dirty_destination_[word] & free_destination_[word] & group.destinations[word]; bits != 0;
         bits &= bits - 1) {
      candidates_.push_back(ports_ + base + static_cast<std::uint32_t>(__builtin_ctzll(bits)));
    }
  }
  std::sort(candidates_.begin(), candidates_.end(),
            [keys](std::uint32_t a, std::uint32_t b) { return keys[a] != keys[b] ? keys[a] > keys[b] : a < b; });
}

std::uint32_t Matcher::Best(const std::uint64_t* pending, const std::vector<std::uint64_t>& free,
                            const std::int64_t* keys) const {
  std::uint32_t best = kNone;
  std::int64_t best_key = std::numeric_limits<std::int64_t>::min();
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::uint64_t bits = pending[word] & free[word]; bits != 0; bits &= bits - 1) {
      const auto port = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
      if (keys[port] > best_key) {
        best_key = keys[port];
        best = port;
      }
    }
  }
  return best;
}

void Matcher::Fill(std::uint32_t number, const std::int64_t* keys) {
  const Group& group = groups_[number];
  CollectCandidates(group, keys);
  for (const std::uint32_t port : candidates_) {
    if (port < ports_ && IsSet(free_source_, port)) {
      const std::uint64_t* pending = &group.pending_of_source[group.row_of_source[port] * words_];
      const std::uint32_t destination = Best(pending, free_destination_, keys + ports_);
      if (destination != kNone) {
        Take(number, port, destination);
      }
    } else if (port >= ports_ && IsSet(free_destination_, port - ports_)) {
      const std::uint64_t* pending = &group.pending_of_destination[group.row_of_destination[port - ports_] * words_];
      const std::uint32_t source = Best(pending, free_source_, keys);
      if (source != kNone) {
        Take(number, source, port - ports_);
      }
    }
  }
}

void Matcher::Take(std::uint32_t number, std::uint32_t source, std::uint32_t destination) {
  if (held_[source].group != kNone) {
    Release(source);
  }
  if (sender_to_[destination] != kNone) {
    Release(sender_to_[destination]);
  }
  Group& group = groups_[number];
  const std::size_t row = group.row_of_source[source];
  const std::uint64_t* all = &group.all_of_source[row * words_];
  std::uint32_t flow = group.first_flow[row];
  for (std::size_t word = 0; word < destination / 64; ++word) {
    flow += static_cast<std::uint32_t>(__builtin_popcountll(all[word]));
  }
  flow += static_cast<std::uint32_t>(
      __builtin_popcountll(all[destination / 64] & ((std::uint64_t{1} << (destination % 64)) - 1)));
  held_[source] = {number, destination, flow, group.left[flow], group.size[flow]};
  sender_to_[destination] = source;
  ++group.pairs;
  Set(&group.held_sources, source);
  Set(&group.held_destinations, destination);
  Set(&busy_source_, source);
  Clear(&free_source_, source);
  Clear(&free_destination_, destination);
}

}  // namespace weir::scheduler
