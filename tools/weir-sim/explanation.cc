#include "tools/weir-sim/explanation.h"

#include <fmt/format.h>

#include <algorithm>

#include "scheduler/sim/arrivals.h"

namespace weir::tools {
namespace {

using scheduler::Blocker;
using scheduler::CoflowOutcome;
using scheduler::LinkWait;

constexpr std::size_t kBlockersShown = 15;
constexpr std::size_t kElsewhereShown = 10;

/// Words a table, a JSON object or CSV lines from the same few figures.
class Printer {
 public:
  explicit Printer(const Explanation& explanation)
      : e_(explanation),
        of_(e_.run.outcome.coflows[e_.waits.coflow()]),
        coflow_(e_.trace.coflows[e_.waits.coflow()]),
        links_(e_.waits.Links()) {}

  std::string Table() const {
    const double cct = Time(static_cast<double>(of_.cct()));
    const double ideal = Time(static_cast<double>(of_.isolation));
    std::string text =
        fmt::format("coflow {} under {}: {:.1f} {}, {:.2f} times the {:.1f} it takes on an empty fabric\n", of_.id,
                    e_.run.policy, cct, e_.scale.unit(), cct / std::max(ideal, 1e-9), ideal);
    text +=
        fmt::format("{} flows, {} senders, {} receivers, {:.1f} MB; bottleneck on an empty fabric: {}\n",
                    coflow_.flows.size(), coflow_.mappers, coflow_.reducers, TotalMegabytes(), Name(Bottleneck().link));
    text += fmt::format("started {:.1f}{}, first served {:.1f}, ended {:.1f}\n\n",
                        Time(static_cast<double>(of_.arrival)), StartReason(),
                        Time(static_cast<double>(e_.waits.first_served())), Time(static_cast<double>(of_.end)));
    return text + DecisiveLink() + Elsewhere();
  }

  std::string Json() const {
    std::string text = fmt::format(
        "{{\"unit\":\"{}\",\"policy\":{},\"coflow\":{},\"cct\":{:.3f},\"isolation\":{:.3f},\"slowdown\":{:.4f},"
        "\"arrival\":{:.3f},\"start\":{:.3f},\"first_served\":{:.3f},\"end\":{:.3f},\"after\":[{}],"
        "\"bottleneck\":{},\"links\":[",
        e_.scale.unit(), JsonText(e_.run.policy), of_.id, Time(static_cast<double>(of_.cct())),
        Time(static_cast<double>(of_.isolation)),
        static_cast<double>(of_.cct()) / static_cast<double>(std::max<std::int64_t>(1, of_.isolation)), Arrival(),
        Time(static_cast<double>(of_.arrival)), Time(static_cast<double>(e_.waits.first_served())),
        Time(static_cast<double>(of_.end)), fmt::join(coflow_.after, ","), JsonText(Name(Bottleneck().link)));
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const LinkWait& wait = links_[i];
      text += fmt::format(
          "{}\n{{\"link\":{},\"bytes\":{:.0f},\"ideal\":{:.3f},\"until\":{:.3f},\"served\":{:.3f},\"blocked\":{:.3f},"
          "\"unused\":{:.3f},\"blockers\":[",
          i == 0 ? "" : ",", JsonText(Name(wait.link)), wait.bytes, Time(wait.ideal),
          Time(static_cast<double>(wait.until)), Time(wait.served), Time(wait.blocked()), Time(wait.unused));
      for (const Blocker& blocker : wait.blockers) {
        text += fmt::format("{}{{\"coflow\":{},\"time\":{:.3f}}}", &blocker == wait.blockers.data() ? "" : ",",
                            IdOf(blocker.coflow), Time(blocker.ticks));
      }
      text += "]}";
    }
    return text + "\n]}\n";
  }

  std::string Csv() const {
    std::string text = "link,what,coflow,time\n";
    for (const LinkWait& wait : links_) {
      const auto line = [&](std::string_view what, std::uint64_t coflow, double ticks) {
        text += fmt::format("{},{},{},{:.3f}\n", Name(wait.link), what, coflow, Time(ticks));
      };
      line("ideal", of_.id, wait.ideal);
      line("served", of_.id, wait.served);
      for (const Blocker& blocker : wait.blockers) {
        line("blocked", IdOf(blocker.coflow), blocker.ticks);
      }
      line("unused", of_.id, wait.unused);
    }
    return text;
  }

