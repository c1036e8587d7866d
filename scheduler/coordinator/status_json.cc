#include "scheduler/coordinator/status_json.h"

#include <algorithm>
#include <boost/json/src.hpp>

namespace weir::scheduler {
namespace {

namespace json = boost::json;

double Milliseconds(Nanoseconds t) {
  return static_cast<double>(t) / 1e6;
}

/// Share of the time alone that the job keeps the link busy; 0 if not known.
double ShareOf(const FabricState& state, const JobProfile& profile, LinkIndex link) {
  if (profile.alone <= 0) return 0;
  double bytes = 0;
  for (const JobProfile::Link& use : profile.links) {
    if (use.link == link) bytes += use.bytes;
  }
  return bytes / state.links[link].rate / ToSeconds(profile.alone);
}

json::object LinkJson(const CoordinatorEngine& engine, LinkIndex index) {
  const FabricState& state = engine.state();
  const Link& link = engine.topology().links()[index];
  double load = 0;
  for (const JobState& job : state.jobs) load += ShareOf(state, job.profile, index);
  json::array waiting;
  for (std::size_t j = 0; j < state.jobs.size(); ++j) {
    const bool waits = std::ranges::any_of(state.lanes, [&](const LaneState& lane) {
      return lane.job == j && lane.active && std::ranges::find(lane.links, index) != lane.links.end();
    });
    if (waits && state.jobs[j].turn.waiting) waiting.emplace_back(engine.jobs()[j].name);
  }
  const JobId holder = state.links[index].holder;
  return {{"name", link.name},
          {"capacity", link.capacity},
          {"payload_rate", link.payload_rate()},
          {"load", load},
          {"oversubscribed", load > 1},
          {"holder", holder ? json::value(json::string(engine.NameOfJob(holder))) : json::value(nullptr)},
          {"waiting", std::move(waiting)}};
}

json::object ProfileJson(const CoordinatorEngine& engine, const JobState& job) {
  json::object shares;
  double bytes = 0;
  for (const JobProfile::Link& use : job.profile.links) {
    shares[engine.topology().links()[use.link].name] = ShareOf(engine.state(), job.profile, use.link);
    bytes = std::max(bytes, use.bytes);
  }
  return {{"iteration", job.profile.iteration},          {"period_ms", Milliseconds(job.profile.period)},
          {"alone_ms", Milliseconds(job.profile.alone)}, {"bytes", bytes},
          {"confidence", job.profile.confidence},        {"share", std::move(shares)}};
}

json::object JobJson(const CoordinatorEngine& engine, std::size_t index) {
  const JobState& job = engine.state().jobs[index];
  const JobRecord& record = engine.jobs()[index];
  return {{"name", record.name},
          {"tenant", record.tenant},
          {"class", json::string(JobClassName(job.job_class))},
          {"weight", job.weight},
          {"gpus", record.gpus},
          {"processes", record.processes.size()},
          {"level", job.turn.level},
          {"coflows", job.turn.coflows},
          {"active", job.turn.active},
          {"granted", job.turn.granted},
          {"waiting", job.turn.waiting},
          {"turns", record.turns},
          {"held_ms", Milliseconds(record.held)},
          {"profile", ProfileJson(engine, job)}};
}

json::object AgentJson(const AgentRecord& agent, Nanoseconds now) {
  return {{"host", agent.host_name},
          {"from", agent.peer},
          {"version", agent.version},
          {"connected", agent.greeted},
          {"known", static_cast<bool>(agent.host)},
          {"silent_ms", Milliseconds(now - agent.last_heard)},
          {"lag_ms", Milliseconds(agent.lag)},
          {"processes", agent.processes.size()},
          {"lanes", agent.lanes.size()},
          {"refused_directives", agent.refused_directives}};
}

json::object CountersJson(const EngineCounters& counters) {
  return {{"decisions", counters.decisions},
          {"messages", counters.messages},
          {"schedules", counters.schedules},
          {"directives", counters.directives},
          {"refusals", counters.refusals},
          {"unknown_lanes", counters.unknown_lanes},
          {"agents_expired", counters.agents_expired},
          {"directives_refused", counters.directives_refused}};
}

}  // namespace

std::string StatusJson(const CoordinatorEngine& engine, Nanoseconds now) {
  json::array links;
  for (LinkIndex link = 0; link < engine.state().links.size(); ++link) links.push_back(LinkJson(engine, link));
  json::array jobs;
  for (std::size_t job = 0; job < engine.jobs().size(); ++job) jobs.push_back(JobJson(engine, job));
  json::array agents;
  for (const auto& [connection, agent] : engine.agents()) agents.push_back(AgentJson(*agent, now));
  const json::object status = {{"epoch", engine.epoch()},
                               {"policy", json::string(engine.policy_name())},
                               {"version", WEIR_VERSION},
                               {"links", std::move(links)},
                               {"jobs", std::move(jobs)},
                               {"agents", std::move(agents)},
                               {"counters", CountersJson(engine.counters())}};
  return json::serialize(status) + "\n";
}

std::string TimelineJson(const CoordinatorEngine& engine) {
  json::array grants;
  for (const GrantEvent& event : engine.grants()) {
    grants.push_back(json::object{{"t_ns", event.time},
                                  {"job", json::string(engine.NameOfJob(event.job))},
                                  {"link", engine.topology().links()[event.link].name},
                                  {"granted", event.granted},
                                  {"level", event.level}});
  }
  return json::serialize(json::object{{"epoch", engine.epoch()}, {"grants", std::move(grants)}}) + "\n";
}

}  // namespace weir::scheduler
