#include "scheduler/order/contention.h"

#include <algorithm>

namespace weir::scheduler {

void Contention::Update(const ActiveTable& table) {
  words_ = (table.links() + 63) / 64;
  rows_.resize(table.id.size());
  busy_.resize(rows_.size() * words_);
  busy_now_.resize(words_);
  ForgetWhoLeft(table);
  for (const std::uint32_t slot : table.live()) {
    Row& row = rows_[slot];
    if (!row.known) {
      row = {.id = table.id[slot], .known = true};
      known_.push_back(slot);
    } else if (row.flows_ended == table.flows_ended[slot]) {
      continue;
    }
    row.flows_ended = table.flows_ended[slot];
    FindBusyLinks(table.FlowsLeft(slot));
    SetBusyLinks(slot);
  }
}

void Contention::ForgetWhoLeft(const ActiveTable& table) {
  for (const std::uint32_t slot : table.live()) {
    rows_[slot].live = true;
  }
  for (const std::uint32_t slot : known_) {
    if (!rows_[slot].live || rows_[slot].id != table.id[slot]) {
      std::ranges::fill(busy_now_, 0);
      SetBusyLinks(slot);
      rows_[slot].known = false;
    }
  }
  std::erase_if(known_, [this](std::uint32_t slot) { return !rows_[slot].known; });
  for (const std::uint32_t slot : table.live()) {
    rows_[slot].live = false;
  }
}

void Contention::FindBusyLinks(std::span<const std::int64_t> flows_left) {
  std::ranges::fill(busy_now_, 0);
  for (std::size_t link = 0; link < flows_left.size(); ++link) {
    busy_now_[link / 64] |= std::uint64_t{flows_left[link] > 0 ? 1U : 0U} << (link % 64);
  }
}

void Contention::SetBusyLinks(std::uint32_t slot) {
  std::uint64_t* busy = &busy_[slot * words_];
  if (std::equal(busy, busy + words_, busy_now_.begin())) {
    return;
  }
  for (const std::uint32_t other : known_) {
    const bool before = Share(busy, &busy_[other * words_]);
    const bool after = Share(busy_now_.data(), &busy_[other * words_]);
    if (other != slot && before != after) {
      rows_[slot].others += after ? 1 : -1;
      rows_[other].others += after ? 1 : -1;
    }
  }
  std::ranges::copy(busy_now_, busy);
}

bool Contention::Share(const std::uint64_t* a, const std::uint64_t* b) const {
  std::uint64_t both = 0;
  for (std::size_t word = 0; word < words_; ++word) {
    both |= a[word] & b[word];
  }
  return both != 0;
}

}  // namespace weir::scheduler
