#include "tools/weir-sim/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tools/html_text.h"

namespace weir::tools {
namespace {

constexpr std::size_t kCoflowsShown = 100;

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--ink:#1c2430;--dim:#66707f;--page:#f6f7f9;--card:#fff;--line:#e3e7ec;--heat:#0d6f8a;
--p0:#2f6fd0;--p1:#d9731a;--p2:#0d8a72;--p3:#8a55c9;--p4:#d1477a;--p5:#6b8e23;--p6:#7a6a5a;--p7:#2a9fc4}
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--dim:#98a3b3;--page:#12161c;--card:#1a2028;--line:#2b333e;
--heat:#4cc9e8;--p0:#6aa2f7;--p1:#f0ab4f;--p2:#2cc3a4;--p3:#b48af0;--p4:#f07ba6;--p5:#a3c754;--p6:#b7a594;--p7:#6fd0ee}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:36px 20px 60px}h1{font-size:28px;line-height:1.25;margin:0 0 6px}
h2{font-size:18px;margin:0 0 2px}h3{font-size:14px;margin:18px 0 4px}p{margin:4px 0 12px}.dim{color:var(--dim)}
section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px 22px;margin-top:18px}
svg{width:100%;height:auto;display:block;margin-top:6px;overflow:visible}text{fill:var(--ink);font-size:13px}
text.axis{fill:var(--dim);font-size:11.5px}.grid{stroke:var(--line);fill:none}.curve{fill:none;stroke-width:1.8}
path.hit{fill:none;stroke:transparent;stroke-width:10;pointer-events:stroke}rect.hit{fill:transparent}.heat{fill:var(--heat)}
.waiting{opacity:.3}.legend span{display:inline-block;margin-right:18px}
.legend i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:6px;font-size:12.5px;border-bottom:1px solid var(--line);white-space:nowrap}
th{font-weight:600;color:var(--dim)}th:first-child,td:first-child{text-align:left}
code{font-size:13px;overflow-wrap:anywhere}
)";

std::string Section(std::string_view title, std::string_view note, std::string_view body) {
  return fmt::format("<section><h2>{}</h2><p class=\"dim\">{}</p>{}</section>\n", title, note, body);
}

std::string Legend(std::span<const ChartRun> runs) {
  std::string spans;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    spans +=
        fmt::format("<span><i style=\"background:{}\"></i>{}</span>", PolicyColour(i), HtmlText(runs[i].run.policy));
  }
  return fmt::format("<p class=\"legend dim\">{}</p>", spans);
}

std::string Numbers(std::span<const ChartRun> runs, double bound) {
  std::string rows;
  for (const ChartRun& run : runs) {
    const scheduler::Summary& s = run.run.summary;
    rows += fmt::format("<tr><td>{}</td>", HtmlText(run.run.policy));
    for (const double value : {s.mean, s.p50, s.p95, s.p99, s.max}) {
      rows += fmt::format("<td>{:.1f}</td>", value);
    }
    rows += fmt::format(
        "<td>{:.2f}</td><td>{:.2f}</td><td>{:.1f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.2f}</td></"
        "tr>",
        s.slowdown_mean, s.slowdown_p95, s.makespan, bound > 0 ? s.mean / bound : 0, s.utilisation, s.jain,
        run.run.wall_seconds);
  }
  return "<div class=\"wide\"><table><tr><th>policy</th><th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>max</th>"
         "<th>slowdown</th><th>p95 of it</th><th>makespan</th><th>&times; bound</th><th>utilisation</th><th>Jain</th>"
         "<th>wall s</th></tr>" +
         rows + "</table></div>";
}

/// The coflows that took longest under the first policy, in order of arrival.
std::vector<std::size_t> LongestCoflows(const scheduler::SimOutcome& outcome) {
  std::vector<std::size_t> longest(outcome.coflows.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::stable_sort(longest.begin(), longest.end(), [&outcome](std::size_t a, std::size_t b) {
    return outcome.coflows[a].cct() > outcome.coflows[b].cct();
  });
  longest.resize(std::min(kCoflowsShown, longest.size()));
  std::sort(longest.begin(), longest.end(), [&outcome](std::size_t a, std::size_t b) {
    const auto& first = outcome.coflows[a];
    const auto& second = outcome.coflows[b];
    return first.arrival != second.arrival ? first.arrival < second.arrival : a < b;
  });
  return longest;
}

std::string LinkMaps(std::span<const ChartRun> runs, const ReportContext& context) {
  std::string maps;
  for (const ChartRun& run : runs) {
    maps += fmt::format("<h3>{}</h3>{}", HtmlText(run.run.policy), LinkMap(run, context.link_names, context.scale));
  }
  return maps;
}

std::string Timelines(std::span<const ChartRun> runs, const scheduler::TimeScale& scale) {
  std::string lines;
  const auto longest = LongestCoflows(runs.front().run.outcome);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    lines += fmt::format("<h3>{}</h3>{}", HtmlText(runs[i].run.policy), Timeline(runs[i], longest, i, scale));
  }
  return lines;
}

}  // namespace

std::string HtmlReport(std::span<const ChartRun> runs, const ReportContext& context) {
  const auto coflows = static_cast<double>(std::max<std::size_t>(1, runs.front().run.outcome.coflows.size()));
  const double bound = context.bounds.best.sum / coflows / context.scale.ticks_per_ms;
  std::string page = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">"
      "<title>weir-sim</title><style>{}</style></head><body><main>\n<h1>{} coflows under {} {}</h1>"
      "<p class=\"dim\"><code>{}</code>, {} ports, fabric {}. Times in {}.</p>\n",
      kStyle, runs.front().run.outcome.coflows.size(), runs.size(), runs.size() == 1 ? "policy" : "policies",
      HtmlText(context.trace), runs.front().recorder.ports(), HtmlText(context.fabric), context.scale.unit());
  page += Section("Completion times",
                  "Share of the coflows that took no longer; dots are p50, p95 and p99. Further left is better.",
                  Legend(runs) + CctChart(runs, context.scale));
  page += Section(
      "Numbers",
      fmt::format("No schedule has a mean below {:.1f} (bound: {}). Slowdown: over the time on an empty fabric.", bound,
                  context.bounds.best.name),
      Numbers(runs, bound));
  page += Section("Utilisation", "What all ports send and receive, over what they could.",
                  Legend(runs) + UtilisationChart(runs, context.scale));
  page += Section("Links", "The 40 links that are busiest over the whole run; the stronger the colour, the fuller.",
                  LinkMaps(runs, context));
  page += Section(
      "Coflows",
      fmt::format(
          "The {} that take longest under {}, from arrival to end: pale until the first byte. The number is the id.",
          std::min(kCoflowsShown, runs.front().run.outcome.coflows.size()), HtmlText(runs.front().run.policy)),
      Timelines(runs, context.scale));
  return page + Section("Again", "", fmt::format("<p><code>{}</code></p>", HtmlText(context.command))) +
         "</main></body></html>\n";
}

}  // namespace weir::tools
