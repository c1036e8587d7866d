#include "tools/weir-sim/report.h"

#include <fmt/format.h>

#include "scheduler/order/order.h"
#include "scheduler/rate/allocator.h"
#include "tools/weir-sim/output_file.h"

namespace weir::tools {
namespace {

using scheduler::Summary;

constexpr double kMicroseconds = 1e-3;  // in a nanosecond

/// With it a row of the table has 120 columns.
constexpr std::size_t kPolicyWidth = 18;

/// Bounds on the mean completion time, in the unit of the report.
class MeanBounds {
 public:
  MeanBounds(const scheduler::Bounds& bounds, std::span<const PolicyRun> runs, const scheduler::TimeScale& scale)
      : bounds_(bounds),
        per_coflow_(1 / scale.ticks_per_ms /
                    static_cast<double>(std::max<std::size_t>(1, runs.empty() ? 0 : runs[0].outcome.coflows.size()))),
        makespan_(bounds.makespan / scale.ticks_per_ms) {}

  std::string_view name() const { return bounds_.best.name; }
  double best() const { return bounds_.best.sum * per_coflow_; }
  double Distance(const Summary& s) const { return best() > 0 ? s.mean / best() : 0; }
  double makespan() const { return makespan_; }
  std::string Json() const {
    std::string text;
    for (const scheduler::NamedBound& bound : bounds_.completion) {
      text += fmt::format("\"{}\":{:.3f},", bound.name, bound.sum * per_coflow_);
    }
    return fmt::format("{{{}\"makespan\":{:.3f}}}", text, makespan_);
  }

 private:
  const scheduler::Bounds& bounds_;
  double per_coflow_;
  double makespan_;
};

/// Flow rates set, begun or ended in a second of wall time.
double EventsPerSecond(const PolicyRun& run) {
  return run.wall_seconds > 0 ? static_cast<double>(run.outcome.rate_changes) / run.wall_seconds : 0;
}

/// A figure in at most `width` >= 6 places: with one decimal, without, or rounded to powers of ten.
std::string Fitted(double value, std::size_t width) {
  for (const int decimals : {1, 0}) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    if (text.size() <= width) {
      return text;
    }
  }
  return fmt::format("{:.{}g}", value, width - 5);
}

/// 7.1M instead of 7119793.
std::string Short(double value) {
  return value >= 1e9   ? fmt::format("{:.1f}G", value * 1e-9)
         : value >= 1e6 ? fmt::format("{:.1f}M", value * 1e-6)
         : value >= 1e3 ? fmt::format("{:.0f}k", value * 1e-3)
                        : fmt::format("{:.0f}", value);
}

void PrintJson(std::span<const PolicyRun> runs, const MeanBounds& bounds, const scheduler::TimeScale& scale,
               std::ostream* out) {
  *out << fmt::format("{{\"unit\":\"{}\",\"results\":[", scale.unit());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PolicyRun& run = runs[i];
    const Summary& s = run.summary;
    const scheduler::TimeHistogram& decision = run.outcome.decision_ns;
    *out << fmt::format(
        "{}\n{{\"policy\":{},\"cct\":{{\"mean\":{:.3f},\"p50\":{:.3f},\"p95\":{:.3f},\"p99\":{:.3f},\"max\":{:.3f}}},"
        "\"slowdown\":{{\"mean\":{:.4f},\"p95\":{:.4f}}},\"makespan\":{:.3f},\"bound\":{:.3f},\"bound_name\":\"{}\","
        "\"distance\":{:.4f},\"bounds\":{},\"utilisation\":{:.4f},"
        "\"jain\":{:.4f},\"deadlines\":{{\"set\":{},\"admitted\":{},\"admitted_late\":{},\"met\":{}}},"
        "\"wall_seconds\":{:.4f},\"events\":{},\"events_per_second\":{:.0f},\"rate_changes\":{},\"active_max\":{},"
        "\"decisions\":{},\"decision_us\":{{\"mean\":{:.2f},\"p50\":{:.2f},\"p99\":{:.2f},\"max\":{:.2f}}}}}",
        i == 0 ? "" : ",", JsonText(run.policy), s.mean, s.p50, s.p95, s.p99, s.max, s.slowdown_mean, s.slowdown_p95,
        s.makespan, bounds.best(), bounds.name(), bounds.Distance(s), bounds.Json(), s.utilisation, s.jain, s.deadlines,
        s.admitted, s.admitted_late, s.met, run.wall_seconds, run.outcome.events, EventsPerSecond(run),
        run.outcome.rate_changes, run.outcome.active_max, run.outcome.decisions, decision.mean() * kMicroseconds,
        static_cast<double>(decision.Quantile(0.5)) * kMicroseconds,
        static_cast<double>(decision.Quantile(0.99)) * kMicroseconds,
        static_cast<double>(decision.largest()) * kMicroseconds);
  }
  *out << "\n]}\n";
}

