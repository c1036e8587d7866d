#include "transport/key_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weir::transport {

Result<KeyValues> KeyValues::Parse(std::string_view source, std::string_view text) {
  KeyValues parsed;
  parsed.source_ = source;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, end);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == entry.size() ||
        !parsed.values_.emplace(entry.substr(0, equals), entry.substr(equals + 1)).second) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("{}: found \"{}\", allowed: key=value, each key once", source, entry));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parsed;
}

std::string KeyValues::Text(const std::string& key) const {
  const auto at = values_.find(key);
  return at == values_.end() ? "" : at->second;
}

Result<std::uint64_t> KeyValues::Number(const std::string& key, std::uint64_t fallback, std::uint64_t least,
                                        std::uint64_t most) const {
  const auto at = values_.find(key);
  if (at == values_.end()) return fallback;
  const std::string& text = at->second;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  return tl::unexpected(Wrong(key, text, fmt::format("{} to {}", least, most)));
}

Status KeyValues::AllowOnly(std::span<const std::string_view> allowed) const {
  for (const auto& [key, value] : values_) {
    if (std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: found \"{}\", allowed: {}", source_, key, fmt::join(allowed, ", ")));
  }
  return Status::Ok();
}

Status KeyValues::Wrong(const std::string& key, std::string_view found, std::string_view allowed) const {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: {}: found \"{}\", allowed: {}", source_, key, found, allowed));
}

}  // namespace weir::transport
