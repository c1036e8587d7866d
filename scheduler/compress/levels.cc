#include "scheduler/compress/levels.h"

#include <algorithm>
#include <cstddef>

namespace weir::scheduler {

namespace {

constexpr std::size_t kBits = 64;

/// One bit for every link on which flows of the coflow have not ended.
void FindLinks(std::span<const std::int64_t> flows_left, std::vector<std::uint64_t>* bits) {
  std::ranges::fill(*bits, 0);
  for (std::size_t link = 0; link < flows_left.size(); ++link) {
    (*bits)[link / kBits] |= std::uint64_t{flows_left[link] != 0} << (link % kBits);
  }
}

bool HaveCommonBit(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  std::uint64_t common = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    common |= a[i] & b[i];
  }
  return common != 0;
}

}  // namespace

void LevelMap::Assign(const ActiveTable& table, int levels, std::vector<std::uint32_t>* order) {
  // More levels than coflows are never used.
  const std::size_t count = std::min(static_cast<std::size_t>(levels), std::max<std::size_t>(1, order->size()));
  const auto last = static_cast<std::uint32_t>(count - 1);
  const std::size_t words = (table.links() + kBits - 1) / kBits;
  links_.resize(words);
  used_.assign(words * count, 0);
  placed_.clear();
  std::uint32_t deepest = 0;  // how many levels are in use
  for (const std::uint32_t slot : *order) {
    FindLinks(table.FlowsLeft(slot), &links_);
    std::uint32_t level = deepest;
    while (level > 0 && !HaveCommonBit({&used_[(level - 1) * words], words}, links_)) {
      --level;
    }
    level = std::min(level, last);
    deepest = std::max(deepest, level + 1);
    for (std::size_t i = 0; i < words; ++i) {
      used_[level * words + i] |= links_[i];
    }
    placed_.push_back({slot, level, static_cast<std::uint32_t>(placed_.size())});
  }
  std::ranges::sort(placed_, [&](const Placed& a, const Placed& b) {
    if (a.level != b.level) {
      return a.level < b.level;
    }
    if (a.level < last) {
      return a.rank < b.rank;
    }
    return table.arrival[a.slot] != table.arrival[b.slot] ? table.arrival[a.slot] < table.arrival[b.slot]
                                                          : table.id[a.slot] < table.id[b.slot];
  });
  level_of_rank_.clear();
  order->clear();
  for (const Placed& placed : placed_) {
    order->push_back(placed.slot);
    level_of_rank_.push_back(placed.level);
  }
}

}  // namespace weir::scheduler
