#include "tools/weir-sim/fabric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace weir::tools {
namespace {

constexpr double kMebibyte = 1'048'576;
constexpr double kOversubscriptionMax = 1000;
constexpr std::size_t kPathsMax = std::size_t{1} << 20;  ///< Leaves x leaves x spines.

std::vector<std::string> PortLinkNames(std::uint32_t ports) {
  std::vector<std::string> names;
  for (const char* direction : {"up", "down"}) {
    for (std::uint32_t port = 0; port < ports; ++port) {
      names.push_back(fmt::format("{}{}", direction, port));
    }
  }
  return names;
}

bool IsFile(const std::string& name) {
  return name.ends_with(".toml");
}

}  // namespace

Result<FabricChoice> FabricChoice::From(const Options& options) {
  FabricChoice choice;
  choice.name_ = options.fabric;
  choice.port_mib_ = options.port_mib;
  choice.leaves_ = options.leaves;
  choice.spines_ = options.spines;
  choice.oversubscription_ = options.oversubscription;
  if (options.fabric != "big-switch" && options.fabric != "leaf-spine" && !IsFile(options.fabric)) {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("--fabric: found \"{}\", allowed: big-switch, leaf-spine, a topology FILE.toml", options.fabric));
  }
  const Options defaults;
  const bool shaped = options.leaves != defaults.leaves || options.spines != defaults.spines ||
                      options.oversubscription != defaults.oversubscription;
  if (shaped && options.fabric != "leaf-spine") {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format(
            "--leaves, --spines and --oversubscription are allowed with --fabric leaf-spine only, found --fabric {}",
            options.fabric));
  }
  if (!(options.oversubscription > 0) || !(options.oversubscription <= kOversubscriptionMax) || options.spines == 0) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--oversubscription: allowed: above 0 and at most {}; --spines: allowed: 1 or more",
                             kOversubscriptionMax));
  }
  if (!IsFile(options.fabric)) {
    return choice;
  }
  auto topology = Topology::Load(options.fabric);
  if (!topology) {
    return tl::unexpected(topology.error());
  }
  double fastest = 0;
  for (const Host& host : topology->hosts()) {
    fastest = std::max(fastest, topology->link(host.out).payload_rate());
  }
  choice.port_mib_ = fastest / kMebibyte;
  choice.topology_ = std::move(*topology);
  return choice;
}

Result<NamedFabric> FabricChoice::Build(std::uint32_t ports) const {
  if (topology_) {
    return FromFile(ports);
  }
  if (name_ == "leaf-spine") {
    return LeafSpine(ports);
  }
  return NamedFabric{scheduler::Fabric::BigSwitch(ports), PortLinkNames(ports), true};
}

Result<NamedFabric> FabricChoice::LeafSpine(std::uint32_t ports) const {
  const std::uint32_t leaves =
      leaves_ > 0 ? leaves_ : static_cast<std::uint32_t>(std::ceil(std::sqrt(static_cast<double>(ports))));
  const bool many = std::size_t{leaves} * leaves > kPathsMax / std::min<std::size_t>(spines_, kPathsMax);
  if (leaves > ports || many) {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("--leaves: found {} with --spines {}, allowed: at most one a port of the {} that the trace "
                    "has, and leaves x leaves x spines at most {}",
                    leaves, spines_, ports, kPathsMax));
  }
  std::vector<std::uint32_t> leaf_of_port(ports);
  std::vector<std::uint32_t> ports_of_leaf(leaves, 0);
  for (std::uint32_t port = 0; port < ports; ++port) {
    leaf_of_port[port] = static_cast<std::uint32_t>(std::uint64_t{port} * leaves / ports);
    ++ports_of_leaf[leaf_of_port[port]];
  }
  NamedFabric named{scheduler::Fabric(ports, 1.0, std::move(leaf_of_port), leaves), PortLinkNames(ports), false};
  for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (std::uint32_t spine = 0; spine < spines_; ++spine) {
      for (const char* direction : {"up", "down"}) {
        named.fabric.AddLink(static_cast<double>(ports_of_leaf[leaf]) / oversubscription_ / spines_);
        named.link_names.push_back(fmt::format("leaf{}:spine{}:{}", leaf, spine, direction));
      }
    }
  }
  const auto link = [&](std::uint32_t leaf, std::uint32_t spine, std::uint32_t down) {
    return 2 * ports + 2 * (leaf * spines_ + spine) + down;
  };
  for (std::uint32_t from = 0; from < leaves; ++from) {
    for (std::uint32_t to = 0; to < leaves; ++to) {
      for (std::uint32_t spine = 0; from != to && spine < spines_; ++spine) {
        named.fabric.AddPath(from, to, {link(from, spine, 0), link(to, spine, 1)});
      }
    }
  }
  return named;
}

Result<NamedFabric> FabricChoice::FromFile(std::uint32_t ports) const {
  if (topology_->hosts().size() < ports) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("--fabric {}: found {} hosts, allowed: at least {}, one for each port of the trace", name_,
                             topology_->hosts().size(), ports));
  }
  auto fabric = scheduler::Fabric::FromTopology(*topology_, port_mib_ * kMebibyte);
  if (!fabric) {
    return Error(fabric.error().code(), fmt::format("--fabric {}: {}", name_, fabric.error().message()));
  }
  NamedFabric named{std::move(*fabric), {}, false};
  named.link_names = PortLinkNames(named.fabric.ports());
  std::vector<bool> of_host(topology_->links().size(), false);
  for (const Host& host : topology_->hosts()) {
    of_host[host.out.value - 1] = true;
    of_host[host.in.value - 1] = true;
  }
  for (const Link& link : topology_->links()) {
    if (!of_host[link.id.value - 1]) {
      named.link_names.push_back(link.name);
    }
  }
  return named;
}

}  // namespace weir::tools
