// A topology file: read or refused with a message that names the file. What was read must be written and read back the
// same, and every path must be one.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "coflow/check.h"
#include "coflow/topology.h"

namespace {

using weir::Host;
using weir::Path;
using weir::Topology;

constexpr std::size_t kHostsLookedAt = 16;

void CheckPaths(const Topology& topology, const Host& from, const Host& to) {
  weir::Nanoseconds delay = 0;
  const Path best = topology.PathBetween(from.id, to.id);
  const auto all = topology.PathsBetween(from.id, to.id);
  WEIR_CHECK(all.empty() == best.links.empty() && all.size() <= Topology::kPathsPerPair);
  for (const Path& path : all) {
    WEIR_CHECK(path.links.size() >= best.links.size());
    WEIR_CHECK(path.links.front() == from.out && path.links.back() == to.in);
    delay = 0;
    for (const weir::LinkId link : path.links) delay += topology.link(link).delay;
    WEIR_CHECK(delay == path.delay);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto topology = Topology::FromToml(text, "input.toml");
  if (!topology) {
    WEIR_CHECK(topology.error().message().starts_with("input.toml:"));
    return 0;
  }
  const std::string written = topology->ToToml();
  const auto again = Topology::FromToml(written, "again.toml");
  WEIR_CHECK(again && again->ToToml() == written);
  const auto hosts = topology->hosts().first(std::min(kHostsLookedAt, topology->hosts().size()));
  for (const Host& from : hosts) {
    for (const Host& to : hosts) CheckPaths(*topology, from, to);
  }
  return 0;
}
