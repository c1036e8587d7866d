#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "scheduler/rate/allocator.h"

namespace weir::scheduler {

/// Two to six ports in one to three groups, up to four inner links, random paths over them; capacities from 0.25 to 4.
inline Fabric RandomFabric(std::mt19937_64* random) {
  const auto pick = [&](std::uint64_t n) { return static_cast<std::uint32_t>((*random)() % n); };
  const auto capacity = [&] { return 0.25 * (1 + pick(16)); };
  const std::uint32_t ports = 2 + pick(5);
  const std::uint32_t groups = 1 + pick(3);
  std::vector<std::uint32_t> group_of_port(ports);
  for (std::uint32_t& group : group_of_port) {
    group = pick(groups);
  }
  Fabric fabric(ports, 1.0, group_of_port, groups);
  const std::uint32_t inner = pick(5);
  for (std::uint32_t i = 0; i < inner; ++i) {
    fabric.AddLink(1.0);
  }
  for (std::uint32_t link = 0; link < fabric.links(); ++link) {
    fabric.SetCapacity(link, capacity());
  }
  for (std::uint32_t from = 0; from < groups; ++from) {
    for (std::uint32_t to = 0; to < groups; ++to) {
      std::vector<std::uint32_t> path;
      for (std::uint32_t i = 0; i < inner; ++i) {
        if (pick(3) == 0) {
          path.push_back(2 * ports + i);
        }
      }
      std::shuffle(path.begin(), path.end(), *random);
      fabric.AddPath(from, to, path);
    }
  }
  return fabric;
}

/// A fabric with a few groups of flows on it, in order.
struct RandomCase {
  explicit RandomCase(std::uint64_t seed)
      : random(seed), fabric(RandomFabric(&random)), scratch(fabric.links(), UINT32_MAX) {
    const std::size_t count = 1 + random() % 5;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<MatchFlow> flows;
      const std::uint64_t sparse = 1 + random() % 4;
      for (std::uint32_t s = 0; s < fabric.ports(); ++s) {
        for (std::uint32_t d = 0; d < fabric.ports(); ++d) {
          if (random() % sparse == 0) {
            flows.push_back({s, d, static_cast<std::int64_t>(1 + random() % 100'000)});
          }
        }
      }
      groups.push_back(std::make_unique<FlowGroup>());
      groups.back()->Open(fabric, flows, 0, &scratch);
      order.push_back(
          {groups.back().get(), 0.5 * static_cast<double>(1 + random() % 6), static_cast<std::uint32_t>(i)});
    }
    capacity.assign(fabric.capacity().begin(), fabric.capacity().end());
    if (random() % 4 == 0) {
      capacity[random() % capacity.size()] = 0;
    }
  }

  /// Puts the groups onto at most `levels` levels, in order.
  void ShareLevels(std::uint32_t levels) {
    std::uint32_t level = 0;
    for (RankedGroup& ranked : order) {
      level = std::min(levels - 1, level + static_cast<std::uint32_t>(random() % 2));
      ranked.level = level;
    }
  }

  /// Sum of the rates on each link of the first `count` groups, found from the flows.
  std::vector<double> Used(std::size_t count) const {
    std::vector<double> used(fabric.links(), 0);
    for (std::size_t i = 0; i < count; ++i) {
      const FlowGroup& group = *order[i].group;
      for (std::size_t f = 0; f < group.flows(); ++f) {
        for (const std::uint32_t local : group.PathOf(f)) {
          used[group.links()[local]] += group.Rate(f);
        }
      }
    }
    return used;
  }
  std::vector<double> Used() const { return Used(order.size()); }

  std::mt19937_64 random;
  Fabric fabric;
  std::vector<std::uint32_t> scratch;
  std::vector<std::unique_ptr<FlowGroup>> groups;
  std::vector<RankedGroup> order;
  std::vector<double> capacity;
};

inline std::unique_ptr<RateAllocator> NewRate(const std::string& name, bool backfill = true) {
  return std::move(*MakeRate({name, backfill}));
}

}  // namespace weir::scheduler
