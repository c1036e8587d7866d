#include "coflow/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "coflow/check.h"

namespace weir {
namespace {

constexpr std::size_t kMaxSiteHops = 6;

std::array<std::uint8_t, 4> GeneratedAddress(std::size_t host) {
  return {10, static_cast<std::uint8_t>(host >> 16), static_cast<std::uint8_t>(host >> 8),
          static_cast<std::uint8_t>(host)};
}

bool Better(const Path& a, const Path& b) {
  return std::tuple(a.links.size(), a.delay) < std::tuple(b.links.size(), b.delay);
}

}  // namespace

Result<SiteId> Topology::AddSite(std::string name) {
  if (name.empty()) return Error(StatusCode::kInvalidArgument, "a site needs a name");
  if (sites_.size() >= kMaxSites) {
    return Error(StatusCode::kResourceExhausted, fmt::format("more than {} sites", kMaxSites));
  }
  const SiteId id(sites_.size() + 1);
  if (!site_by_name_.emplace(name, id).second) {
    return Error(StatusCode::kAlreadyExists, fmt::format("site \"{}\" is defined twice", name));
  }
  sites_.push_back({id, std::move(name)});
  return id;
}

Result<LinkId> Topology::AddLink(std::string name, BytesPerSecond capacity, double payload_share, Nanoseconds delay) {
  if (name.empty()) return Error(StatusCode::kInvalidArgument, "a link needs a name");
  if (!std::isfinite(capacity) || capacity <= 0) {
    return Error(StatusCode::kInvalidArgument, fmt::format("link \"{}\": its capacity must be above zero", name));
  }
  if (!(payload_share > 0 && payload_share <= 1)) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("link \"{}\": payload is {}, but must be above 0 and at most 1", name, payload_share));
  }
  if (delay < 0) return Error(StatusCode::kInvalidArgument, fmt::format("link \"{}\": delay is negative", name));
  const LinkId id(links_.size() + 1);
  if (!link_by_name_.emplace(name, id).second) {
    return Error(StatusCode::kAlreadyExists, fmt::format("link \"{}\" is defined twice", name));
  }
  links_.push_back({id, std::move(name), capacity, payload_share, delay});
  return id;
}

Result<HostId> Topology::AddHost(std::string name, SiteId site, std::vector<IpAddress> addresses, BytesPerSecond nic,
                                 double payload_share) {
  if (name.empty()) return Error(StatusCode::kInvalidArgument, "a host needs a name");
  if (hosts_.size() >= kMaxHosts) {
    return Error(StatusCode::kResourceExhausted, fmt::format("more than {} hosts", kMaxHosts));
  }
  if (site.value == 0 || site.value > sites_.size()) {
    return Error(StatusCode::kNotFound, fmt::format("host \"{}\": its site does not exist", name));
  }
  const HostId id(hosts_.size() + 1);
  if (!host_by_name_.emplace(name, id).second) {
    return Error(StatusCode::kAlreadyExists, fmt::format("host \"{}\" is defined twice", name));
  }
  for (const IpAddress& address : addresses) {
    const auto [at, fresh] = host_by_address_.emplace(address, id);
    if (!fresh) {
      const std::string& owner = at->second == id ? name : hosts_[at->second.value - 1].name;
      return Error(StatusCode::kAlreadyExists, fmt::format("host \"{}\": address {} belongs to host \"{}\" already",
                                                           name, address.ToString(), owner));
    }
  }
  const auto out = AddLink(name + ":out", nic, payload_share, 0);
  if (!out) return tl::unexpected(out.error());
  const auto in = AddLink(name + ":in", nic, payload_share, 0);
  if (!in) return tl::unexpected(in.error());
  hosts_.push_back({id, std::move(name), site, std::move(addresses), *out, *in});
  return id;
}

