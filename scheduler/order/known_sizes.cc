#include <algorithm>

#include "scheduler/order/order.h"

namespace weir::scheduler {
namespace {

double Bottleneck(const ActiveTable& table, std::uint32_t slot) {
  const auto load = table.Load(slot);
  double longest = 0;
  for (std::size_t link = 0; link < load.size(); ++link) {
    longest = std::max(longest, static_cast<double>(load[link]) * table.time_per_byte[link]);
  }
  return longest;
}

/// Orders that give every coflow one number and sort by it.
template <typename Key>
class KeyOrder final : public Order {
 public:
  explicit KeyOrder(Key key, bool needs_sizes = true) : key_(key), needs_sizes_(needs_sizes) {}

  void Sort(const ActiveTable& table, std::int64_t /*now*/, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      keys_[slot] = key_(table, slot);
    }
    SortByKey(table, keys_, order);
  }
  bool needs_sizes() const override { return needs_sizes_; }

 private:
  Key key_;
  bool needs_sizes_;
  std::vector<double> keys_;
};

template <typename Key>
std::unique_ptr<Order> ByKey(Key key, bool needs_sizes = true) {
  return std::make_unique<KeyOrder<Key>>(key, needs_sizes);
}

}  // namespace

std::unique_ptr<Order> MakeKnownSizeOrder(const OrderOptions& options) {
  if (options.name == "fifo") {
    return ByKey([](const ActiveTable& t, std::uint32_t s) { return static_cast<double>(t.arrival[s]); }, false);
  }
  if (options.name == "scf") {
    return ByKey([](const ActiveTable& t, std::uint32_t s) { return static_cast<double>(t.bytes_left[s]); });
  }
  if (options.name == "ncf") {
    return ByKey([](const ActiveTable& t, std::uint32_t s) { return static_cast<double>(t.narrow_side[s]); }, false);
  }
  if (options.name == "lcf") {
    return ByKey([](const ActiveTable& t, std::uint32_t s) { return static_cast<double>(t.longest_flow[s]); });
  }
  if (options.name == "sebf") {
    return ByKey([](const ActiveTable& t, std::uint32_t s) { return Bottleneck(t, s); });
  }
  return nullptr;
}

}  // namespace weir::scheduler
