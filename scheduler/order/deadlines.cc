#include <algorithm>
#include <tuple>
#include <utility>

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

/// Deadline coflows by deadline; the others behind them, smallest bottleneck first. With admission, only admitted
/// coflows count as having a deadline, and an admitted one ends in time; see Admits().
class EarliestDeadline final : public Order {
 public:
  explicit EarliestDeadline(bool admission) : admission_(admission) {}

  void Sort(const ActiveTable& table, std::int64_t now, std::vector<std::uint32_t>* order) override {
    keys_.resize(table.id.size());
    deadlines_.resize(table.id.size());
    for (const std::uint32_t slot : table.live()) {
      keys_[slot] = Bottleneck(table, slot);
      deadlines_[slot] = table.deadline[slot];
    }
    if (admission_) {
      AskNewcomers(table, now);
    }
    order->assign(table.live().begin(), table.live().end());
    std::sort(order->begin(), order->end(), [&](std::uint32_t a, std::uint32_t b) { return Before(table, a, b); });
  }

  bool Admitted(std::uint32_t slot) const override { return slot < admitted_.size() && admitted_[slot]; }

 private:
  bool Before(const ActiveTable& table, std::uint32_t a, std::uint32_t b) const {
    return std::tie(deadlines_[a], keys_[a], table.arrival[a], table.id[a]) <
           std::tie(deadlines_[b], keys_[b], table.arrival[b], table.id[b]);
  }
  static bool Sooner(const ActiveTable& table, std::uint32_t a, std::uint32_t b) {
    return std::tie(table.deadline[a], table.arrival[a], table.id[a]) <
           std::tie(table.deadline[b], table.arrival[b], table.id[b]);
  }

  /// Coflows are asked once, when they are first seen, in order of arrival and id.
  void AskNewcomers(const ActiveTable& table, std::int64_t now) {
    admitted_.resize(table.id.size(), false);
    asked_.resize(table.id.size(), {-1, 0});
    newcomers_.clear();
    promised_.clear();
    for (const std::uint32_t slot : table.live()) {
      const std::pair<std::int64_t, std::uint64_t> who{table.arrival[slot], table.id[slot]};
      if (asked_[slot] != who) {
        asked_[slot] = who;
        admitted_[slot] = false;
        newcomers_.push_back(slot);
      } else if (admitted_[slot]) {
        promised_.push_back(slot);
      }
    }
    std::sort(newcomers_.begin(), newcomers_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(table.arrival[a], table.id[a]) < std::tie(table.arrival[b], table.id[b]);
    });
    std::sort(promised_.begin(), promised_.end(),
              [&](std::uint32_t a, std::uint32_t b) { return Sooner(table, a, b); });
    for (const std::uint32_t slot : newcomers_) {
      if (table.deadline[slot] != kNever && Admits(table, now, slot)) {
        admitted_[slot] = true;
      }
    }
    for (const std::uint32_t slot : table.live()) {
      if (admitted_[slot]) {
        keys_[slot] = 0;  // among admitted ones with equal deadlines, the order in which Admits() counted them
      } else {
        deadlines_[slot] = kNever;
      }
    }
  }

  /// Whether `newcomer` and all admitted coflows that are due after it are sure to end in time; if so, it joins
  /// `promised_`. While ports serve one flow at a time in order of deadline and never idle when a pair could be served,
  /// a flow from s to d of coflow k waits only while s or d serves coflows up to k. So it ends after at most the time
  /// of what these have left at s and at d, in which the flow itself counts once. Time that passes lowers the sum as
  /// fast as it lowers what is left until the deadline, so a promise once made holds. Varys reserves rates instead
  /// (SIGCOMM 2014, section 5.3.1), for fabrics that can share a port.
  bool Admits(const ActiveTable& table, std::int64_t now, std::uint32_t newcomer) {
    const auto place = std::find_if(promised_.begin(), promised_.end(),
                                    [&](std::uint32_t other) { return Sooner(table, newcomer, other); });
    const auto rank = place - promised_.begin();
    promised_.insert(place, newcomer);
    ahead_.assign(table.links(), 0.0);
    for (std::size_t i = 0; i < promised_.size(); ++i) {
      const std::uint32_t slot = promised_[i];
      const double allowed = static_cast<double>(table.deadline[slot] - now);
      if (static_cast<std::ptrdiff_t>(i) >= rank && WorstEnd(table, slot) > allowed) {
        promised_.erase(promised_.begin() + rank);
        return false;
      }
      const auto load = table.Load(slot);
      for (std::size_t link = 0; link < load.size(); ++link) {
        ahead_[link] += static_cast<double>(load[link]) * table.time_per_byte[link];
      }
    }
    return true;
  }

  /// Upper bound on the time until `slot` ends behind `ahead_`: over its flows (s, d), what is ahead at s and d plus
  /// its own load on both, in which the flow counts once. Its own part is at most all its bytes, and at most the sum of
  /// its largest loads on either side.
  double WorstEnd(const ActiveTable& table, std::uint32_t slot) const {
    const auto load = table.Load(slot);
    const std::size_t half = load.size() / 2;
    double ahead[2] = {0, 0};
    double through[2] = {0, 0};
    double slowest = 0;
    for (std::size_t link = 0; link < load.size(); ++link) {
      if (load[link] > 0) {
        const std::size_t side = link < half ? 0 : 1;
        const double own = static_cast<double>(load[link]) * table.time_per_byte[link];
        ahead[side] = std::max(ahead[side], ahead_[link]);
        through[side] = std::max(through[side], ahead_[link] + own);
        slowest = std::max(slowest, table.time_per_byte[link]);
      }
    }
    const double all = static_cast<double>(table.bytes_left[slot]) * slowest;
    return std::min(through[0] + through[1], ahead[0] + ahead[1] + all);
  }

  bool admission_;
  std::vector<double> keys_, ahead_;
  std::vector<std::int64_t> deadlines_;
  std::vector<bool> admitted_;
  std::vector<std::pair<std::int64_t, std::uint64_t>> asked_;  // by slot: arrival and id of the last one asked
  std::vector<std::uint32_t> newcomers_;
  std::vector<std::uint32_t> promised_;  // admitted, by deadline
};

}  // namespace

std::unique_ptr<Order> MakeDeadlineOrder(const OrderOptions& options) {
  return options.name == "edf" ? std::make_unique<EarliestDeadline>(options.admission) : nullptr;
}

}  // namespace weir::scheduler
