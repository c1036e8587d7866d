#include "tools/weir-perf/report.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

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

Result<PerfOutput> PerfOutputFromName(std::string_view name) {
  if (name == "table") return PerfOutput::kTable;
  if (name == "json") return PerfOutput::kJson;
  return Error(StatusCode::kInvalidArgument, fmt::format("--output: found \"{}\", allowed: table, json", name));
}

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

void PrintSizes(const std::vector<SizeResult>& results, PerfOutput output, std::ostream* out) {
  if (output == PerfOutput::kTable) {
    fmt::print(*out, "{:>6} {:>10} {:>12} {:>10} {:>10} {:>10}\n", "size", "Gbit/s", "messages/s", "CPU s/GB", "p50 us",
               "p99 us");
  }
  const char* separator = "[";
  for (const SizeResult& one : results) {
    if (output == PerfOutput::kTable) {
      fmt::print(*out, "{:>6} {:>10.3f} {:>12.0f} {:>10.3f} {:>10.1f} {:>10.1f}\n", SizeName(one.size),
                 one.bits_per_second * 1e-9, one.messages_per_second, one.cpu_seconds_per_gb, one.latency_p50_us,
                 one.latency_p99_us);
    } else {
      fmt::print(*out,
                 "{}\n  {{\"size\": {}, \"bits_per_second\": {:.0f}, \"messages_per_second\": {:.1f}, "
                 "\"cpu_seconds_per_gb\": {:.4f}, \"latency_p50_us\": {:.2f}, \"latency_p99_us\": {:.2f}}}",
                 separator, one.size, one.bits_per_second, one.messages_per_second, one.cpu_seconds_per_gb,
                 one.latency_p50_us, one.latency_p99_us);
      separator = ",";
    }
  }
  if (output == PerfOutput::kJson) *out << "\n]\n";
}

void PrintPacing(const std::vector<PacingResult>& results, PerfOutput output, std::ostream* out) {
  if (output == PerfOutput::kTable) fmt::print(*out, "{:>12} {:>12} {:>8}\n", "cap Mbit/s", "sent Mbit/s", "error %");
  const char* separator = "[";
  for (const PacingResult& one : results) {
    const double error = (one.bits_per_second / one.cap_bits_per_second - 1) * 100;
    if (output == PerfOutput::kTable) {
      fmt::print(*out, "{:>12.1f} {:>12.3f} {:>+8.2f}\n", one.cap_bits_per_second * 1e-6, one.bits_per_second * 1e-6,
                 error);
    } else {
      fmt::print(*out,
                 "{}\n  {{\"cap_bits_per_second\": {:.0f}, \"bits_per_second\": {:.0f}, \"error_percent\": {:.3f}}}",
                 separator, one.cap_bits_per_second, one.bits_per_second, error);
      separator = ",";
    }
  }
  if (output == PerfOutput::kJson) *out << "\n]\n";
}

void PrintSoak(const SoakResult& result, int seed, double seconds, PerfOutput output, std::ostream* out) {
  if (output == PerfOutput::kTable) {
    fmt::print(*out, "{} messages, {:.3f} GB received and compared, no byte differs; seed {}, {:.2f} s\n",
               result.messages, static_cast<double>(result.bytes) * 1e-9, seed, seconds);
  } else {
    fmt::print(*out, "{{\"messages\": {}, \"bytes_received\": {}, \"seed\": {}, \"seconds\": {:.3f}}}\n",
               result.messages, result.bytes, seed, seconds);
  }
}

}  // namespace weir::tools
