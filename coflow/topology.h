#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "coflow/ids.h"
#include "coflow/ip_address.h"
#include "coflow/status.h"
#include "coflow/units.h"

namespace weir {

/// Share of a link's capacity that is left for TCP payload with 1500-byte packets.
inline constexpr double kDefaultPayloadShare = 0.95;
/// What a link's capacity may be: from 1 kbit/s to 1 Pbit/s. Outside of it somebody mistook the unit.
inline constexpr BytesPerSecond kMinCapacity = 125;
inline constexpr BytesPerSecond kMaxCapacity = 125e12;
inline constexpr Nanoseconds kMaxDelay = 60 * kSecond;  ///< Of one link, one way.

/// A data center.
struct Site {
  SiteId id;
  std::string name;
};

/// A machine with one port: its two links.
struct Host {
  HostId id;
  std::string name;
  SiteId site;
  std::vector<IpAddress> addresses;
  LinkId out;  ///< From the host into its site's network.
  LinkId in;
};

/// A directed link.
struct Link {
  LinkId id;
  std::string name;
  BytesPerSecond capacity = 0;  ///< On the wire.
  double payload_share = kDefaultPayloadShare;
  Nanoseconds delay = 0;  ///< One way.
  BytesPerSecond payload_rate() const { return capacity * payload_share; }
};

struct Path {
  std::vector<LinkId> links;  ///< In the order of travel.
  Nanoseconds delay = 0;      ///< Sum over the links.
};

/// Sites, hosts, links, and the paths between hosts. Inside a site every host reaches every other over its own two
/// links only ("one big switch"); between sites a path also takes one or more site links.
///
/// Immutable after construction, so any thread may read. Ids are dense from 1: `id.value - 1` indexes the spans.
class Topology {
 public:
  static constexpr std::size_t kMaxHosts = 100'000;
  static constexpr std::size_t kMaxSites = 256;
  static constexpr std::size_t kMaxSiteLinks = kMaxSites * kMaxSites;
  static constexpr std::size_t kMaxNameBytes = 128;
  static constexpr std::size_t kMaxFileBytes = 64u << 20;
  static constexpr std::size_t kPathsPerPair = 4;  ///< Alternatives kept between two sites.

  /// Reads the format of docs/topology.md. Strict: what is not known is an error. Every error names `source_name`, the
  /// line, the key, what was found and what is allowed.
  static Result<Topology> FromToml(std::string_view text, std::string_view source_name);
  /// The same from a file.
  static Result<Topology> Load(const std::string& path);

  /// One site; `hosts` >= 1 hosts "h0", "h1", ... with addresses 10.x.y.z and links of `nic`.
  static Topology BigSwitch(std::size_t hosts, BytesPerSecond nic);
  /// `leaves` sites of `hosts_per_leaf` hosts each, joined through one more site, the spine, by links of `uplink`.
  static Topology LeafSpine(std::size_t leaves, std::size_t hosts_per_leaf, BytesPerSecond nic, BytesPerSecond uplink);
  /// `sites` sites, each pair joined both ways by links of `wan` with `delay` one way.
  static Topology MultiSite(std::size_t sites, std::size_t hosts_per_site, BytesPerSecond nic, BytesPerSecond wan,
                            Nanoseconds delay = 0);
  /// What FromToml reads back as an equal topology.
  std::string ToToml() const;

  std::span<const Site> sites() const { return sites_; }
  std::span<const Host> hosts() const { return hosts_; }
  std::span<const Link> links() const { return links_; }
  const Link& link(LinkId id) const { return links_[id.value - 1]; }
  const Host& host(HostId id) const { return hosts_[id.value - 1]; }

  /// nullptr if there is none.
  const Host* FindHost(std::string_view name) const;
  const Host* FindHost(const IpAddress& address) const;
  const Link* FindLink(std::string_view name) const;
  /// The links between two sites only, best first (fewest links, then least delay); empty inside a site.
  std::span<const Path> SitePaths(SiteId from, SiteId to) const;
  /// The best path, source's out link and destination's in link included; no links if there is none or from == to.
  Path PathBetween(HostId from, HostId to) const;
  /// All alternatives, best first.
  std::vector<Path> PathsBetween(HostId from, HostId to) const;

  // ---- Building; used by the loader and the generators. Each refuses duplicates, unknown ids and bad numbers,
  // and changes nothing when it refuses. ----
  Result<SiteId> AddSite(std::string name);
  Result<HostId> AddHost(std::string name, SiteId site, std::vector<IpAddress> addresses, BytesPerSecond nic,
                         double payload_share);
  Result<LinkId> AddSiteLink(std::string name, SiteId from, SiteId to, BytesPerSecond capacity, double payload_share,
                             Nanoseconds delay);
  /// Must be called once, after the last Add.
  void FindPaths();

 private:
  struct SiteLink {
    LinkId link;
    SiteId from;
    SiteId to;
  };
  Status CheckNewHost(const std::string& name, SiteId site, std::span<const IpAddress> addresses) const;
  LinkId AddLink(std::string name, BytesPerSecond capacity, double payload_share, Nanoseconds delay);
  Path WithEnds(const Path& middle, const Host& from, const Host& to) const;
  void FindPathsFrom(SiteId from, const std::vector<std::vector<const SiteLink*>>& links_from);

  std::vector<Site> sites_;
  std::vector<Host> hosts_;
  std::vector<Link> links_;
  std::vector<SiteLink> site_links_;
  std::unordered_map<std::string, SiteId> site_by_name_;
  std::unordered_map<std::string, HostId> host_by_name_;
  std::unordered_map<IpAddress, HostId> host_by_address_;
  std::unordered_map<std::string, LinkId> link_by_name_;
  std::vector<std::vector<Path>> site_paths_;  ///< [from * sites + to]
};

}  // namespace weir
