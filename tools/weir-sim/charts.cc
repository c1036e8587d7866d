#include "tools/weir-sim/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "tools/html_text.h"

namespace weir::tools {
namespace {

constexpr double kWidth = 1040;
constexpr double kLeft = 118;  ///< Everything to the left of it is text.
constexpr double kRight = kWidth - 12;
constexpr double kTop = 12;
constexpr std::size_t kColours = 8;
constexpr std::size_t kCurvePoints = 400;
constexpr std::size_t kLinksShown = 40;
constexpr int kShades = 8;

std::string Svg(double height, std::string_view label, std::string_view body) {
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">{}</svg>", kWidth, height,
                     HtmlText(label), body);
}

std::string Text(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"axis\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     HtmlText(text));
}

std::string Line(double x1, double y1, double x2, double y2) {
  return fmt::format("<path d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\" class=\"grid\"/>", x1, y1, x2, y2);
}

/// A round distance between marks so that about `steps` of them fit into `span` > 0.
double NiceStep(double span, double steps) {
  const double raw = span / steps;
  const double scale = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= scale * factor) {
      return scale * factor;
    }
  }
  return scale * 10;
}

/// Time from left to right, in a unit that people read: the report's own, its thousands or its millions.
class TimeAxis {
 public:
  TimeAxis(double ticks, const scheduler::TimeScale& scale)
      : span_(std::max(ticks / scale.ticks_per_ms, 1e-9)), ticks_per_unit_(scale.ticks_per_ms), unit_(scale.unit()) {}

  double X(double ticks) const { return kLeft + ticks / ticks_per_unit_ / span_ * (kRight - kLeft); }
  std::string Marks(double top, double bottom) const {
    const bool thousands = span_ >= 20'000;
    const std::string unit = thousands ? (unit_ == "ms" ? std::string("s") : fmt::format("thousand {}", unit_)) : unit_;
    std::string out;
    const double step = NiceStep(span_, 8);
    for (int i = 0; i * step <= span_ * (1 + 1e-9); ++i) {
      const double x = X(i * step * ticks_per_unit_);
      out += Line(x, top, x, bottom) +
             Text(x, bottom + 16, "middle", fmt::format("{:g}", i * step / (thousands ? 1e3 : 1)));
    }
    return out + Text(kRight, bottom + 34, "end", fmt::format("time since the first arrival, {}", unit));
  }

 private:
  double span_;
  double ticks_per_unit_;
  std::string unit_;
};

std::string ShareMarks(double bottom, std::string_view what) {
  std::string out;
  for (int percent = 0; percent <= 100; percent += 25) {
    const double y = bottom - (bottom - kTop) * percent / 100;
    out += Line(kLeft, y, kRight, y) + Text(kLeft - 8, y + 4, "end", fmt::format("{} %", percent));
  }
  return out + fmt::format(
                   "<text x=\"14\" y=\"{:.1f}\" class=\"axis\" text-anchor=\"middle\" transform=\"rotate(-90 14 "
                   "{:.1f})\">{}</text>",
                   (kTop + bottom) / 2, (kTop + bottom) / 2, HtmlText(what));
}

/// A line, and a broad invisible one over it that answers the pointer.
std::string Curve(std::string_view path, std::size_t index, std::string_view title) {
  return fmt::format(
      "<path d=\"{0}\" class=\"curve\" style=\"{1}\"/><path d=\"{0}\" class=\"hit\"><title>{2}</title></path>", path,
      fmt::format("stroke:{};stroke-dasharray:{}", PolicyColour(index), index < kColours ? "none" : "7 3"),
      HtmlText(title));
}

double Time(std::int64_t ticks, const scheduler::TimeScale& scale) {
  return static_cast<double>(ticks) / scale.ticks_per_ms;
}

std::vector<double> SortedCcts(const PolicyRun& run, const scheduler::TimeScale& scale) {
  std::vector<double> ccts;
  for (const scheduler::CoflowOutcome& coflow : run.outcome.coflows) {
    ccts.push_back(std::max(Time(coflow.cct(), scale), 1e-6));
  }
  std::sort(ccts.begin(), ccts.end());
  return ccts;
}

/// Whole decades around all values.
struct LogAxis {
  double low = 0, high = 1;
  double X(double value) const { return kLeft + (std::log10(value) - low) / (high - low) * (kRight - kLeft); }
};

LogAxis AxisAround(std::span<const std::vector<double>> values) {
  LogAxis axis{1e9, -1e9};
  for (const std::vector<double>& sorted : values) {
    if (!sorted.empty()) {
      axis.low = std::min(axis.low, std::floor(std::log10(sorted.front())));
      axis.high = std::max(axis.high, std::ceil(std::log10(sorted.back())));
    }
  }
  if (axis.low > axis.high) {
    return {0, 1};
  }
  axis.high = std::max(axis.high, axis.low + 1);
  return axis;
}

