#pragma once

#include <optional>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "coflow/topology.h"
#include "scheduler/rate/fabric.h"
#include "tools/weir-sim/options.h"

namespace weir::tools {

/// A fabric and what its links are called: `up3` and `down3` of port 3, then the inner links.
struct NamedFabric {
  scheduler::Fabric fabric;
  std::vector<std::string> link_names;  ///< By link.
  bool big_switch = true;               ///< Equal ports and no inner links: what rate=matching can do.
};

/// What --fabric says, before the number of ports is known. A plain value.
class FabricChoice {
 public:
  /// InvalidArgument for a flag that is out of range or a file that is no topology, NotFound if it cannot be opened.
  static Result<FabricChoice> From(const Options& options);

  /// Speed of the fastest port in MiB/s: what time is counted in.
  double port_mib() const { return port_mib_; }
  /// InvalidArgument if it cannot have so many ports.
  Result<NamedFabric> Build(std::uint32_t ports) const;

 private:
  Result<NamedFabric> LeafSpine(std::uint32_t ports) const;
  Result<NamedFabric> FromFile(std::uint32_t ports) const;

  std::string name_;
  double port_mib_ = 0;
  std::uint32_t leaves_ = 0, spines_ = 1;
  double oversubscription_ = 1;
  std::optional<Topology> topology_;
};

}  // namespace weir::tools
