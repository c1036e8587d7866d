// The HTML report: one file, no script, no font or style from elsewhere.
#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <array>

#include "tools/html_text.h"
#include "tools/weir-perf/sheet.h"

namespace weir::tools {
namespace {

constexpr int kWidth = 860;
constexpr int kHeight = 300;
constexpr int kLeft = 60;
constexpr int kBottom = 40;
constexpr int kTop = 14;
/// Told apart also by those who do not see red and green as different.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
                              "#56b4e9", "#000000", "#999999", "#8c564b"};

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><meta charset="utf-8"><title>weir-perf</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}
.n{text-align:right;font-variant-numeric:tabular-nums}code{background:#f3f3f3;padding:.1em .3em}
svg text{font:12px system-ui,sans-serif;fill:#444}
</style>
<h1>weir-perf</h1>
)";

double Most(const Sheet& sheet) {
  double most = 0;
  for (const Sheet::Curve& curve : sheet.curves) {
    for (const double value : curve.values) most = std::max(most, value);
  }
  return most > 0 ? most : 1;
}

double X(const Sheet& sheet, std::size_t mark) {
  const std::size_t steps = std::max<std::size_t>(sheet.marks.size() - 1, 1);
  return kLeft + static_cast<double>(mark) / static_cast<double>(steps) * (kWidth - kLeft - 10);
}

double Y(double value, double most) {
  return kTop + (1 - value / most) * (kHeight - kTop - kBottom);
}

void PrintAxes(const Sheet& sheet, double most, std::ostream* out) {
  for (int i = 0; i <= 4; ++i) {
    const double value = most * i / 4;
    fmt::print(*out, "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#e5e5e5\"/>", kLeft, kWidth - 10,
               Y(value, most), Y(value, most));
    fmt::print(*out, "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g}</text>", kLeft - 6, Y(value, most) + 4,
               value);
  }
  const std::size_t every = std::max<std::size_t>(sheet.marks.size() / 10, 1);
  for (std::size_t i = 0; i < sheet.marks.size(); i += every) {
    fmt::print(*out, "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", X(sheet, i),
               kHeight - kBottom + 16, HtmlText(sheet.marks[i]));
  }
  fmt::print(*out, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", kWidth - 10, kHeight - 4,
             HtmlText(sheet.axis));
}

void PrintChart(const Sheet& sheet, std::ostream* out) {
  const double most = Most(sheet);
  fmt::print(*out, "<p>{}</p>\n<svg viewBox=\"0 0 {} {}\" role=\"img\">\n", HtmlText(sheet.unit), kWidth, kHeight);
  PrintAxes(sheet, most, out);
  for (std::size_t c = 0; c < sheet.curves.size(); ++c) {
    fmt::print(*out, "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"",
               kColours[c % kColours.size()]);
    const auto& values = sheet.curves[c].values;
    for (std::size_t i = 0; i < values.size(); ++i) {
      fmt::print(*out, "{:.1f},{:.1f} ", X(sheet, i), Y(values[i], most));
    }
    fmt::print(*out, "\"><title>{}</title></polyline>\n", HtmlText(sheet.curves[c].name));
  }
  *out << "</svg>\n<p>";
  for (std::size_t c = 0; c < sheet.curves.size(); ++c) {
    fmt::print(*out, "<span style=\"color:{}\">&#9632;</span> {} &nbsp; ", kColours[c % kColours.size()],
               HtmlText(sheet.curves[c].name));
  }
  *out << "</p>\n";
}

void PrintRows(const Sheet& sheet, std::ostream* out) {
  const auto kind = [&](std::size_t i) {
    return !sheet.rows.empty() && sheet.rows.front()[i].number ? " class=\"n\"" : "";
  };
  *out << "<table><tr>";
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) {
    fmt::print(*out, "<th{}>{}</th>", kind(i), HtmlText(sheet.columns[i].heading));
  }
  *out << "</tr>\n";
  for (const auto& row : sheet.rows) {
    *out << "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) fmt::print(*out, "<td{}>{}</td>", kind(i), HtmlText(row[i].shown));
    *out << "</tr>\n";
  }
  *out << "</table>\n";
}

}  // namespace

void PrintHtml(const std::vector<Sheet>& sheets, std::string_view setting, std::ostream* out) {
  *out << kHead;
  fmt::print(*out, "<p><code>{}</code></p>\n", HtmlText(setting));
  for (const Sheet& sheet : sheets) {
    fmt::print(*out, "<h2>{}</h2>\n", HtmlText(sheet.title));
    if (!sheet.curves.empty()) PrintChart(sheet, out);
    PrintRows(sheet, out);
    if (!sheet.notes.empty()) fmt::print(*out, "<p>{}</p>\n", HtmlText(sheet.notes));
  }
}

}  // namespace weir::tools
