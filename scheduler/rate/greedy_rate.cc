#include <algorithm>
#include <vector>

#include "scheduler/rate/allocator.h"

namespace weir::scheduler {
namespace {

constexpr double kRoomSlack = 1e-9;  // relative to the capacity; below it is rounding

/// Coflow by coflow in order; inside, the ports in order of what they have left, largest first, each give all they can
/// to the flow whose other port has most left. A flow is given what its path has room for, which fills a link of it. On
/// equal ports of one big switch that is a matching, flow by flow at full rate.
///
/// O(flows on the ports with room) for each coflow for which something changed.
class GreedyRate final : public RateAllocator {
 public:
  std::size_t Allocate(std::span<const RankedGroup> order, std::span<const double> capacity) override {
    room_.assign(capacity.begin(), capacity.end());
    capacity_ = capacity;
    std::size_t changed = 0;
    for (const RankedGroup& ranked : order) {
      FlowGroup& group = *ranked.group;
      if (group.KeepRates(room_)) {
        continue;
      }
      before_ = room_;
      group.Disown();
      group.BeginFilling();
      Rank(group, ranked.sizes_known);
      for (const std::uint32_t local : ports_) {
        while (ServeOne(&group, local)) {
        }
      }
      changed += group.EndFilling();
      group.NoteRoom(before_);
      group.NoteRoomLeft(room_);
    }
    return changed;
  }

 private:
  bool Free(std::uint32_t link) const { return room_[link] > capacity_[link] * kRoomSlack; }

  /// Local links of ports by what they have left: bytes, or flows when bytes are not to be known.
  void Rank(const FlowGroup& group, bool by_bytes) {
    const auto links = group.links();
    key_.resize(links.size());
    ports_.clear();
    free_uplinks_.assign((group.uplinks() + 63) / 64, 0);
    free_downlinks_.assign((group.port_links() - group.uplinks() + 63) / 64, 0);
    for (std::uint32_t local = 0; local < links.size(); ++local) {
      key_[local] = by_bytes ? group.Load(local) : group.Count(local);
      if (group.Count(local) > 0 && local < group.port_links() && Free(links[local])) {
        ports_.push_back(local);
        NoteFree(group, local);
      }
    }
    std::sort(ports_.begin(), ports_.end(),
              [this](std::uint32_t a, std::uint32_t b) { return key_[a] != key_[b] ? key_[a] > key_[b] : a < b; });
  }

  void NoteFree(const FlowGroup& group, std::uint32_t local) {
    if (local >= group.port_links()) {
      return;
    }
    const bool up = local < group.uplinks();
    const std::size_t port = up ? local : local - group.uplinks();
    std::uint64_t& word = (up ? free_uplinks_ : free_downlinks_)[port / 64];
    const std::uint64_t bit = std::uint64_t{1} << (port % 64);
    word = Free(group.links()[local]) ? word | bit : word & ~bit;
  }

  /// Serves one more flow of this port's link; false if there is none that has room.
  bool ServeOne(FlowGroup* group, std::uint32_t port) {
    const auto links = group->links();
    if (!Free(links[port])) {
      return false;
    }
    std::uint32_t best = UINT32_MAX;
    double best_key = -1;
    const auto& candidates = port < group->uplinks() ? free_downlinks_ : free_uplinks_;
    group->ForFlowsOfPort(port, candidates, [&](std::uint32_t f) {
      const auto path = group->PathOf(f);
      const std::uint32_t other = path.front() == port ? path.back() : path.front();
      if (key_[other] > best_key &&
          std::all_of(path.begin(), path.end(), [&](std::uint32_t l) { return Free(links[l]); })) {
        best = f;
        best_key = key_[other];
      }
    });
    if (best == UINT32_MAX) {
      return false;
    }
    const auto path = group->PathOf(best);
    const std::uint32_t narrow = *std::min_element(
        path.begin(), path.end(), [&](std::uint32_t a, std::uint32_t b) { return room_[links[a]] < room_[links[b]]; });
    const double rate = room_[links[narrow]];
    for (const std::uint32_t local : path) {
      room_[links[local]] -= rate;
      NoteFree(*group, local);
    }
    group->Serve(best, narrow, rate);
    return true;
  }

  std::vector<double> room_, before_;
  std::span<const double> capacity_;
  std::vector<double> key_;                                   // by local link
  std::vector<std::uint64_t> free_uplinks_, free_downlinks_;  // of the group: bits of the ports with room
  std::vector<std::uint32_t> ports_;                          // local links of ports with room and flows
};

}  // namespace

std::unique_ptr<RateAllocator> MakeGreedyRate(const RateOptions& options) {
  return options.name == "greedy" ? std::make_unique<GreedyRate>() : nullptr;
}

}  // namespace weir::scheduler
