#include "tools/weir-perf/backends.h"

#include <fmt/format.h>

#include <array>

namespace weir::tools {

std::span<const Backend> Backends() {
  static const std::array backends{TcpBackend(), RdmaBackend(), DpdkBackend()};
  return backends;
}

Result<const Backend*> FindBackend(std::string_view name) {
  std::string names;
  for (const Backend& backend : Backends()) {
    if (backend.name == name) return &backend;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", backend.name);
  }
  return Error(StatusCode::kInvalidArgument, fmt::format("--backend: found \"{}\", allowed: {}", name, names));
}

}  // namespace weir::tools
