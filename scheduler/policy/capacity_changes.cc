#include "scheduler/policy/capacity_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace weir::scheduler {
namespace {

constexpr double kTimeMax = 1e12;  ///< In the unit of the trace; longer than any trace.

bool ReadNumber(std::string_view text, double high, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return !text.empty() && error == std::errc() && end == text.data() + text.size() && *value >= 0 && *value <= high;
}

bool ReadLink(std::string_view text, std::uint32_t ports, std::span<const std::string> inner, std::uint32_t* link) {
  if (const auto named = std::find(inner.begin(), inner.end(), text); named != inner.end()) {
    *link = 2 * ports + static_cast<std::uint32_t>(named - inner.begin());
    return true;
  }
  const bool up = text.starts_with("up");
  if (!up && !text.starts_with("down")) {
    return false;
  }
  const std::string_view digits = text.substr(up ? 2 : 4);
  std::uint32_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  *link = up ? port : ports + port;
  return !digits.empty() && error == std::errc() && end == digits.data() + digits.size() && port < ports;
}

std::string_view NextWord(std::string_view* text) {
  const std::size_t begin = std::min(text->find_first_not_of(" \t\n"), text->size());
  const std::size_t end = std::min(text->find_first_of(" \t\n", begin), text->size());
  const std::string_view word = text->substr(begin, end - begin);
  text->remove_prefix(end);
  return word;
}

}  // namespace

Result<std::vector<CapacityChange>> ParseCapacityChanges(std::string_view text, std::uint32_t ports,
                                                         const TimeScale& scale, std::span<const std::string> inner) {
  std::vector<CapacityChange> changes;
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    std::string_view rest = whole;
    const std::string_view time = NextWord(&rest);
    const std::string_view link = NextWord(&rest);
    const std::string_view share = NextWord(&rest);
    double at = 0;
    CapacityChange change;
    if (!ReadNumber(time, kTimeMax, &at) || !ReadLink(link, ports, inner, &change.link) ||
        !ReadNumber(share, 1, &change.share) || !NextWord(&rest).empty()) {
      return Error(
          StatusCode::kInvalidArgument,
          fmt::format("capacity change {}: found \"{}\", allowed: TIME LINK SHARE with a time from 0 to {} {}, up "
                      "or down and a port from 0 to {}{}, and a share from 0 to 1, such as \"5000 up0 0.5\"",
                      changes.size() + 1, whole, kTimeMax, scale.unit(), ports - 1,
                      inner.empty() ? "" : fmt::format(", or an inner link such as {}", inner.front())));
    }
    change.time = std::llround(at * scale.ticks_per_ms);
    changes.push_back(change);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const CapacityChange& a, const CapacityChange& b) { return a.time < b.time; });
  return changes;
}

}  // namespace weir::scheduler