std::string StepsOf(const std::vector<double>& sorted, const LogAxis& axis, double bottom) {
  const auto n = static_cast<double>(sorted.size());
  std::string path = fmt::format("M{:.1f},{:.1f}", axis.X(sorted.front()), bottom);
  const std::size_t points = std::min(kCurvePoints, sorted.size());
  for (std::size_t i = 1; i <= points; ++i) {
    const std::size_t rank = i * sorted.size() / points;  // the rank-th smallest, counted from 1
    path += fmt::format("H{:.1f}V{:.1f}", axis.X(sorted[rank - 1]),
                        bottom - (bottom - kTop) * static_cast<double>(rank) / n);
  }
  return path + fmt::format("H{:.1f}", kRight);
}

std::string QuantileMarks(const std::vector<double>& sorted, const LogAxis& axis, double bottom, std::size_t index,
                          std::string_view policy, const scheduler::TimeScale& scale) {
  std::string out;
  for (const double share : {0.5, 0.95, 0.99}) {
    const double value = scheduler::Quantile(sorted, share);
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" style=\"fill:{}\"><title>{}: p{:.0f} {:.1f} {}</title></circle>",
        axis.X(value), bottom - (bottom - kTop) * share, PolicyColour(index), HtmlText(policy), share * 100, value,
        scale.unit());
  }
  return out;
}

}  // namespace

std::string PolicyColour(std::size_t index) {
  return fmt::format("var(--p{})", index % kColours);
}

std::string CctChart(std::span<const ChartRun> runs, const scheduler::TimeScale& scale) {
  constexpr double kBottom = 330;
  std::vector<std::vector<double>> ccts;
  for (const ChartRun& run : runs) {
    ccts.push_back(SortedCcts(run.run, scale));
  }
  const LogAxis axis = AxisAround(ccts);
  std::string body = ShareMarks(kBottom, "share of coflows");
  for (double decade = axis.low; decade <= axis.high; ++decade) {
    const double x = axis.X(std::pow(10.0, decade));
    body += Line(x, kTop, x, kBottom) + Text(x, kBottom + 16, "middle", fmt::format("{:g}", std::pow(10.0, decade)));
  }
  body += Text(kRight, kBottom + 34, "end", fmt::format("completion time, {} (logarithmic)", scale.unit()));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (ccts[i].empty()) {
      continue;
    }
    const scheduler::Summary& s = runs[i].run.summary;
    body += Curve(StepsOf(ccts[i], axis, kBottom), i,
                  fmt::format("{}: mean {:.1f}, p50 {:.1f}, p95 {:.1f}, p99 {:.1f}, max {:.1f} {}", runs[i].run.policy,
                              s.mean, s.p50, s.p95, s.p99, s.max, scale.unit()));
    body += QuantileMarks(ccts[i], axis, kBottom, i, runs[i].run.policy, scale);
  }
  return Svg(kBottom + 40, "Share of coflows by completion time", body);
}

std::string UtilisationChart(std::span<const ChartRun> runs, const scheduler::TimeScale& scale) {
  constexpr double kBottom = 230;
  double longest = 1;
  for (const ChartRun& run : runs) {
    longest = std::max(longest, static_cast<double>(run.run.outcome.makespan));
  }
  const TimeAxis axis(longest, scale);
  std::string body = ShareMarks(kBottom, "of the ports' links") + axis.Marks(kTop, kBottom);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunRecorder& recorder = runs[i].recorder;
    std::string path = fmt::format("M{:.1f},{:.1f}", kLeft, kBottom);
    for (std::size_t bin = 0; bin < recorder.bins(); ++bin) {
      const double end = static_cast<double>(recorder.bin_ticks()) * static_cast<double>(bin + 1);
      path += fmt::format("V{:.1f}H{:.1f}", kBottom - (kBottom - kTop) * recorder.PortUtilisation(bin),
                          axis.X(std::min(end, static_cast<double>(runs[i].run.outcome.makespan))));
    }
    body += Curve(path + fmt::format("V{:.1f}", kBottom), i,
                  fmt::format("{}: {:.1f} % in the mean, makespan {:.1f} {}", runs[i].run.policy,
                              100 * runs[i].run.summary.utilisation, runs[i].run.summary.makespan, scale.unit()));
  }
  return Svg(kBottom + 40, "Utilisation over time", body);
}

