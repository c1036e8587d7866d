#include "tools/weir-perf/report.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <functional>

#include "tools/weir-perf/ends.h"

namespace weir::tools {
namespace {

constexpr std::size_t kEntriesMax = 64;

/// A number and a unit, and nothing behind it; below 0 when it is neither.
double ParseQuantity(std::string_view text, double unit) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return -1;
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (suffix.empty()) return value;
  if (suffix.size() > 1) return -1;
  switch (suffix[0]) {
    case 'K':
      return value * unit;
    case 'M':
      return value * unit * unit;
    case 'G':
      return value * unit * unit * unit;
    default:
      return -1;
  }
}

Result<std::vector<double>> ParseList(std::string_view text, double unit, double low, double high,
                                      const char* allowed) {
  std::vector<double> values;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const double value = ParseQuantity(text.substr(0, end), unit);
    if (!(value >= low && value <= high)) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("found \"{}\", allowed: {}", text.substr(0, end), allowed));
    }
    values.push_back(value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (values.empty() || values.size() > kEntriesMax) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("found {} entries, allowed: 1 to {}", values.size(), kEntriesMax));
  }
  return values;
}

std::string SizeName(Bytes size) {
  for (const auto& [unit, name] : {std::pair<Bytes, char>{1u << 30, 'G'}, {1u << 20, 'M'}, {1u << 10, 'K'}}) {
    if (size >= unit && size % unit == 0) return fmt::format("{}{}", size / unit, name);
  }
  return std::to_string(size);
}

}  // namespace

Result<std::vector<Bytes>> ParseSizes(std::string_view text) {
  const auto values = ParseList(text, 1024, 1, static_cast<double>(kSizeMax), "1 to 4G bytes, as in 1,64K,1M");
  if (!values) return tl::unexpected(values.error());
  std::vector<Bytes> sizes;
  for (const double value : *values) sizes.push_back(static_cast<Bytes>(value));
  return sizes;
}

Result<std::vector<double>> ParseRates(std::string_view text) {
  return ParseList(text, 1000, 1e5, 1e12, "100K to 1000G bits a second, as in 1M,2.5G");
}

Sheet SizesSheet(const std::vector<SizeResult>& results) {
  Sheet sheet;
  sheet.title = "Throughput, CPU and latency by size";
  sheet.columns = {{"size", "size"},
                   {"bits_per_second", "Gbit/s"},
                   {"messages_per_second", "messages/s"},
                   {"cpu_seconds_per_gb", "CPU s/GB"},
                   {"latency_p50_us", "p50 us"},
                   {"latency_p99_us", "p99 us"},
                   {"pings", "pings"}};
  sheet.axis = "size";
  sheet.unit = "Gbit/s";
  sheet.curves = {{"throughput", {}}};
  for (const SizeResult& one : results) {
    const double gigabits = one.bits_per_second * 1e-9;
    sheet.rows.push_back({Number(static_cast<double>(one.size), 0, SizeName(one.size)),
                          Number(one.bits_per_second, 0, fmt::format("{:.3f}", gigabits)),
                          Number(one.messages_per_second, 1, fmt::format("{:.0f}", one.messages_per_second)),
                          Number(one.cpu_seconds_per_gb, 4, fmt::format("{:.3f}", one.cpu_seconds_per_gb)),
                          Number(one.latency_p50_us, 2, fmt::format("{:.1f}", one.latency_p50_us)),
                          Number(one.latency_p99_us, 2, fmt::format("{:.1f}", one.latency_p99_us)),
                          Number(one.pings, 0, std::to_string(one.pings))});
    sheet.marks.push_back(SizeName(one.size));
    sheet.curves[0].values.push_back(gigabits);
  }
  return sheet;
}

Sheet SoakSheet(const SoakResult& result, int seed, double seconds) {
  Sheet sheet;
  sheet.title = "Random messages both ways, each byte compared";
  sheet.columns = {{"messages", "messages"}, {"bytes_received", "GB received"}, {"seed", "seed"}, {"seconds", "s"}};
  const auto bytes = static_cast<double>(result.bytes);
  sheet.rows.push_back({Number(static_cast<double>(result.messages), 0, std::to_string(result.messages)),
                        Number(bytes, 0, fmt::format("{:.3f}", bytes * 1e-9)), Number(seed, 0, std::to_string(seed)),
                        Number(seconds, 3, fmt::format("{:.2f}", seconds))});
  sheet.notes = "all of it compared, no byte differs";
  return sheet;
}

}  // namespace weir::tools
