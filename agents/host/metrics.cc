#include "agents/host/metrics.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace weir::agents {
namespace {

/// Of one process, over its lanes.
struct Totals {
  std::uint64_t lanes = 0;
  std::uint64_t open = 0;
  std::uint64_t held_now = 0;
  std::uint64_t coflows = 0;
  Bytes sent = 0;
  Bytes waiting = 0;
  Nanoseconds held = 0;
  /// In seconds: what a process says may be any number, and of those integers must not be added up.
  struct {
    double gpu = 0;
    double credit = 0;
    double network = 0;
    double held = 0;
  } stalls;
  LaneSends sends;
  std::array<std::uint64_t, client::kKnownByKinds> coflows_by = {};
  std::uint64_t capped = 0;
  double cap = 0;  ///< Bytes per second, over lanes with one.
  std::array<std::uint64_t, AgentEngine::kLevels> at_level = {};
};

/// A label's value may hold anything but what would end it.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

void Add(const AgentEngine::Lane& lane, Totals* to) {
  ++to->lanes;
  to->open += lane.active() ? 1u : 0u;
  to->held_now += lane.held.since != 0 ? 1u : 0u;
  to->coflows += lane.sample.messages;
  to->sent += lane.sample.accepted;
  to->waiting += lane.sample.rest;
  to->held += lane.held.total;
  to->stalls.gpu += ToSeconds(lane.sample.stalls.gpu);
  to->stalls.credit += ToSeconds(lane.sample.stalls.credit);
  to->stalls.network += ToSeconds(lane.sample.stalls.network);
  to->stalls.held += ToSeconds(lane.sample.stalls.held);
  to->sends.by_profiler += lane.sample.sends.by_profiler;
  to->sends.by_attributes += lane.sample.sends.by_attributes;
  to->sends.by_idle_gap += lane.sample.sends.by_idle_gap;
  for (std::size_t i = 0; i < lane.coflows.size(); ++i) to->coflows_by[i] += lane.coflows[i];
  to->capped += lane.written.pacing_rate > 0 ? 1u : 0u;
  to->cap += static_cast<double>(lane.written.pacing_rate) * lane.sockets_peak;
  if (lane.directed && !lane.unmanaged) ++to->at_level[lane.level];
}

/// By its labels: a process that is attached and adopted at once, or attaches again, is one series.
std::map<std::string, Totals> TotalsOf(const AgentEngine& engine) {
  std::map<std::string, Totals> all;
  for (const auto& [id, process] : engine.processes()) {
    const JobInfo& job = process.info.job;
    Totals& totals = all[fmt::format("job=\"{}\",tenant=\"{}\",pid=\"{}\"", Escaped(job.name), Escaped(job.tenant),
                                     process.info.pid)];
    for (const LaneId lane_id : process.lanes) {
      if (const AgentEngine::Lane* lane = engine.FindLane(lane_id)) Add(*lane, &totals);
    }
  }
  return all;
}

class Text {
 public:
  void Head(const char* name, const char* type, const char* help) {
    text_ += fmt::format("# HELP weir_agent_{0} {2}\n# TYPE weir_agent_{0} {1}\n", name, type, help);
  }
  template <typename Number>
  void One(const char* name, const std::string& labels, Number value) {
    text_ += labels.empty() ? fmt::format("weir_agent_{} {}\n", name, value)
                            : fmt::format("weir_agent_{}{{{}}} {}\n", name, labels, value);
  }
  template <typename Number>
  void Only(const char* name, const char* type, const char* help, Number value) {
    Head(name, type, help);
    One(name, "", value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

constexpr const char* kCounter = "counter";
constexpr const char* kGauge = "gauge";

void WriteProcesses(const std::map<std::string, Totals>& all, Text* text) {
  struct Column {
    const char* name;
    const char* type;
    const char* help;
    double (*value)(const Totals&);
  };
  constexpr Column kColumns[] = {
      {"lanes", kGauge, "Peers of the process.", [](const Totals& t) { return static_cast<double>(t.lanes); }},
      {"coflows_open", kGauge, "Lanes on which a coflow is being sent.",
       [](const Totals& t) { return static_cast<double>(t.open); }},
      {"lanes_held", kGauge, "Lanes with bytes to send and no turn.",
       [](const Totals& t) { return static_cast<double>(t.held_now); }},
      {"lanes_capped", kGauge, "Lanes with a rate.", [](const Totals& t) { return static_cast<double>(t.capped); }},
      {"rate_bytes_per_second", kGauge, "Of lanes that have one, added up.", [](const Totals& t) { return t.cap; }},
      {"waiting_bytes", kGauge, "Begun and not sent.", [](const Totals& t) { return static_cast<double>(t.waiting); }},
      {"coflows_begun_total", kCounter, "Coflows, each counted once a lane.",
       [](const Totals& t) { return static_cast<double>(t.coflows); }},
      {"sent_bytes_total", kCounter, "Bytes taken by the transport.",
       [](const Totals& t) { return static_cast<double>(t.sent); }},
      {"held_seconds_total", kCounter, "With bytes to send and no turn, over lanes.",
       [](const Totals& t) { return ToSeconds(t.held); }},
  };
  for (const Column& column : kColumns) {
    text->Head(column.name, column.type, column.help);
    for (const auto& [labels, totals] : all) text->One(column.name, labels, column.value(totals));
  }
}

/// What has one more label than the process has.
void WriteKinds(const std::map<std::string, Totals>& all, Text* text) {
  text->Head("stall_seconds_total", kCounter, "Where the time of transfers went, as the NCCL plugin says.");
  for (const auto& [labels, totals] : all) {
    const auto& stalls = totals.stalls;
    for (const auto& [cause, time] : {std::pair("gpu", stalls.gpu), std::pair("credit", stalls.credit),
                                      std::pair("network", stalls.network), std::pair("held", stalls.held)}) {
      text->One("stall_seconds_total", fmt::format("{},cause=\"{}\"", labels, cause), time);
    }
  }
  text->Head("sends_total", kCounter, "Transfers of the NCCL plugin, by how their coflow was known.");
  for (const auto& [labels, totals] : all) {
    const LaneSends& sends = totals.sends;
    for (const auto& [by, count] :
         {std::pair("profiler", sends.by_profiler), std::pair("attributes", sends.by_attributes),
          std::pair("idle-gap", sends.by_idle_gap)}) {
      text->One("sends_total", fmt::format("{},known_by=\"{}\"", labels, by), count);
    }
  }
  text->Head("coflows_known_total", kCounter, "Coflows that the agent read of, by how they were known.");
  for (const auto& [labels, totals] : all) {
    for (const auto& [by, kind] :
         {std::pair("profiler", client::KnownBy::kProfiler), std::pair("attributes", client::KnownBy::kAttributes),
          std::pair("idle-gap", client::KnownBy::kIdleGap), std::pair("writes", client::KnownBy::kWrites)}) {
      text->One("coflows_known_total", fmt::format("{},known_by=\"{}\"", labels, by),
                totals.coflows_by[static_cast<std::size_t>(kind)]);
    }
  }
  text->Head("lanes_at_level", kGauge, "Lanes that the coordinator directs, by queue level; 0 goes first.");
  for (const auto& [labels, totals] : all) {
    for (std::size_t level = 0; level < totals.at_level.size(); ++level) {
      text->One("lanes_at_level", fmt::format("{},level=\"{}\"", labels, level), totals.at_level[level]);
    }
  }
}

}  // namespace

std::string MetricsText(const AgentEngine& engine, const ShellCounters& counters) {
  Text text;
  const EngineCounters& counted = engine.counters();
  text.Only("coordinator_connected", kGauge, "1: the coordinator has welcomed us.", engine.connected() ? 1 : 0);
  text.Only("host_unknown", kGauge, "1: its topology does not know this host.", engine.host_unknown() ? 1 : 0);
  text.Only("fallback", kGauge, "1: the coordinator is silent and the local policy in force.",
            engine.in_fallback() ? 1 : 0);
  text.Only("processes", kGauge, "Attached and adopted ones.", engine.processes().size());
  text.Only("cpu_seconds_total", kCounter, "Used by the agent.", CpuSeconds());
  text.Only("directives_total", kCounter, "Carried out.", counted.directives);
  text.Only("directives_refused_total", kCounter, "For unknown lanes, or out of range.", counted.directives_refused);
  text.Only("stale_total", kCounter, "Schedules and welcomes of an old epoch or sequence.", counted.stale);
  text.Only("garbage_total", kCounter, "Messages of the coordinator that were not understood.", counted.garbage);
  text.Only("refusals_total", kCounter, "What we said and the coordinator refused.", counted.refusals);
  text.Only("fallbacks_total", kCounter, "Times that the coordinator fell silent.", counted.fallbacks);
  text.Only("messages_lost_total", kCounter, "Coflows overwritten before they were read.", counted.messages_lost);
  text.Only("attaches_total", kCounter, "Processes that attached.", counters.attaches);
  text.Only("attaches_refused_total", kCounter, "At the front door.", counters.refused);
  const std::map<std::string, Totals> all = TotalsOf(engine);
  WriteProcesses(all, &text);
  WriteKinds(all, &text);
  return text.Take();
}

}  // namespace weir::agents