Result<LinkId> Topology::AddSiteLink(std::string name, SiteId from, SiteId to, BytesPerSecond capacity,
                                     double payload_share, Nanoseconds delay) {
  for (const SiteId site : {from, to}) {
    if (site.value == 0 || site.value > sites_.size()) {
      return Error(StatusCode::kNotFound, fmt::format("link \"{}\": one of its sites does not exist", name));
    }
  }
  if (from == to) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("link \"{}\" leads from site \"{}\" to itself", name, sites_[from.value - 1].name));
  }
  const auto link = AddLink(std::move(name), capacity, payload_share, delay);
  if (link) site_links_.push_back({*link, from, to});
  return link;
}

void Topology::FindPaths() {
  WEIR_CHECK(site_paths_.empty());
  site_paths_.resize(sites_.size() * sites_.size());
  for (const Site& site : sites_) FindPathsFrom(site.id);
}

/// Loop-free paths by breadth-first search, shortest first; each destination keeps the first kPathsPerPair.
void Topology::FindPathsFrom(SiteId from) {
  struct Partial {
    Path path;
    std::vector<SiteId> visited;
  };
  std::vector<Partial> frontier = {{Path{}, {from}}};
  std::vector<std::size_t> expanded(sites_.size() + 1, 0);
  for (std::size_t hop = 0; hop < kMaxSiteHops && !frontier.empty(); ++hop) {
    std::vector<Partial> next;
    for (const Partial& partial : frontier) {
      for (const SiteLink& link : site_links_) {
        if (link.from != partial.visited.back()) continue;
        if (std::find(partial.visited.begin(), partial.visited.end(), link.to) != partial.visited.end()) continue;
        Partial longer = partial;
        longer.path.links.push_back(link.link);
        longer.path.delay += links_[link.link.value - 1].delay;
        longer.visited.push_back(link.to);
        next.push_back(std::move(longer));
      }
    }
    std::stable_sort(next.begin(), next.end(),
                     [](const Partial& a, const Partial& b) { return Better(a.path, b.path); });
    frontier.clear();
    for (Partial& partial : next) {
      const SiteId to = partial.visited.back();
      if (expanded[to.value]++ >= kPathsPerPair) continue;
      site_paths_[(from.value - 1) * sites_.size() + to.value - 1].push_back(partial.path);
      frontier.push_back(std::move(partial));
    }
  }
}

const Host* Topology::FindHost(std::string_view name) const {
  const auto found = host_by_name_.find(std::string(name));
  return found == host_by_name_.end() ? nullptr : &hosts_[found->second.value - 1];
}

const Host* Topology::FindHost(const IpAddress& address) const {
  const auto found = host_by_address_.find(address);
  return found == host_by_address_.end() ? nullptr : &hosts_[found->second.value - 1];
}

const Link* Topology::FindLink(std::string_view name) const {
  const auto found = link_by_name_.find(std::string(name));
  return found == link_by_name_.end() ? nullptr : &links_[found->second.value - 1];
}

std::span<const Path> Topology::SitePaths(SiteId from, SiteId to) const {
  return site_paths_[(from.value - 1) * sites_.size() + to.value - 1];
}

Path Topology::WithEnds(const Path& middle, const Host& from, const Host& to) const {
  Path path;
  path.delay = middle.delay;
  path.links.reserve(middle.links.size() + 2);
  path.links.push_back(from.out);
  path.links.insert(path.links.end(), middle.links.begin(), middle.links.end());
  path.links.push_back(to.in);
  return path;
}

Path Topology::PathBetween(HostId from, HostId to) const {
  if (from == to) return {};
  const Host& source = host(from);
  const Host& destination = host(to);
  if (source.site == destination.site) return WithEnds({}, source, destination);
  const auto paths = SitePaths(source.site, destination.site);
  return paths.empty() ? Path{} : WithEnds(paths.front(), source, destination);
}

