#include "coflow/topology.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include "coflow/check.h"

namespace weir {
namespace {

std::array<std::uint8_t, 4> GeneratedAddress(std::size_t host) {
  return {10, static_cast<std::uint8_t>(host >> 16), static_cast<std::uint8_t>(host >> 8),
          static_cast<std::uint8_t>(host)};
}

/// Names appear in logs, JSON, metrics and file names, so they are made of characters that none of these must quote.
Status CheckName(std::string_view what, std::string_view name) {
  constexpr std::string_view kPunctuation = "._-:/+@";
  const bool fine = !name.empty() && name.size() <= Topology::kMaxNameBytes && std::ranges::all_of(name, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPunctuation.find(c) != std::string_view::npos;
  });
  if (fine) return Status::Ok();
  return {StatusCode::kInvalidArgument, fmt::format("\"{}\" is no name for a {}; allowed: 1 to {} of A-Z a-z 0-9 {}",
                                                    name, what, Topology::kMaxNameBytes, kPunctuation)};
}

Status CheckCapacity(std::string_view link, BytesPerSecond capacity, double payload_share) {
  // Written so that a NaN is refused too.
  if (!(capacity >= kMinCapacity && capacity <= kMaxCapacity)) {
    return {StatusCode::kInvalidArgument, fmt::format("link \"{}\": capacity is {} bytes/s; allowed: {} to {}", link,
                                                      capacity, kMinCapacity, kMaxCapacity)};
  }
  if (!(payload_share > 0 && payload_share <= 1)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("link \"{}\": payload is {}; allowed: above 0, at most 1", link, payload_share)};
  }
  return Status::Ok();
}

}  // namespace

Result<SiteId> Topology::AddSite(std::string name) {
  if (Status status = CheckName("site", name); !status.ok()) return tl::unexpected(status);
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

Status Topology::CheckNewHost(const std::string& name, SiteId site, std::span<const IpAddress> addresses) const {
  if (Status status = CheckName("host", name); !status.ok()) return status;
  if (hosts_.size() >= kMaxHosts) return {StatusCode::kResourceExhausted, fmt::format("more than {} hosts", kMaxHosts)};
  if (site.value == 0 || site.value > sites_.size()) {
    return {StatusCode::kNotFound, fmt::format("host \"{}\": its site does not exist", name)};
  }
  if (host_by_name_.contains(name)) {
    return {StatusCode::kAlreadyExists, fmt::format("host \"{}\" is defined twice", name)};
  }
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Host* owner = FindHost(addresses[i]);
    const bool repeated = std::ranges::find(addresses.first(i), addresses[i]) != addresses.begin() + std::ptrdiff_t(i);
    if (owner == nullptr && !repeated) continue;
    return {StatusCode::kAlreadyExists, fmt::format("host \"{}\": address {} belongs to host \"{}\" already", name,
                                                    addresses[i].ToString(), owner == nullptr ? name : owner->name)};
  }
  for (const std::string_view end : {":out", ":in"}) {
    const Link* taken = FindLink(name + std::string(end));
    if (taken == nullptr) continue;
    return {StatusCode::kAlreadyExists, fmt::format("host \"{}\": a link is named \"{}\" already", name, taken->name)};
  }
  return Status::Ok();
}

LinkId Topology::AddLink(std::string name, BytesPerSecond capacity, double payload_share, Nanoseconds delay) {
  const LinkId id(links_.size() + 1);
  link_by_name_.emplace(name, id);
  links_.push_back({id, std::move(name), capacity, payload_share, delay});
  return id;
}

Result<HostId> Topology::AddHost(std::string name, SiteId site, std::vector<IpAddress> addresses, BytesPerSecond nic,
                                 double payload_share) {
  if (Status status = CheckNewHost(name, site, addresses); !status.ok()) return tl::unexpected(status);
  if (Status status = CheckCapacity(name + ":out", nic, payload_share); !status.ok()) return tl::unexpected(status);
  const HostId id(hosts_.size() + 1);
  host_by_name_.emplace(name, id);
  for (const IpAddress& address : addresses) host_by_address_.emplace(address, id);
  const LinkId out = AddLink(name + ":out", nic, payload_share, 0);
  const LinkId in = AddLink(name + ":in", nic, payload_share, 0);
  hosts_.push_back({id, std::move(name), site, std::move(addresses), out, in});
  return id;
}

