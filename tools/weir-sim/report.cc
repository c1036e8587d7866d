#include "tools/weir-sim/report.h"

#include <fmt/format.h>

#include "scheduler/order/order.h"
#include "scheduler/rate/allocator.h"
#include "tools/weir-sim/output_file.h"

namespace weir::tools {
namespace {

using scheduler::Summary;

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

double DecisionMeanMicroseconds(const PolicyRun& run) {
  return run.outcome.decisions == 0
             ? 0
             : static_cast<double>(run.outcome.decision_ns_total) / static_cast<double>(run.outcome.decisions) / 1e3;
}

void PrintJson(std::span<const PolicyRun> runs, const MeanBounds& bounds, const scheduler::TimeScale& scale,
               std::ostream* out) {
  *out << fmt::format("{{\"unit\":\"{}\",\"results\":[", scale.unit());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PolicyRun& run = runs[i];
    const Summary& s = run.summary;
    *out << fmt::format(
        "{}\n{{\"policy\":{},\"cct\":{{\"mean\":{:.3f},\"p50\":{:.3f},\"p95\":{:.3f},\"p99\":{:.3f},\"max\":{:.3f}}},"
        "\"slowdown\":{{\"mean\":{:.4f},\"p95\":{:.4f}}},\"makespan\":{:.3f},\"bound\":{:.3f},\"bound_name\":\"{}\","
        "\"distance\":{:.4f},\"bounds\":{},\"utilisation\":{:.4f},"
        "\"jain\":{:.4f},\"deadlines\":{{\"set\":{},\"admitted\":{},\"admitted_late\":{},\"met\":{}}},"
        "\"wall_seconds\":{:.4f},\"events\":{},\"rate_changes\":{},\"active_max\":{},\"decisions\":{},\"decision_us\":{"
        "{\"mean\":{:.2f},"
        "\"max\":{:.2f}}}}}",
        i == 0 ? "" : ",", JsonText(run.policy), s.mean, s.p50, s.p95, s.p99, s.max, s.slowdown_mean, s.slowdown_p95,
        s.makespan, bounds.best(), bounds.name(), bounds.Distance(s), bounds.Json(), s.utilisation, s.jain, s.deadlines,
        s.admitted, s.admitted_late, s.met, run.wall_seconds, run.outcome.events, run.outcome.rate_changes,
        run.outcome.active_max, run.outcome.decisions, DecisionMeanMicroseconds(run),
        static_cast<double>(run.outcome.decision_ns_max) / 1e3);
  }
  *out << "\n]}\n";
}

void PrintCsv(std::span<const PolicyRun> runs, const MeanBounds& bounds, std::ostream* out) {
  *out << "policy,mean,p50,p95,p99,max,slowdown_mean,slowdown_p95,makespan,bound,bound_name,distance,utilisation,jain,"
          "wall_seconds,events\n";
  for (const PolicyRun& run : runs) {
    const Summary& s = run.summary;
    *out << fmt::format(
        "{},{:.3f},{:.3f},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{:.3f},{:.3f},{},{:.4f},{:.4f},{:.4f},{:.4f},{}\n",
        JsonText(run.policy), s.mean, s.p50, s.p95, s.p99, s.max, s.slowdown_mean, s.slowdown_p95, s.makespan,
        bounds.best(), bounds.name(), bounds.Distance(s), s.utilisation, s.jain, run.wall_seconds, run.outcome.events);
  }
}

void PrintTable(std::span<const PolicyRun> runs, const MeanBounds& bounds, const scheduler::TimeScale& scale,
                std::ostream* out) {
  std::size_t width = 8;
  for (const PolicyRun& run : runs) {
    width = std::max(width, run.policy.size());
  }
  *out << fmt::format("{:<{}} {:>12} {:>10} {:>11} {:>12} {:>12} {:>9} {:>8} {:>6} {:>6} {:>8} {:>11}\n", "policy",
                      width, "mean CCT", "p50", "p95", "p99", "max", "slowdown", "x bound", "util", "Jain", "wall s",
                      "events/s");
  for (const PolicyRun& run : runs) {
    const Summary& s = run.summary;
    const double per_second =
        run.wall_seconds > 0 ? static_cast<double>(run.outcome.rate_changes) / run.wall_seconds : 0;
    *out << fmt::format(
        "{:<{}} {:>12.1f} {:>10.1f} {:>11.1f} {:>12.1f} {:>12.1f} {:>9.2f} {:>8.3f} {:>6.3f} {:>6.3f} {:>8.3f} "
        "{:>11.0f}\n",
        run.policy, width, s.mean, s.p50, s.p95, s.p99, s.max, s.slowdown_mean, bounds.Distance(s), s.utilisation,
        s.jain, run.wall_seconds, per_second);
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
        "times in {}; no mean is below {:.1f} (bound: {}), nor below {:.1f} by isolation alone; no makespan below "
        "{:.1f}; {} coflows; events are rate changes\n",
        scale.unit(), bounds.best(), bounds.name(), s.isolation_bound, bounds.makespan(),
        runs.front().outcome.coflows.size());
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
