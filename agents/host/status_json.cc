#include "agents/host/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/src.hpp>
#include <ctime>
#include <utility>

#include "agents/host/attach_shell.h"

namespace weir::agents {
namespace {

namespace json = boost::json;

double Milliseconds(Nanoseconds t) {
  return static_cast<double>(t) / 1e6;
}

std::uint64_t CoflowsBy(const AgentEngine::Lane& lane, client::KnownBy by) {
  return lane.coflows[static_cast<std::size_t>(by)];
}

json::object LaneJson(const AgentEngine::Lane& lane) {
  return {{"peer", lane.peer},
          {"phase", PhaseName(lane.phase)},
          {"gate", lane.written.hold ? "hold" : "go"},
          {"rate", lane.rate},
          {"pacing_rate", lane.written.pacing_rate},
          {"level", lane.level},
          {"managed", lane.directed && !lane.unmanaged},
          {"sockets", lane.sample.sockets},
          {"bytes_sent", lane.sample.accepted},
          {"bytes_waiting", lane.sample.rest},
          {"messages", lane.sample.messages},
          {"held_ms", Milliseconds(lane.held.total)},
          {"stalls_ms", json::object{{"gpu", Milliseconds(lane.sample.stalls.gpu)},
                                     {"credit", Milliseconds(lane.sample.stalls.credit)},
                                     {"network", Milliseconds(lane.sample.stalls.network)},
                                     {"held", Milliseconds(lane.sample.stalls.held)}}},
          {"coflows_known_by", json::object{{"profiler", CoflowsBy(lane, client::KnownBy::kProfiler)},
                                            {"attributes", CoflowsBy(lane, client::KnownBy::kAttributes)},
                                            {"idle-gap", CoflowsBy(lane, client::KnownBy::kIdleGap)},
                                            {"writes", CoflowsBy(lane, client::KnownBy::kWrites)}}},
          {"sends_known_by", json::object{{"profiler", lane.sample.sends.by_profiler},
                                          {"attributes", lane.sample.sends.by_attributes},
                                          {"idle-gap", lane.sample.sends.by_idle_gap}}}};
}

json::object ProcessJson(const AgentEngine& engine, const AgentEngine::Process& process) {
  json::array lanes;
  for (const LaneId id : process.lanes) {
    if (const AgentEngine::Lane* lane = engine.FindLane(id)) lanes.push_back(LaneJson(*lane));
  }
  const Profile& profile = process.learner.profile();
  return {{"pid", process.info.pid},
          {"job", process.info.job.name},
          {"tenant", process.info.job.tenant},
          {"class", process.info.job.job_class},
          {"adopted", process.info.adopted},
          {"profile", json::object{{"iteration", profile.iteration},
                                   {"period_ms", Milliseconds(profile.period)},
                                   {"alone_ms", Milliseconds(profile.alone)},
                                   {"bytes", profile.bytes_total},
                                   {"confidence", profile.confidence}}},
          {"lanes", std::move(lanes)}};
}

}  // namespace

double CpuSeconds() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

std::string StatusJson(const AgentEngine& engine, const ShellCounters& counters) {
  json::array processes;
  for (const auto& [id, process] : engine.processes()) processes.push_back(ProcessJson(engine, process));
  const EngineCounters& counted = engine.counters();
  const json::object status = {{"version", WEIR_VERSION},
                               {"coordinator_connected", engine.connected()},
                               {"epoch", engine.epoch()},
                               {"host_unknown", engine.host_unknown()},
                               {"fallback", engine.in_fallback()},
                               {"cpu_seconds", CpuSeconds()},
                               {"processes", std::move(processes)},
                               {"counters", json::object{{"starts", counted.starts},
                                                         {"drains", counted.drains},
                                                         {"lingers_saved", counted.lingers_saved},
                                                         {"directives", counted.directives},
                                                         {"directives_refused", counted.directives_refused},
                                                         {"stale", counted.stale},
                                                         {"garbage", counted.garbage},
                                                         {"refusals", counted.refusals},
                                                         {"fallbacks", counted.fallbacks},
                                                         {"messages_lost", counted.messages_lost},
                                                         {"rings", counters.rings},
                                                         {"looks", counters.looks},
                                                         {"measures", counters.measures},
                                                         {"attaches", counters.attaches},
                                                         {"refused", counters.refused}}}};
  return json::serialize(status);
}

namespace {

/// Whether the host is managed, in words; `status` has the keys of StatusJson.
const char* Management(const json::object& status) {
  if (status.at("fallback").as_bool()) return "local fallback";
  if (status.at("host_unknown").as_bool()) return "not managed: its topology does not know this host; see --host";
  return "managed";
}

}  // namespace

std::string StatusTable(const std::string& status_json) {
  boost::system::error_code error;
  const json::value parsed = json::parse(status_json, error);
  if (error || !parsed.is_object() || !parsed.as_object().contains("processes")) return {};
  const json::object& status = parsed.as_object();
  std::string text =
      fmt::format("coordinator {}, {}\n{:>8} {:20} {:18} {:10} {:5} {:>12} {:>14} {:>10}\n",
                  status.at("coordinator_connected").as_bool() ? "connected" : "not connected", Management(status),
                  "pid", "job", "peer", "phase", "gate", "rate B/s", "bytes sent", "held ms");
  for (const json::value& process : status.at("processes").as_array()) {
    const json::object& p = process.as_object();
    for (const json::value& lane : p.at("lanes").as_array()) {
      const json::object& l = lane.as_object();
      text += fmt::format("{:>8} {:20} {:18} {:10} {:5} {:>12.0f} {:>14} {:>10.1f}\n", p.at("pid").to_number<long>(),
                          p.at("job").as_string().c_str(), l.at("peer").as_string().c_str(),
                          l.at("phase").as_string().c_str(), l.at("gate").as_string().c_str(),
                          l.at("rate").to_number<double>(), l.at("bytes_sent").to_number<std::uint64_t>(),
                          l.at("held_ms").to_number<double>());
    }
  }
  return text;
}

std::string RequestOperation(const std::string& line) {
  boost::system::error_code error;
  const json::value parsed = json::parse(line, error);
  if (error || !parsed.is_object()) return {};
  const json::value* operation = parsed.as_object().if_contains("op");
  return operation != nullptr && operation->is_string() ? std::string(operation->as_string()) : std::string();
}

namespace {

/// Copies a text into a field that must keep its final NUL. False if it is absent and needed, no text, or too long.
template <std::size_t N>
bool CopyText(const json::object& from, const char* key, char (&to)[N]) {
  const json::value* value = from.if_contains(key);
  if (value == nullptr) return true;
  if (!value->is_string() || value->as_string().size() >= N) return false;
  std::copy(value->as_string().begin(), value->as_string().end(), to);
  return true;
}

}  // namespace

Result<AdoptRequest> ReadAdoptRequest(const std::string& line) {
  boost::system::error_code error;
  const json::value parsed = json::parse(line, error);
  const json::value* pid = !error && parsed.is_object() ? parsed.as_object().if_contains("pid") : nullptr;
  if (pid == nullptr || !pid->is_int64() || pid->as_int64() <= 0) {
    return Error(StatusCode::kInvalidArgument, "\"pid\" must be the number of a process");
  }
  client::AttachRequest request{};
  const json::object& fields = parsed.as_object();
  if (!CopyText(fields, "job", request.job) || !CopyText(fields, "tenant", request.tenant) ||
      !CopyText(fields, "class", request.job_class)) {
    return Error(StatusCode::kInvalidArgument, "\"job\", \"tenant\" and \"class\" must be short texts");
  }
  auto job = ReadAttachRequest(request);
  if (!job) return tl::unexpected(job.error());
  return AdoptRequest{pid->as_int64(), std::move(*job)};
}

std::string WriteAdoptRequest(const AdoptRequest& request) {
  return json::serialize(json::object{{"op", "adopt"},
                                      {"pid", request.pid},
                                      {"job", request.job.name},
                                      {"tenant", request.job.tenant},
                                      {"class", request.job.job_class}});
}

std::string OutcomeJson(const Status& status) {
  if (status.ok()) return R"({"ok":true})";
  return json::serialize(json::object{{"error", status.message()}});
}

Status ReadOutcome(const std::string& answer) {
  boost::system::error_code error;
  const json::value parsed = json::parse(answer, error);
  if (error || !parsed.is_object()) return Status(StatusCode::kProtocol, "the agent's answer is not understood");
  const json::value* refused = parsed.as_object().if_contains("error");
  if (refused == nullptr) return Status::Ok();
  const std::string reason = refused->is_string() ? std::string(refused->as_string()) : "no reason given";
  return Status(StatusCode::kPermissionDenied, reason);
}

}  // namespace weir::agents
