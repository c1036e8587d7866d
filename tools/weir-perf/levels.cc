#include "tools/weir-perf/levels.h"

#include <fmt/format.h>

#include <algorithm>

#include "coflow/directive.h"

namespace weir::tools {
namespace {

constexpr double kWarmUp_s = 1;
constexpr double kHigh_s = 0.5;     ///< Of each second.
constexpr double kSettle_s = 0.02;  ///< What is allowed until the new order holds.
constexpr double kLook_s = 0.01;
constexpr double kEnough = 0.95;

/// From `from_s`, the first millisecond from which `enough` bytes a second came for kLook_s; below 0: not in time.
double ReachedAfter(const Arrivals& arrivals, std::size_t first, std::size_t last, Span span, double enough) {
  for (double at = span.from_s; at + kLook_s <= span.until_s; at += 1e-3) {
    if (arrivals.Between(first, last, {at, at + kLook_s}) >= enough * kLook_s) return (at - span.from_s) * 1e3;
  }
  return -1;
}

LevelsResult Judge(const Arrivals& arrivals, std::size_t low, double start_s, double end_s) {
  const auto rate = [&](std::size_t first, std::size_t last, Span span) {
    return arrivals.Between(first, last, span) / (span.until_s - span.from_s);
  };
  LevelsResult result;
  const double link = rate(0, low, {start_s - 0.3, start_s});
  const Span high{start_s, start_s + kHigh_s};
  const Span after{end_s, end_s + 0.22};
  result.link_bits = link * 8;
  result.high_percent = 100 * rate(low, low + 1, {start_s + kSettle_s, high.until_s}) / link;
  result.high_after_ms = ReachedAfter(arrivals, low, low + 1, high, kEnough * link);
  result.recovered_percent = 100 * rate(0, low, {end_s + kSettle_s, after.until_s}) / link;
  result.recovered_after_ms = ReachedAfter(arrivals, 0, low, after, kEnough * link);
  result.away_ms = static_cast<double>(arrivals.LongestAway({start_s - 0.3, after.until_s})) * 1e-6;
  return result;
}

/// What everybody had, for the chart.
void Draw(const Arrivals& arrivals, const std::vector<std::string>& names, const std::vector<std::size_t>& ends,
          double step_s, Sheet* sheet) {
  const double seconds = static_cast<double>(arrivals.bytes.front().size()) * ToSeconds(kArrivalStep);
  sheet->axis = "seconds";
  sheet->unit = "Gbit/s";
  for (std::size_t i = 0; i < names.size(); ++i) sheet->curves.push_back({names[i], {}});
  for (double at = 0; at + step_s <= seconds + 1e-9; at += step_s) {
    sheet->marks.push_back(fmt::format("{:.2f}", at));
    for (std::size_t i = 0; i < names.size(); ++i) {
      const double bytes = arrivals.Between(i == 0 ? 0 : ends[i - 1], ends[i], {at, at + step_s});
      sheet->curves[i].values.push_back(bytes * 8e-9 / step_s);
    }
  }
}

Sheet::Cell Milliseconds(double value) {
  return Number(value, 1, value < 0 ? "never" : fmt::format("{:.0f}", value));
}

Sheet::Cell Percent(double value) {
  return Number(value, 2, fmt::format("{:.1f}", value));
}

}  // namespace

Result<std::vector<LevelsResult>> MeasureLevels(std::uint32_t low, std::uint32_t runs, Rendezvous* rendezvous,
                                                transport::Transport* transport, Sheet* sheet) {
  CoflowsPlan plan;
  plan.seconds = kWarmUp_s + runs;
  plan.coflows.assign(low, CoflowPlan{{{0, plan.seconds}}, kQueueLevels - 1, 0, 0, 0});
  plan.coflows.push_back(CoflowPlan{{}, 0, 0, 0, 0});
  for (std::uint32_t i = 0; i < runs; ++i) {
    plan.coflows.back().spans.push_back({kWarmUp_s + i, kWarmUp_s + i + kHigh_s});
  }
  const auto arrivals = RunCoflows(plan, rendezvous, transport);
  if (!arrivals) return tl::unexpected(arrivals.error());
  std::vector<LevelsResult> results;
  for (std::uint32_t i = 0; i < runs; ++i) {
    results.push_back(Judge(*arrivals, low, kWarmUp_s + i, arrivals->ended_s.back()[i]));
    if (results.back().link_bits == 0) {
      return Error(
          StatusCode::kUnavailable,
          fmt::format("nothing came in the 0.3 s before start {}, and neither end had the processor for {:.0f} ms: "
                      "nothing to compare with; try again on a quieter host",
                      i + 1, results.back().away_ms));
    }
  }
  *sheet = LevelsSheet(results);
  Draw(*arrivals, {fmt::format("{} low ones", low), "the high one"}, {low, low + 1}, 0.01, sheet);
  return results;
}

Result<PacingResult> MeasurePacing(double cap_bits, Rendezvous* rendezvous, transport::Transport* transport) {
  constexpr Span kSteady{0.3, 1.3};
  constexpr double kChange_s = 1.4;
  constexpr double kAfter_s = 0.2;
  CoflowsPlan plan;
  plan.seconds = kChange_s + kAfter_s + 0.1;
  // Half a millisecond in a message, so that what is counted is as fine as what is measured.
  plan.message = std::clamp<Bytes>(static_cast<Bytes>(cap_bits / 8 * 5e-4), 64, 16 * 1024);
  plan.coflows = {CoflowPlan{{{0, plan.seconds}}, 0, cap_bits, kChange_s, cap_bits / 2}};
  const auto arrivals = RunCoflows(plan, rendezvous, transport);
  if (!arrivals) return tl::unexpected(arrivals.error());
  PacingResult result;
  result.cap_bits_per_second = cap_bits;
  result.bits_per_second = arrivals->Between(0, 1, kSteady) * 8 / (kSteady.until_s - kSteady.from_s);
  const double bits = arrivals->Between(0, 1, {kChange_s, kChange_s + kAfter_s}) * 8;
  result.change_ms = (bits - cap_bits / 2 * kAfter_s) / (cap_bits / 2) * 1e3;
  return result;
}

Result<Sheet> MeasureCoflows(std::string_view text, double seconds, std::uint32_t step_ms, Rendezvous* rendezvous,
                             transport::Transport* transport) {
  const auto entries = ParseCoflows(text, seconds);
  if (!entries) return Error(entries.error().code(), "--coflows: " + entries.error().message());
  CoflowsPlan plan;
  plan.seconds = seconds;
  std::vector<std::string> names;
  std::vector<std::size_t> ends;
  for (const CoflowEntry& entry : *entries) {
    plan.coflows.insert(plan.coflows.end(), entry.count, entry.plan);
    names.push_back(entry.text);
    ends.push_back(plan.coflows.size());
  }
  const auto arrivals = RunCoflows(plan, rendezvous, transport);
  if (!arrivals) return tl::unexpected(arrivals.error());
  Sheet sheet;
  sheet.title = "Who had what over time";
  sheet.notes = "Mbit/s in each step, as they arrived; an entry of several coflows is their sum";
  const double step_s = step_ms * 1e-3;
  Draw(*arrivals, names, ends, step_s, &sheet);
  sheet.columns = {{"from_s", "from s"}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    sheet.columns.push_back({fmt::format("entry_{}_bits_per_second", i + 1), names[i]});
  }
  for (std::size_t row = 0; row < sheet.marks.size(); ++row) {
    const double at = static_cast<double>(row) * step_s;
    sheet.rows.push_back({Number(at, 3, fmt::format("{:.2f}", at))});
    for (const Sheet::Curve& curve : sheet.curves) {
      sheet.rows.back().push_back(Number(curve.values[row] * 1e9, 0, fmt::format("{:.1f}", curve.values[row] * 1e3)));
    }
  }
  return sheet;
}

Sheet LevelsSheet(const std::vector<LevelsResult>& results) {
  Sheet sheet;
  sheet.title = "A coflow of level 0 among saturated ones of level 7";
  sheet.columns = {{"run", "run"},
                   {"link_bits_per_second", "link Mbit/s"},
                   {"high_percent", "high %"},
                   {"high_after_ms", "95 % after ms"},
                   {"recovered_percent", "low % then"},
                   {"recovered_after_ms", "95 % after ms"},
                   {"away_ms", "away ms"}};
  for (const LevelsResult& one : results) {
    const double run = static_cast<double>(sheet.rows.size()) + 1;
    sheet.rows.push_back({Number(run, 0, fmt::format("{:.0f}", run)),
                          Number(one.link_bits, 0, fmt::format("{:.1f}", one.link_bits * 1e-6)),
                          Percent(one.high_percent), Milliseconds(one.high_after_ms), Percent(one.recovered_percent),
                          Milliseconds(one.recovered_after_ms), Milliseconds(one.away_ms)});
  }
  sheet.notes =
      "link: what the low ones had before; %: of that, from 20 ms after the start of the high one, and after its end;\n"
      "away: the longest time that either end was not let run by its host, which is measured as well";
  return sheet;
}

Sheet PacingSheet(const std::vector<PacingResult>& results) {
  Sheet sheet;
  sheet.title = "How exactly caps are kept";
  sheet.columns = {{"cap_bits_per_second", "cap Mbit/s"},
                   {"bits_per_second", "arrived Mbit/s"},
                   {"error_percent", "error %"},
                   {"change_ms", "change ms"}};
  for (const PacingResult& one : results) {
    const double error = (one.bits_per_second / one.cap_bits_per_second - 1) * 100;
    sheet.rows.push_back({Number(one.cap_bits_per_second, 0, fmt::format("{:.1f}", one.cap_bits_per_second * 1e-6)),
                          Number(one.bits_per_second, 0, fmt::format("{:.3f}", one.bits_per_second * 1e-6)),
                          Number(error, 3, fmt::format("{:+.2f}", error)),
                          Number(one.change_ms, 2, fmt::format("{:.1f}", one.change_ms))});
  }
  return sheet;
}

}  // namespace weir::tools
