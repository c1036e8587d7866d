#include "scheduler/rate/matcher.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "scheduler/rate/bit_rows.h"

namespace weir::scheduler {
namespace {

std::uint64_t Bit(std::uint32_t i) {
  return std::uint64_t{1} << (i % 64);
}
void Set(std::uint64_t* bits, std::uint32_t i) {
  bits[i / 64] |= Bit(i);
}
void Clear(std::uint64_t* bits, std::uint32_t i) {
  bits[i / 64] &= ~Bit(i);
}
bool IsSet(const std::vector<std::uint64_t>& bits, std::uint32_t i) {
  return (bits[i / 64] & Bit(i)) != 0;
}

// Loops over words look at all of them, however early the answer is known: a word more costs less than a wrong guess.

bool AnyCommon(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  std::uint64_t common = 0;
  for (std::size_t i = 0; i < words; ++i) {
    common |= a[i] & b[i];
  }
  return common != 0;
}

bool AllZero(const std::uint64_t* bits, std::size_t words) {
  return std::accumulate(bits, bits + words, std::uint64_t{0}, std::bit_or<>()) == 0;
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
  masks_.resize(std::max(masks_.size(), groups_.size() * kMasks * words_));
  std::fill_n(Mask(number, kSources), kMasks * words_, 0);
  IndexGroupRows(flows, number);
  return number;
}

void Matcher::IndexGroupRows(std::span<const MatchFlow> flows, std::uint32_t number) {
  Group& group = groups_[number];
  group.row_of_source.assign(ports_, kNone);
  group.row_of_destination.assign(ports_, kNone);
  const auto sources = NumberRows(flows, kNone, &group.row_of_source, [](const MatchFlow& f) { return f.source; });
  const auto destinations =
      NumberRows(flows, kNone, &group.row_of_destination, [](const MatchFlow& f) { return f.destination; });
  group.pending_of_source.assign(sources * words_, 0);
  group.pending_of_destination.assign(destinations * words_, 0);
  group.first_flow.assign(sources * words_, 0);
  group.flows.clear();
  for (const MatchFlow& flow : flows) {
    const std::size_t row = group.row_of_source[flow.source];
    std::uint64_t* from = &group.pending_of_source[row * words_];
    if (from[flow.destination / 64] == 0) {
      group.first_flow[row * words_ + flow.destination / 64] = static_cast<std::uint32_t>(group.flows.size());
    }
    group.flows.push_back({flow.bytes, flow.bytes});
    Set(from, flow.destination);
    Set(&group.pending_of_destination[group.row_of_destination[flow.destination] * words_], flow.source);
    Set(Mask(number, kSources), flow.source);
    Set(Mask(number, kDestinations), flow.destination);
  }
  group.all_of_source = group.pending_of_source;
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
  group.flows[held.flow].left = held.left;
  --group.pairs;
  Clear(Mask(held.group, kHeldSources), source);
  Clear(Mask(held.group, kHeldDestinations), held.destination);
  Clear(busy_source_.data(), source);
  Set(dirty_source_.data(), source);
  Set(dirty_destination_.data(), held.destination);
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
  Clear(from, held.destination);
  Clear(to, source);
  if (AllZero(from, words_)) {
    Clear(Mask(held.group, kSources), source);
  }
  if (AllZero(to, words_)) {
    Clear(Mask(held.group, kDestinations), held.destination);
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
    const auto [open, useful] = Pass(number);
    if (!open) {
      break;
    }
    if (!useful) {
      continue;
    }
    const Group& group = groups_[number];
    if (group.flows_left <= kRebuiltFlows && group.pairs > 0) {
      ReleaseAll(number);
    }
    const std::int64_t* group_keys = &keys[std::size_t{key_row[number]} * 2 * ports_];
    Fill(number, group_keys);
  }
  std::fill(dirty_source_.begin(), dirty_source_.end(), 0);
  std::fill(dirty_destination_.begin(), dirty_destination_.end(), 0);
}

Matcher::Reach Matcher::Pass(std::uint32_t number) {
  const std::uint64_t* sources = Mask(number, kSources);
  const std::uint64_t* destinations = Mask(number, kDestinations);
  const std::uint64_t* held_sources = Mask(number, kHeldSources);
  const std::uint64_t* held_destinations = Mask(number, kHeldDestinations);
  std::uint64_t open = 0;
  std::uint64_t useful = 0;
  for (std::size_t i = 0; i < words_; ++i) {
    free_source_[i] &= ~held_sources[i];
    free_destination_[i] &= ~held_destinations[i];
    const std::uint64_t open_sources = dirty_source_[i] & free_source_[i];
    const std::uint64_t open_destinations = dirty_destination_[i] & free_destination_[i];
    open |= open_sources | open_destinations;
    useful |= (open_sources & sources[i]) | (open_destinations & destinations[i]);
  }
  return {open != 0, useful != 0};
}

void Matcher::ReleaseAll(std::uint32_t number) {
  for (std::size_t word = 0; word < words_; ++word) {
    for (std::uint64_t bits = Mask(number, kHeldSources)[word]; bits != 0; bits &= bits - 1) {
      const auto source = static_cast<std::uint32_t>(word * 64) + static_cast<std::uint32_t>(__builtin_ctzll(bits));
      Set(free_source_.data(), source);
      Set(free_destination_.data(), held_[source].destination);
      Release(source);
    }
  }
}

void Matcher::CollectCandidates(std::uint32_t number, const std::int64_t* keys) {
  candidates_.clear();
  const Group& group = groups_[number];
  const std::uint64_t* sources = Mask(number, kSources);
  const std::uint64_t* destinations = Mask(number, kDestinations);
  for (std::size_t word = 0; word < words_; ++word) {
    const auto base = static_cast<std::uint32_t>(word * 64);
    ForBits(dirty_source_[word] & free_source_[word] & sources[word], base, [&](std::uint32_t port) {
      if (AnyCommon(&group.pending_of_source[group.row_of_source[port] * words_], free_destination_.data(), words_)) {
        candidates_.push_back({keys[port], port});
      }
    });
    ForBits(dirty_destination_[word] & free_destination_[word] & destinations[word], base, [&](std::uint32_t port) {
      if (AnyCommon(&group.pending_of_destination[group.row_of_destination[port] * words_], free_source_.data(),
                    words_)) {
        candidates_.push_back({keys[ports_ + port], ports_ + port});
      }
    });
  }
  std::sort(candidates_.begin(), candidates_.end());
}

std::uint32_t Matcher::Best(const std::uint64_t* pending, const std::vector<std::uint64_t>& free,
                            const std::int64_t* keys) const {
  std::uint32_t best = kNone;
  std::int64_t best_key = std::numeric_limits<std::int64_t>::min();
  for (std::size_t word = 0; word < words_; ++word) {
    ForBits(pending[word] & free[word], static_cast<std::uint32_t>(word * 64), [&](std::uint32_t port) {
      if (keys[port] > best_key) {
        best_key = keys[port];
        best = port;
      }
    });
  }
  return best;
}

void Matcher::Fill(std::uint32_t number, const std::int64_t* keys) {
  const Group& group = groups_[number];
  CollectCandidates(number, keys);
  for (const auto [key, port] : candidates_) {
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
  const std::size_t word = row * words_ + destination / 64;
  const std::uint64_t in_front = group.all_of_source[word] & (Bit(destination) - 1);
  const std::uint32_t flow = group.first_flow[word] + static_cast<std::uint32_t>(__builtin_popcountll(in_front));
  held_[source] = {number, destination, flow, group.flows[flow].left, group.flows[flow].size};
  sender_to_[destination] = source;
  ++group.pairs;
  Set(Mask(number, kHeldSources), source);
  Set(Mask(number, kHeldDestinations), destination);
  Set(busy_source_.data(), source);
  Clear(free_source_.data(), source);
  Clear(free_destination_.data(), destination);
}

}  // namespace weir::scheduler