std::string LinkMap(const ChartRun& run, std::span<const std::string> link_names, const scheduler::TimeScale& scale) {
  constexpr double kRow = 12;
  const RunRecorder& recorder = run.recorder;
  std::vector<double> mean;
  for (std::size_t link = 0; link < recorder.links(); ++link) {
    mean.push_back(recorder.Utilisation(link));
  }
  std::vector<std::size_t> links(recorder.links());
  std::iota(links.begin(), links.end(), std::size_t{0});
  std::stable_sort(links.begin(), links.end(), [&mean](std::size_t a, std::size_t b) { return mean[a] > mean[b]; });
  links.resize(std::min(kLinksShown, links.size()));
  const TimeAxis axis(static_cast<double>(run.run.outcome.makespan), scale);
  const double bottom = kTop + kRow * static_cast<double>(links.size());
  std::array<std::string, kShades + 1> shade;  // one path for each shade keeps the page small
  std::string rows;
  for (std::size_t row = 0; row < links.size(); ++row) {
    const double y = kTop + kRow * static_cast<double>(row);
    double most = 0;
    std::size_t begin = 0;  // of the bins of one shade, which are one rectangle
    for (std::size_t bin = 0; bin < recorder.bins(); ++bin) {
      const auto of_bin = [&](std::size_t b) {
        return static_cast<std::size_t>(std::lround(recorder.Utilisation(links[row], b) * kShades));
      };
      most = std::max(most, recorder.Utilisation(links[row], bin));
      if (bin + 1 < recorder.bins() && of_bin(bin + 1) == of_bin(bin)) {
        continue;
      }
      const double from = axis.X(static_cast<double>(recorder.bin_ticks()) * static_cast<double>(begin));
      const double to = axis.X(static_cast<double>(recorder.bin_ticks()) * static_cast<double>(bin + 1));
      shade[of_bin(bin)] +=
          fmt::format("M{:.1f},{:.1f}H{:.1f}v{:.0f}H{:.1f}z", from, y, std::min(kRight, to), kRow - 1, from);
      begin = bin + 1;
    }
    rows += Text(kLeft - 8, y + 10, "end", link_names[links[row]]);
    rows += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" class=\"hit\"><title>{}: {:.1f} % in the "
        "mean, {:.0f} % at most</title></rect>",
        kLeft, y, kRight - kLeft, kRow, HtmlText(link_names[links[row]]), 100 * mean[links[row]], 100 * most);
  }
  std::string body = axis.Marks(kTop, bottom);
  for (std::size_t i = 1; i < shade.size(); ++i) {
    body += shade[i].empty() ? ""
                             : fmt::format("<path d=\"{}\" class=\"heat\" style=\"opacity:{:.3f}\"/>", shade[i],
                                           static_cast<double>(i) / kShades);
  }
  return Svg(bottom + 40, "Busiest links over time", body + rows);
}

std::string Timeline(const ChartRun& run, std::span<const std::size_t> coflows, std::size_t index,
                     const scheduler::TimeScale& scale) {
  const double row_height = coflows.size() > 40 ? 8 : 14;
  const TimeAxis axis(static_cast<double>(run.run.outcome.makespan), scale);
  const double bottom = kTop + row_height * static_cast<double>(coflows.size());
  const std::int64_t origin = run.recorder.origin();
  std::string body = axis.Marks(kTop, bottom);
  for (std::size_t row = 0; row < coflows.size(); ++row) {
    const scheduler::CoflowOutcome& coflow = run.run.outcome.coflows[coflows[row]];
    const RunRecorder::Service& service = run.recorder.service(coflows[row]);
    const double y = kTop + row_height * static_cast<double>(row);
    const auto x = [&](std::int64_t time) { return axis.X(static_cast<double>(time - origin)); };
    const auto bar = [&](std::int64_t from, std::string_view css) {
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" class=\"{}\" style=\"fill:{}\"/>",
          x(from), y + 1, std::max(1.0, x(coflow.end) - x(from)), row_height - 2, css, PolicyColour(index));
    };
    const double alone = static_cast<double>(std::max<std::int64_t>(1, coflow.isolation));
    body += fmt::format(
        "<g><title>coflow {}: {:.1f} {}, {:.2f} times its {:.1f} on an empty fabric; waited {:.1f} for its first byte, "
        "served {:.0f} % of the time</title>{}{}</g>",
        coflow.id, Time(coflow.cct(), scale), scale.unit(), static_cast<double>(coflow.cct()) / alone,
        Time(coflow.isolation, scale), Time(service.first - coflow.arrival, scale),
        100 * static_cast<double>(service.ticks) / static_cast<double>(std::max<std::int64_t>(1, coflow.cct())),
        bar(coflow.arrival, "waiting"), bar(service.first, "served"));
    if (row_height > 10 || row % 2 == 0) {
      body += Text(kLeft - 8, y + row_height - 3, "end", fmt::format("{}", coflow.id));
    }
  }
  return Svg(bottom + 40, "Coflows over time", body);
}

}  // namespace weir::tools