Result<LinkId> Topology::AddSiteLink(std::string name, SiteId from, SiteId to, BytesPerSecond capacity,
                                     double payload_share, Nanoseconds delay) {
  if (Status status = CheckName("link", name); !status.ok()) return tl::unexpected(status);
  if (site_links_.size() >= kMaxSiteLinks) {
    return Error(StatusCode::kResourceExhausted, fmt::format("more than {} links between sites", kMaxSiteLinks));
  }
  for (const SiteId site : {from, to}) {
    if (site.value == 0 || site.value > sites_.size()) {
      return Error(StatusCode::kNotFound, fmt::format("link \"{}\": one of its sites does not exist", name));
    }
  }
  if (from == to) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("link \"{}\" leads from site \"{}\" to itself", name, sites_[from.value - 1].name));
  }
  if (link_by_name_.contains(name)) {
    return Error(StatusCode::kAlreadyExists, fmt::format("link \"{}\" is defined twice", name));
  }
  if (Status status = CheckCapacity(name, capacity, payload_share); !status.ok()) return tl::unexpected(status);
  if (delay < 0 || delay > kMaxDelay) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("link \"{}\": delay is {} ns; allowed: 0 to {}", name, delay, kMaxDelay));
  }
  const LinkId link = AddLink(std::move(name), capacity, payload_share, delay);
  site_links_.push_back({link, from, to});
  return link;
}

void Topology::FindPaths() {
  WEIR_CHECK(site_paths_.empty());
  site_paths_.resize(sites_.size() * sites_.size());
  std::vector<std::vector<const SiteLink*>> links_from(sites_.size() + 1);
  for (const SiteLink& link : site_links_) links_from[link.from.value].push_back(&link);
  for (const Site& site : sites_) FindPathsFrom(site.id, links_from);
}

/// Breadth-first search by number of links; each site keeps its kPathsPerPair best loop-free paths and only these are
/// continued. The best path is exact: if it leads through a site, its beginning is the best path to that site. The
/// alternatives are good ones, not provably the next best. O(kPathsPerPair x links x links of a path).
void Topology::FindPathsFrom(SiteId from, const std::vector<std::vector<const SiteLink*>>& links_from) {
  struct Step {
    SiteId at;
    const Step* before;
    LinkId link;
    Nanoseconds delay;
  };
  const auto visits = [](const Step* step, SiteId site) {
    for (; step != nullptr; step = step->before) {
      if (step->at == site) return true;
    }
    return false;
  };
  std::deque<Step> kept = {{from, nullptr, LinkId(), 0}};  // A deque: steps point at each other.
  std::vector<std::size_t> paths_to(sites_.size() + 1, 0);
  std::size_t begin = 0;
  while (begin < kept.size()) {
    const std::size_t end = kept.size();
    std::map<SiteId, std::vector<Step>> reached;  // One link further.
    for (; begin < end; ++begin) {
      const Step& step = kept[begin];
      for (const SiteLink* link : links_from[step.at.value]) {
        if (paths_to[link->to.value] >= kPathsPerPair || visits(&step, link->to)) continue;
        reached[link->to].push_back({link->to, &step, link->link, step.delay + this->link(link->link).delay});
      }
    }
    for (auto& [site, steps] : reached) {
      std::ranges::stable_sort(steps, {}, &Step::delay);
      for (const Step& step : steps) {
        if (paths_to[site.value]++ >= kPathsPerPair) break;
        kept.push_back(step);
        Path path{.links = {}, .delay = step.delay};
        for (const Step* at = &step; at->before != nullptr; at = at->before) path.links.push_back(at->link);
        std::ranges::reverse(path.links);
        site_paths_[(from.value - 1) * sites_.size() + site.value - 1].push_back(std::move(path));
      }
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
  }
  for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
    const SiteId site(leaf + 2);
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
