#include "scheduler/order/contention.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::scheduler {
namespace {

std::uint32_t OthersOf(const ActiveTable& table, std::uint32_t slot) {
  std::uint32_t others = 0;
  for (const std::uint32_t other : table.live()) {
    bool meet = false;
    for (std::uint32_t link = 0; link < table.links(); ++link) {
      meet |= table.FlowsLeft(slot)[link] > 0 && table.FlowsLeft(other)[link] > 0;
    }
    others += other != slot && meet ? 1 : 0;
  }
  return others;
}

/// Coflows come, end flows and go, slots are used again, and some of that happens between two looks.
TEST(Contention, IsWhatALookAtAllPairsFinds) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    ActiveTable table(2 + 2 * static_cast<std::uint32_t>(random() % 70));
    Contention contention;
    std::uint64_t id = 0;
    for (int step = 0; step < 60; ++step) {
      if (table.live().empty() || random() % 4 == 0) {
        const std::uint32_t slot = table.AddSlot();
        table.id[slot] = id++;
        for (int i = 0; i < 3; ++i) {
          table.FlowsLeft(slot)[random() % table.links()] += static_cast<std::int64_t>(random() % 3);
        }
      }
      const std::uint32_t slot = table.live()[random() % table.live().size()];
      if (random() % 5 == 0) {
        table.FreeSlot(slot);
      } else if (std::int64_t& left = table.FlowsLeft(slot)[random() % table.links()]; left > 0) {
        --left;
        ++table.flows_ended[slot];
      }
      if (random() % 2 == 0) {
        contention.Update(table);
        for (const std::uint32_t live : table.live()) {
          ASSERT_EQ(contention.Of(live), OthersOf(table, live)) << "seed " << seed << " step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
