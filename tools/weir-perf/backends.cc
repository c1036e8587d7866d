#include "tools/weir-perf/backends.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

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

Result<std::map<std::string, std::string>> ParseOptions(std::string_view text) {
  std::map<std::string, std::string> options;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == entry.size() ||
        !options.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("--options: found \"{}\", allowed: key=value, each key once", entry));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return options;
}

Status CheckKeys(const BackendSettings& settings, std::span<const std::string_view> allowed) {
  for (const auto& [key, value] : settings.options) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    std::string keys;
    for (const std::string_view one : allowed) keys += fmt::format("{}{}", keys.empty() ? "" : ", ", one);
    return Status(StatusCode::kInvalidArgument, fmt::format("--options: found \"{}\", allowed: {}", key, keys));
  }
  return Status::Ok();
}

Result<std::uint64_t> NumberOption(const BackendSettings& settings, const std::string& key, std::uint64_t fallback,
                                   std::uint64_t least, std::uint64_t most) {
  const auto at = settings.options.find(key);
  if (at == settings.options.end()) return fallback;
  const std::string& text = at->second;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return Error(StatusCode::kInvalidArgument,
               fmt::format("--options: {}: found \"{}\", allowed: {} to {}", key, text, least, most));
}

}  // namespace weir::tools