 private:
  double Time(double ticks) const { return ticks / e_.scale.ticks_per_ms; }
  double Arrival() const { return Time(static_cast<double>(scheduler::TicksOf(coflow_.arrival, e_.scale))); }
  const std::string& Name(std::uint32_t link) const { return e_.link_names[link]; }
  std::uint64_t IdOf(std::size_t coflow) const { return e_.trace.coflows[coflow].id; }
  const LinkWait& Bottleneck() const {
    return *std::max_element(links_.begin(), links_.end(),
                             [](const LinkWait& a, const LinkWait& b) { return a.ideal < b.ideal; });
  }
  double TotalMegabytes() const {
    double bytes = 0;
    for (const traces::TraceFlow& flow : coflow_.flows) {
      bytes += static_cast<double>(flow.bytes);
    }
    return bytes / static_cast<double>(1 << 20);
  }

  std::string StartReason() const {
    if (coflow_.after.empty()) {
      return "";
    }
    return fmt::format(" (arrived {:.1f}, after coflow {})", Arrival(), fmt::join(coflow_.after, ", "));
  }

  std::string Row(std::string_view what, double ticks, double whole, std::string_view note) const {
    return fmt::format("  {:<22} {:>12.1f} {:>6.1f} %  {}\n", what, Time(ticks), 100 * ticks / whole, note);
  }

  /// The link that had bytes of the coflow to its end: the times on it add up to the completion time.
  std::string DecisiveLink() const {
    const LinkWait& wait = links_.front();
    const auto whole = static_cast<double>(std::max<std::int64_t>(1, wait.until - of_.arrival));
    std::string text = fmt::format("{} was the last link it needed, {:.1f} in all:\n", Name(wait.link), Time(whole));
    text += Row("served", wait.served, whole, fmt::format("ideal {:.1f}", Time(wait.ideal)));
    double rest = wait.blocked();
    for (std::size_t i = 0; i < std::min(kBlockersShown, wait.blockers.size()); ++i) {
      const Blocker& blocker = wait.blockers[i];
      const CoflowOutcome& other = e_.run.outcome.coflows[blocker.coflow];
      rest -= blocker.ticks;
      text += Row(fmt::format("waited for {}", other.id), blocker.ticks, whole,
                  fmt::format("live {:.1f} to {:.1f}, ideal {:.1f}", Time(static_cast<double>(other.arrival)),
                              Time(static_cast<double>(other.end)), Time(static_cast<double>(other.isolation))));
    }
    if (wait.blockers.size() > kBlockersShown) {
      text += Row(fmt::format("waited for {} others", wait.blockers.size() - kBlockersShown), rest, whole, "");
    }
    return text + Row("unused", wait.unused, whole,
                      wait.unused > 0 ? "the other ends of its flows were taken, or the link had failed" : "");
  }

  /// The longest waits on its other links, where these kept the last one unused or made it longer.
  std::string Elsewhere() const {
    struct Entry {
      std::uint32_t link;
      Blocker blocker;
    };
    std::vector<Entry> entries;
    for (std::size_t i = 1; i < links_.size(); ++i) {
      for (const Blocker& blocker : links_[i].blockers) {
        entries.push_back({links_[i].link, blocker});
      }
    }
    if (entries.empty()) {
      return "";
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.blocker.ticks > b.blocker.ticks; });
    std::string text = "\nlongest waits on its other links:\n";
    for (std::size_t i = 0; i < std::min(kElsewhereShown, entries.size()); ++i) {
      text += fmt::format("  {:<22} {:>12.1f}  waited for {}\n", Name(entries[i].link), Time(entries[i].blocker.ticks),
                          IdOf(entries[i].blocker.coflow));
    }
    return text +
           fmt::format("times in {}; --output json and csv have all of {} links\n", e_.scale.unit(), links_.size());
  }

  const Explanation& e_;
  const CoflowOutcome& of_;
  const traces::TraceCoflow& coflow_;
  std::vector<LinkWait> links_;
};

}  // namespace

void PrintExplanation(const Explanation& explanation, OutputForm form, std::ostream* out) {
  const Printer printer(explanation);
  *out << (form == OutputForm::kJson ? printer.Json() : form == OutputForm::kCsv ? printer.Csv() : printer.Table());
}

}  // namespace weir::tools
