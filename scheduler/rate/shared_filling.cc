#include "scheduler/rate/shared_filling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
/// Whole numbers of so many bits are exact in a double.
constexpr int kExactBits = 52;

}  // namespace

bool SharedFilling::IsTheSame(std::span<const RankedGroup> groups, std::span<const double> room) const {
  const auto same = [this](const RankedGroup& now, const RankedGroup& last) {
    return now.group == last.group && now.weight == last.weight && now.group->filled_by() == this;
  };
  if (!std::equal(groups.begin(), groups.end(), groups_.begin(), groups_.end(), same)) {
    return false;
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (room[links_[i]] != room_given_[i]) {
      return false;
    }
  }
  return true;
}

void SharedFilling::Start(std::span<const RankedGroup> groups, std::span<const double> room,
                          std::span<const double> full_below) {
  groups_.assign(groups.begin(), groups.end());
  PlaceLinks(room.size());
  CountSteps();
  room_given_.resize(links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const std::uint32_t link = links_[i];
    room_given_[i] = room[link];
    shares_.Set(i, room[link] < full_below[link] ? 0 : room[link], 0);
  }
  EnterFlows();
  for (const RankedGroup& ranked : groups_) {
    ranked.group->BeginSharedFilling(this);
  }
  rounds_.clear();
  closings_.clear();
  closed_in_.assign(links_.size(), kNone);
  rooms_.clear();
  weights_.clear();
}

/// The links that any group uses, ascending.
void SharedFilling::PlaceLinks(std::size_t links) {
  position_of_link_.assign(links, kNone);
  for (const RankedGroup& ranked : groups_) {
    for (const std::uint32_t link : ranked.group->links()) {
      position_of_link_[link] = 0;
    }
  }
  links_.clear();
  for (std::uint32_t link = 0; link < links; ++link) {
    if (position_of_link_[link] == 0) {
      position_of_link_[link] = static_cast<std::uint32_t>(links_.size());
      links_.push_back(link);
    }
  }
  shares_.Open(links_.size());
  begin_.clear();
  position_.clear();
  first_block_.clear();
  first_stretch_.clear();
  stretches_.clear();
  for (const RankedGroup& ranked : groups_) {
    begin_.push_back(static_cast<std::uint32_t>(position_.size()));
    for (const std::uint32_t link : ranked.group->links()) {
      position_.push_back(position_of_link_[link]);
    }
    const auto positions = std::span<const std::uint32_t>(position_).subspan(begin_.back());
    first_block_.push_back(static_cast<std::uint32_t>(first_stretch_.size()));
    PlaceBlocks(positions.first(ranked.group->uplinks()));
    PlaceBlocks(positions.subspan(ranked.group->uplinks()));
  }
}

/// Of one side of a group, by its ports' positions.
void SharedFilling::PlaceBlocks(std::span<const std::uint32_t> positions) {
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (i % 64 == 0) {
      first_stretch_.push_back(static_cast<std::uint32_t>(stretches_.size()));
    }
    if (i % 64 == 0 || positions[i] - stretches_.back().first >= 64) {
      stretches_.push_back({positions[i], 0});
    }
    stretches_.back().ports_here |= std::uint64_t{1} << (positions[i] - stretches_.back().first);
  }
}

void SharedFilling::CountSteps() {
  double largest = 0;
  double flows = 1;
  for (const RankedGroup& ranked : groups_) {
    largest = std::max(largest, ranked.weight);
    flows += static_cast<double>(ranked.group->live());
  }
  const int shift = kExactBits - 2 - std::ilogb(flows) - std::ilogb(largest);
  steps_.clear();
  for (const RankedGroup& ranked : groups_) {
    steps_.push_back(std::max(1.0, std::round(std::ldexp(ranked.weight, shift))));
  }
}

void SharedFilling::EnterFlows() {
  first_entry_.assign(links_.size() + 1, 0);
  for (std::size_t place = 0; place < groups_.size(); ++place) {
    const FlowGroup& group = *groups_[place].group;
    for (std::uint32_t local = 0; local < group.links().size(); ++local) {
      const std::uint32_t position = PositionOf(place, local);
      const double weight = shares_.weight(position) + steps_[place] * group.Count(local);
      shares_.Set(position, shares_.room(position), weight);
      first_entry_[position + 1] += group.Count(local) > 0 ? 1U : 0U;
    }
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    first_entry_[i + 1] += first_entry_[i];
  }
  entries_.resize(first_entry_.back());
  for (std::uint32_t place = 0; place < groups_.size(); ++place) {
    const FlowGroup& group = *groups_[place].group;
    for (std::uint32_t local = 0; local < group.links().size(); ++local) {
      if (group.Count(local) > 0) {
        entries_[first_entry_[PositionOf(place, local)]++] = {place, local};
      }
    }
  }
  for (std::size_t i = links_.size(); i > 0; --i) {  // each has moved to where the next one began
    first_entry_[i] = first_entry_[i - 1];
  }
  first_entry_[0] = 0;
}

