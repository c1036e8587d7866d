#include <algorithm>
#include <array>
#include <vector>

#include "scheduler/rate/allocator.h"

namespace weir::scheduler {
namespace {

constexpr double kRoomSlack = 1e-9;  // relative to the capacity; below it is rounding

/// The ports of one side of a group that have flows and room, counted within the side: as a list in order, which
/// begins and ends at the number behind the last port, and as bits.
struct FreePorts {
  std::vector<std::uint32_t> next, previous;
  std::vector<std::uint64_t> bits;

  void Open(std::size_t ports) {
    next.resize(ports + 1);
    previous.resize(ports + 1);
    next[ports] = previous[ports] = static_cast<std::uint32_t>(ports);
    bits.assign((ports + 63) / 64, 0);
  }
  std::uint32_t end() const { return static_cast<std::uint32_t>(next.size() - 1); }
  std::uint32_t first() const { return next[end()]; }
  bool empty() const { return first() == end(); }
  void Add(std::uint32_t port) {
    const std::uint32_t last = previous[end()];
    next[last] = previous[end()] = port;
    next[port] = end();
    previous[port] = last;
    bits[port / 64] |= std::uint64_t{1} << (port % 64);
  }
  void Remove(std::uint32_t port) {
    next[previous[port]] = next[port];
    previous[next[port]] = previous[port];
    bits[port / 64] &= ~(std::uint64_t{1} << (port % 64));
  }
};

/// Coflow by coflow in order; inside, the ports in order of what they have left, largest first, each give all they can
/// to the flow whose other port has most left. A flow is given what its path has room for, which fills a link of it. On
/// equal ports of one big switch that is a matching, flow by flow at full rate.
///
/// For each coflow for which something changed O(n log n) in the ports with room and, in a shuffle, not much more; at
/// worst O(n^2), when no flow is where it is looked for.
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
      group.NoteRoom(room_);
      Rank(&group, ranked.sizes_known);
      served_.clear();
      for (std::size_t i = 0; i < ports_.size() && !uplinks_.empty() && !downlinks_.empty(); ++i) {
        while (ServeOne(group, ports_[i])) {
        }
      }
      SetLevels(&group);
      changed += group.EndFilling();
      group.NoteRoomLeft(room_);
    }
    return changed;
  }

 private:
  struct Keyed {
    double key;
    std::uint32_t local;
  };

  bool Free(std::uint32_t link) const { return room_[link] > capacity_[link] * kRoomSlack; }

  static double Key(const FlowGroup& group, std::uint32_t local, bool by_bytes) {
    return by_bytes ? group.Load(local) : group.Count(local);
  }

  /// Local links of ports with flows and room by what they have left: bytes, or flows when bytes are not to be known.
  void Rank(FlowGroup* group, bool by_bytes) {
    PutInOrder(group, by_bytes);
    const auto links = group->links();
    const std::size_t uplinks = group->uplinks();
    ports_.clear();
    uplinks_.Open(uplinks);
    downlinks_.Open(group->port_links() - uplinks);
    for (const std::uint32_t local : group->port_order()) {
      if (group->Count(local) > 0 && Free(links[local])) {
        ports_.push_back(local);
        local < uplinks ? uplinks_.Add(local) : downlinks_.Add(static_cast<std::uint32_t>(local - uplinks));
      }
    }
  }

  /// Brings the order of all ports up to date. What a port has left changes only while it is served, which is noted;
  /// the others are in order still.
  void PutInOrder(FlowGroup* group, bool by_bytes) {
    const auto order = group->port_order();
    const auto served = group->port_notes();
    served_before_.clear();
    std::size_t kept = 0;
    for (const std::uint32_t local : order) {
      if (served[local] == 0) {
        order[kept++] = local;
      } else {
        served[local] = 0;
        served_before_.push_back({Key(*group, local, by_bytes), local});
      }
    }
    SortNearlySorted(&served_before_);  // all have become less by the same, mostly
    std::size_t end = order.size();
    for (std::size_t i = served_before_.size(); i-- > 0; order[--end] = served_before_[i].local) {
      while (kept > 0 && Before(served_before_[i], {Key(*group, order[kept - 1], by_bytes), order[kept - 1]})) {
        order[--end] = order[--kept];
      }
    }
  }

  static bool Before(const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key > b.key : a.local < b.local; }

  /// By insertion; from the start if that moves too many.
  static void SortNearlySorted(std::vector<Keyed>* ports) {
    std::size_t moves_left = 8 * ports->size();
    for (std::size_t i = 1; i < ports->size(); ++i) {
      const Keyed port = (*ports)[i];
      std::size_t at = i;
      for (; at > 0 && Before(port, (*ports)[at - 1]); --at) {
        (*ports)[at] = (*ports)[at - 1];
      }
      (*ports)[at] = port;
      if (i - at > moves_left) {
        std::sort(ports->begin(), ports->end(), Before);
        return;
      }
      moves_left -= i - at;
    }
  }

  struct Served {
    std::uint32_t flow;
    std::array<std::uint32_t, 2> ports;  // local links of its source and destination
    std::uint32_t narrow;                // the local link that is filled
    double rate;
  };

  /// The flow of this port whose other port, of those with room, comes first; false: there is none.
  bool FindFlow(const FlowGroup& group, std::uint32_t port, Served* found) const {
    const bool up = port < group.uplinks();
    const FreePorts& others = up ? downlinks_ : uplinks_;
    const auto first_other = static_cast<std::uint32_t>(up ? group.uplinks() : 0);
    const std::uint64_t* live = group.LivePartners(port);
    std::uint64_t candidates = 0;
    for (std::size_t word = 0; word < others.bits.size(); ++word) {
      candidates |= live[word] & others.bits[word];
    }
    if (candidates == 0) {
      return false;
    }
    for (std::uint32_t other = others.first(); other != others.end(); other = others.next[other]) {
      if ((live[other / 64] >> (other % 64) & 1) == 0) {
        continue;
      }
      const std::uint32_t partner = first_other + other;
      found->ports = {up ? port : partner, up ? partner : port};
      found->flow = group.LiveFlow(found->ports[0], found->ports[1]);
      if (!group.has_inner_links() || HasRoom(group, found->flow)) {
        return true;
      }
    }
    return false;
  }

  /// The path of a flow; without inner links nobody has to look for it.
  static std::span<const std::uint32_t> PathOf(const FlowGroup& group, const Served& served) {
    return group.has_inner_links() ? group.PathOf(served.flow) : std::span(served.ports);
  }

  bool HasRoom(const FlowGroup& group, std::uint32_t f) const {
    const auto path = group.PathOf(f);
    return std::all_of(path.begin(), path.end(), [&](std::uint32_t local) { return Free(group.links()[local]); });
  }

  /// Serves one more flow of this port's link; false if there is none that has room.
  bool ServeOne(const FlowGroup& group, std::uint32_t port) {
    const auto links = group.links();
    Served served = {};
    if (!Free(links[port]) || !FindFlow(group, port, &served)) {
      return false;
    }
    const auto path = PathOf(group, served);
    served.narrow = *std::min_element(
        path.begin(), path.end(), [&](std::uint32_t a, std::uint32_t b) { return room_[links[a]] < room_[links[b]]; });
    served.rate = room_[links[served.narrow]];
    for (const std::uint32_t local : path) {
      room_[links[local]] -= served.rate;
    }
    if (!Free(links[path.front()])) {
      uplinks_.Remove(path.front());
    }
    if (!Free(links[path.back()])) {
      downlinks_.Remove(static_cast<std::uint32_t>(path.back() - group.uplinks()));
    }
    served_.push_back(served);
    return true;
  }

  /// Flows that are served as before keep their owners.
  void SetLevels(FlowGroup* group) {
    flow_of_link_.assign(group->links().size(), FlowGroup::kNoFlow);
    for (const Served& served : served_) {
      flow_of_link_[served.narrow] = served.flow;
    }
    group->DisownBut(flow_of_link_);
    group->BeginFilling();
    for (const Served& served : served_) {
      group->Serve(served.flow, PathOf(*group, served), served.narrow, served.rate);
      group->port_notes()[served.ports[0]] = group->port_notes()[served.ports[1]] = 1;
    }
  }

  std::vector<double> room_;
  std::span<const double> capacity_;
  std::vector<std::uint32_t> ports_;  // local links of ports with flows and room, in order
  std::vector<Keyed> served_before_;  // scratch of PutInOrder()
  FreePorts uplinks_, downlinks_;
  std::vector<Served> served_;
  std::vector<std::uint32_t> flow_of_link_;  // by local link: whom it is filled by
};

}  // namespace

std::unique_ptr<RateAllocator> MakeGreedyRate(const RateOptions& options) {
  return options.name == "greedy" ? std::make_unique<GreedyRate>() : nullptr;
}

}  // namespace weir::scheduler