void PrintCsv(std::span<const PolicyRun> runs, const MeanBounds& bounds, std::ostream* out) {
  *out << "policy,mean,p50,p95,p99,max,slowdown_mean,slowdown_p95,makespan,bound,bound_name,distance,utilisation,jain,"
          "wall_seconds,events,events_per_second\n";
  for (const PolicyRun& run : runs) {
    const Summary& s = run.summary;
    *out << fmt::format(
        "{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{:.3f},{:.3f},{},{:.4f},{:.4f},{:.4f},{:.4f},{},{:.0f}\n",
        JsonText(run.policy), s.mean, s.p50, s.p95, s.p99, s.max, s.slowdown_mean, s.slowdown_p95, s.makespan,
        bounds.best(), bounds.name(), bounds.Distance(s), s.utilisation, s.jain, run.wall_seconds, run.outcome.events,
        EventsPerSecond(run));
  }
}

void PrintTable(std::span<const PolicyRun> runs, const MeanBounds& bounds, const scheduler::TimeScale& scale,
                std::ostream* out) {
  std::size_t width = 8;
  for (const PolicyRun& run : runs) {
    width = std::max(width, std::min(kPolicyWidth, run.policy.size()));
  }
  *out << fmt::format("{:<{}} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>8} {:>6} {:>5} {:>5} {:>6} {:>6}\n",
                      "policy", width, "mean CCT", "p50", "p95", "p99", "max", "slow-", "p95", "make-", "mean/",
                      "util-", "Jain", "wall", "events");
  *out << fmt::format("{:<{}} {:>8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>8} {:>6} {:>5} {:>5} {:>6} {:>6}\n", "",
                      width, "", "", "", "", "", "down", "of it", "span", "bound", "ised", "", "s", "/s");
  for (const PolicyRun& run : runs) {
    const Summary& s = run.summary;
    // A long name has a line of its own, so that the figures stay in their columns.
    const bool long_name = run.policy.size() > kPolicyWidth;
    *out << (long_name ? run.policy + "\n" : "") << fmt::format("{:<{}}", long_name ? "" : run.policy, width);
    for (const double time : {s.mean, s.p50, s.p95, s.p99, s.max}) {
      *out << fmt::format(" {:>8}", Fitted(time, 8));
    }
    *out << fmt::format(" {:>6} {:>6} {:>8} {:>6.3f} {:>5.3f} {:>5.3f} {:>6} {:>6}\n",
                        s.slowdown_mean < 100 ? fmt::format("{:.2f}", s.slowdown_mean) : Fitted(s.slowdown_mean, 6),
                        s.slowdown_p95 < 100 ? fmt::format("{:.2f}", s.slowdown_p95) : Fitted(s.slowdown_p95, 6),
                        Fitted(s.makespan, 8), bounds.Distance(s), s.utilisation, s.jain,
                        run.wall_seconds < 100 ? fmt::format("{:.2f}", run.wall_seconds) : Fitted(run.wall_seconds, 6),
                        Short(EventsPerSecond(run)));
  }
  for (const PolicyRun& run : runs) {
    if (run.summary.deadlines > 0) {
      *out << fmt::format("{}: {} deadlines, {} admitted, {} of these late; {} met\n", run.policy,
                          run.summary.deadlines, run.summary.admitted, run.summary.admitted_late, run.summary.met);
    }
  }
  if (!runs.empty()) {
    const Summary& s = runs.front().summary;
    *out << fmt::format(
        "times in {}; {} coflows; events are rate changes\n"
        "no mean is below {:.1f} (bound: {}), nor below {:.1f} by isolation; no makespan below {:.1f}\n",
        scale.unit(), runs.front().outcome.coflows.size(), bounds.best(), bounds.name(), s.isolation_bound,
        bounds.makespan());
  }
}

}  // namespace

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    }
  }
  return out + "\"";
}