std::size_t SharedFilling::FirstRoundThatDiffers() const {
  std::size_t first = rounds_.size();
  for (std::size_t place = 0; place < groups_.size(); ++place) {
    for (const FlowGroup::EndedPair& pair : groups_[place].group->ended_pairs()) {
      first = std::min<std::size_t>(first, closed_in_[PositionOf(place, pair.owner)]);
    }
  }
  return first;
}

/// What has ended was never there: of the first `rounds` rounds.
void SharedFilling::TakeOutEnded(std::size_t rounds) {
  const std::size_t n = links_.size();
  for (std::size_t place = 0; place < groups_.size(); ++place) {
    for (const FlowGroup::EndedPair& pair : groups_[place].group->ended_pairs()) {
      for (const std::uint32_t local : {pair.up, pair.down}) {
        double* weight = weights_.data() + PositionOf(place, local);
        for (std::size_t round = 0; round < rounds; ++round) {
          weight[round * n] -= steps_[place];
        }
      }
    }
  }
}

void SharedFilling::GoBackTo(std::size_t round) {
  const std::size_t n = links_.size();
  for (const RankedGroup& ranked : groups_) {
    ranked.group->ResumeFilling();
  }
  for (std::size_t i = rounds_[round]; i < closings_.size(); ++i) {
    closed_in_[closings_[i]] = kNone;
    for (const Entry& entry : EntriesOf(closings_[i])) {
      groups_[entry.place].group->ReopenPort(entry.local);
    }
  }
  shares_.Restore(std::span(rooms_).subspan(round * n, n), std::span(weights_).subspan(round * n, n));
  closings_.resize(rounds_[round]);
  rooms_.resize(round * n);
  weights_.resize(round * n);
  rounds_.resize(round);
}

void SharedFilling::RunRounds() {
  double share = shares_.FindFull();
  while (share < std::numeric_limits<double>::infinity()) {
    shares_.Save(&rooms_, &weights_);
    rounds_.push_back(closings_.size());
    for (const std::uint32_t position : shares_.full()) {
      Close(position, share);
    }
    share = shares_.FindFull();
  }
}

void SharedFilling::Close(std::uint32_t position, double share) {
  for (const Entry& entry : EntriesOf(position)) {
    const double rate = share * steps_[entry.place];
    groups_[entry.place].group->ClosePort(
        entry.local, rate, [&](std::uint32_t first, std::uint64_t bits) { Take(entry.place, first, bits, rate); });
  }
  shares_.Close(position);
  closings_.push_back(position);
  closed_in_[position] = static_cast<std::uint32_t>(rounds_.size() - 1);
}

/// For the ports of the group from `first` on, with which a block begins, whose bits are set.
void SharedFilling::Take(std::size_t place, std::uint32_t first, std::uint64_t bits, double rate) {
  const auto uplinks = static_cast<std::uint32_t>(groups_[place].group->uplinks());
  const std::uint32_t block = first < uplinks ? first / 64 : (uplinks + 63) / 64 + (first - uplinks) / 64;
  const Stretch* stretch = &stretches_[first_stretch_[first_block_[place] + block]];
  while (bits != 0) {
    shares_.TakeAmong(stretch->first, stretch->ports_here, bits, rate, steps_[place]);
    const int ports = __builtin_popcountll(stretch->ports_here);
    bits = ports < 64 ? bits >> ports : 0;
    ++stretch;
  }
}

std::size_t SharedFilling::Fill(std::span<const RankedGroup> groups, std::span<double> room,
                                std::span<const double> full_below) {
  std::size_t changed = 0;
  bool filled = true;
  if (IsTheSame(groups, room)) {
    const std::size_t round = FirstRoundThatDiffers();
    filled = round < rounds_.size();
    if (filled) {
      TakeOutEnded(round + 1);
      GoBackTo(round);
    }
  } else {
    Start(groups, room, full_below);
  }
  if (filled) {
    RunRounds();
    for (const RankedGroup& ranked : groups) {
      changed += ranked.group->EndFilling();
      ranked.group->NoteRoom({});
    }
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    room[links_[i]] = shares_.room(i);
  }
  return changed;
}

}  // namespace weir::scheduler
