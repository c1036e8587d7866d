#include "tools/weir-sim/experiment.h"

#include "scheduler/policy/capacity_changes.h"

namespace weir::tools {

Result<Experiment> LoadExperiment(const Options& options) {
  const auto choice = FabricChoice::From(options);
  if (!choice) {
    return tl::unexpected(choice.error());
  }
  Options used = options;
  used.port_mib = choice->port_mib();
  auto sim = SimOptionsOf(used);
  if (!sim) {
    return tl::unexpected(sim.error());
  }
  auto trace = LoadTrace(used, *sim);
  if (!trace) {
    return tl::unexpected(trace.error());
  }
  auto fabric = choice->Build(trace->ports);
  if (!fabric) {
    return tl::unexpected(fabric.error());
  }
  const std::uint32_t ports = fabric->fabric.ports();
  auto changes = scheduler::ParseCapacityChanges(options.capacity_changes, ports, sim->scale,
                                                 std::span(fabric->link_names).subspan(2 * std::size_t{ports}));
  if (!changes) {
    return tl::unexpected(changes.error());
  }
  sim->capacity_changes = std::move(*changes);
  return Experiment{std::move(*trace), std::move(*fabric), std::move(*sim)};
}

}  // namespace weir::tools