std::vector<Path> Topology::PathsBetween(HostId from, HostId to) const {
  if (from == to) return {};
  const Host& source = host(from);
  const Host& destination = host(to);
  if (source.site == destination.site) return {WithEnds({}, source, destination)};
  std::vector<Path> paths;
  for (const Path& middle : SitePaths(source.site, destination.site)) {
    paths.push_back(WithEnds(middle, source, destination));
  }
  return paths;
}

Topology Topology::BigSwitch(std::size_t hosts, BytesPerSecond nic) {
  return MultiSite(1, hosts, nic, nic);
}

Topology Topology::LeafSpine(std::size_t leaves, std::size_t hosts_per_leaf, BytesPerSecond nic,
                             BytesPerSecond uplink) {
  Topology topology;
  const SiteId spine = topology.AddSite("spine").value();
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    const SiteId site = topology.AddSite(fmt::format("leaf{}", leaf)).value();
    for (std::size_t i = 0; i < hosts_per_leaf; ++i) {
      const std::size_t number = leaf * hosts_per_leaf + i;
      const std::vector<IpAddress> addresses = {IpAddress::V4(GeneratedAddress(number + 1))};
      WEIR_CHECK(topology.AddHost(fmt::format("h{}", number), site, addresses, nic, kDefaultPayloadShare));
    }
    WEIR_CHECK(topology.AddSiteLink(fmt::format("leaf{}-spine", leaf), site, spine, uplink, kDefaultPayloadShare, 0));
    WEIR_CHECK(topology.AddSiteLink(fmt::format("spine-leaf{}", leaf), spine, site, uplink, kDefaultPayloadShare, 0));
  }
  topology.FindPaths();
  return topology;
}

Topology Topology::MultiSite(std::size_t sites, std::size_t hosts_per_site, BytesPerSecond nic, BytesPerSecond wan,
                             Nanoseconds delay) {
  Topology topology;
  for (std::size_t s = 0; s < sites; ++s) {
    const SiteId site = topology.AddSite(fmt::format("site{}", s)).value();
    for (std::size_t i = 0; i < hosts_per_site; ++i) {
      const std::size_t number = s * hosts_per_site + i;
      const std::vector<IpAddress> addresses = {IpAddress::V4(GeneratedAddress(number + 1))};
      WEIR_CHECK(topology.AddHost(fmt::format("h{}", number), site, addresses, nic, kDefaultPayloadShare));
    }
  }
  for (std::size_t a = 0; a < sites; ++a) {
    for (std::size_t b = 0; b < sites; ++b) {
      if (a == b) continue;
      WEIR_CHECK(topology.AddSiteLink(fmt::format("site{}-site{}", a, b), SiteId(a + 1), SiteId(b + 1), wan,
                                      kDefaultPayloadShare, delay));
    }
  }
  topology.FindPaths();
  return topology;
}

std::string Topology::ToToml() const {
  std::string text;
  for (const Site& site : sites_) text += fmt::format("[[site]]\nname = \"{}\"\n\n", site.name);
  for (const Host& host : hosts_) {
    text += fmt::format("[[host]]\nname = \"{}\"\nsite = \"{}\"\naddresses = [", host.name,
                        sites_[host.site.value - 1].name);
    for (std::size_t i = 0; i < host.addresses.size(); ++i) {
      text += fmt::format("{}\"{}\"", i > 0 ? ", " : "", host.addresses[i].ToString());
    }
    text += fmt::format("]\nnic = \"{} bit/s\"\npayload = {}\n\n", link(host.out).capacity * 8,
                        link(host.out).payload_share);
  }
  for (const SiteLink& each : site_links_) {
    const Link& link = links_[each.link.value - 1];
    text += fmt::format(
        "[[link]]\nname = \"{}\"\nfrom = \"{}\"\nto = \"{}\"\ncapacity = \"{} bit/s\"\npayload = {}\ndelay = \"{} "
        "ns\"\n\n",
        link.name, sites_[each.from.value - 1].name, sites_[each.to.value - 1].name, link.capacity * 8,
        link.payload_share, link.delay);
  }
  return text;
}

}  // namespace weir