Result<OutputForm> OutputFormFromName(const std::string& name) {
  if (name == "table") {
    return OutputForm::kTable;
  }
  if (name == "json") {
    return OutputForm::kJson;
  }
  if (name == "csv") {
    return OutputForm::kCsv;
  }
  return Error(StatusCode::kInvalidArgument, fmt::format("--output: found \"{}\", allowed: table, json, csv", name));
}

void PrintRuns(std::span<const PolicyRun> runs, const scheduler::Bounds& bounds, OutputForm form,
               const scheduler::TimeScale& scale, std::ostream* out) {
  const MeanBounds mean_bounds(bounds, runs, scale);
  if (form == OutputForm::kJson) {
    PrintJson(runs, mean_bounds, scale, out);
  } else if (form == OutputForm::kCsv) {
    PrintCsv(runs, mean_bounds, out);
  } else {
    PrintTable(runs, mean_bounds, scale, out);
  }
}

namespace {

/// One table of names: orders or rates.
template <typename Info>
void PrintNames(std::string_view kind, std::span<const Info> infos, OutputForm form, std::ostream* out) {
  if (form == OutputForm::kTable) {
    *out << fmt::format("{}:\n", kind);
  } else if (form == OutputForm::kJson) {
    *out << fmt::format("\"{}\":[", kind == "order" ? "policies" : "rates");
  }
  for (const Info& info : infos) {
    if (form == OutputForm::kJson) {
      *out << fmt::format("{}\n{{\"name\":\"{}\",\"what\":\"{}\",\"paper\":\"{}\"}}", &info == infos.data() ? "" : ",",
                          info.name, info.what, info.paper);
    } else if (form == OutputForm::kCsv) {
      *out << fmt::format("{},{},\"{}\",\"{}\"\n", kind, info.name, info.what, info.paper);
    } else {
      *out << fmt::format("  {:<8} {} ({})\n", info.name, info.what, info.paper);
    }
  }
  *out << (form == OutputForm::kJson ? "\n]" : "");
}

}  // namespace

void PrintPolicies(OutputForm form, std::ostream* out) {
  *out << (form == OutputForm::kJson ? "{" : form == OutputForm::kCsv ? "kind,name,what,paper\n" : "");
  PrintNames("order", scheduler::Orders(), form, out);
  *out << (form == OutputForm::kJson ? ",\n" : "");
  PrintNames("rate", scheduler::Rates(), form, out);
  *out << (form == OutputForm::kJson ? "}\n" : "");
}

Status WriteCctCsv(const PolicyRun& run, const scheduler::TimeScale& scale, const std::string& path) {
  OutputFile file(path);
  file.stream() << "coflow_id,cct\n";
  for (const scheduler::CoflowOutcome& coflow : run.outcome.coflows) {
    file.stream() << fmt::format("{},{}\n", coflow.id, static_cast<double>(coflow.cct()) / scale.ticks_per_ms);
  }
  return file.Commit();
}

}  // namespace weir::tools
