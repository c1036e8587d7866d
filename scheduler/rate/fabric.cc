#include "scheduler/rate/fabric.h"

#include <fmt/format.h>

#include "coflow/check.h"

namespace weir::scheduler {
namespace {

/// The finalizer of MurmurHash3 (A. Appleby): every bit of the result depends on every bit of the key.
std::uint64_t Mix(std::uint64_t key) {
  key = (key ^ key >> 33) * 0xff51afd7ed558ccd;
  key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53;
  return key ^ key >> 33;
}

}  // namespace

Fabric::Fabric(std::uint32_t ports, double capacity, std::vector<std::uint32_t> group_of_port, std::uint32_t groups)
    : ports_(ports),
      groups_(groups),
      capacity_(2 * std::size_t{ports}, capacity),
      group_of_port_(std::move(group_of_port)),
      inner_(std::size_t{groups} * groups) {
  WEIR_CHECK(group_of_port_.size() == ports);
}

Fabric Fabric::BigSwitch(std::uint32_t ports, double capacity) {
  return Fabric(ports, capacity, std::vector<std::uint32_t>(ports, 0), 1);
}

Result<Fabric> Fabric::FromTopology(const Topology& topology, BytesPerSecond reference) {
  const auto hosts = topology.hosts();
  const auto sites = static_cast<std::uint32_t>(topology.sites().size());
  std::vector<std::uint32_t> site_of_port;
  std::vector<std::uint32_t> number(topology.links().size(), UINT32_MAX);  // by LinkId.value - 1
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    site_of_port.push_back(static_cast<std::uint32_t>(hosts[i].site.value - 1));
    number[hosts[i].out.value - 1] = static_cast<std::uint32_t>(i);
    number[hosts[i].in.value - 1] = static_cast<std::uint32_t>(hosts.size() + i);
  }
  Fabric fabric(static_cast<std::uint32_t>(hosts.size()), 0, site_of_port, sites);
  for (const Link& link : topology.links()) {
    std::uint32_t& n = number[link.id.value - 1];
    if (n == UINT32_MAX) {
      n = fabric.AddLink(0);
    }
    fabric.SetCapacity(n, link.payload_rate() / reference);
  }
  std::vector<bool> inhabited(sites, false);
  for (const std::uint32_t site : site_of_port) {
    inhabited[site] = true;
  }
  for (const Site& from : topology.sites()) {
    for (const Site& to : topology.sites()) {
      if (from.id == to.id || !inhabited[from.id.value - 1] || !inhabited[to.id.value - 1]) {
        continue;
      }
      const auto paths = topology.SitePaths(from.id, to.id);
      if (paths.empty()) {
        return Error(StatusCode::kInvalidArgument,
                     fmt::format("no path from site {} to site {}; add links between them", from.name, to.name));
      }
      for (const Path& path : paths) {
        if (path.links.size() > paths.front().links.size()) {
          break;
        }
        std::vector<std::uint32_t> inner;
        inner.reserve(path.links.size());
        for (const LinkId link : path.links) {
          inner.push_back(number[link.value - 1]);
        }
        fabric.AddPath(static_cast<std::uint32_t>(from.id.value - 1), static_cast<std::uint32_t>(to.id.value - 1),
                       std::move(inner));
      }
    }
  }
  return fabric;
}

std::uint32_t Fabric::AddLink(double capacity) {
  capacity_.push_back(capacity);
  return links() - 1;
}

void Fabric::AddPath(std::uint32_t from_group, std::uint32_t to_group, std::vector<std::uint32_t> inner) {
  inner_[std::size_t{from_group} * groups_ + to_group].push_back(std::move(inner));
}

std::span<const std::uint32_t> Fabric::InnerLinks(std::uint32_t source, std::uint32_t destination) const {
  const Paths& paths = inner_[group_of_port_[source] * groups_ + group_of_port_[destination]];
  if (paths.empty()) {
    return {};
  }
  return paths[paths.size() == 1 ? 0 : Mix(std::uint64_t{source} << 32 | destination) % paths.size()];
}

}  // namespace weir::scheduler
