#pragma once

#include <string>

#include "agents/host/engine.h"
#include "coflow/status.h"

namespace weir::agents {

/// Counted by the shell; for people.
struct ShellCounters {
  std::uint64_t rings = 0;
  std::uint64_t looks = 0;
  std::uint64_t measures = 0;
  std::uint64_t attaches = 0;
  std::uint64_t refused = 0;
};

/// Processor time of this process.
double CpuSeconds();
/// What `weir-agent status --output json` prints; docs/agent.md describes every key.
std::string StatusJson(const AgentEngine& engine, const ShellCounters& counters);
/// The same for people, from that JSON. Empty if it is not such JSON.
std::string StatusTable(const std::string& status_json);
/// The "op" of one request line of the command line tools; empty if there is none.
std::string RequestOperation(const std::string& line);

/// What `weir-agent adopt` asks for, checked like what a process says of itself.
struct AdoptRequest {
  std::int64_t pid = 0;
  JobInfo job;
};
Result<AdoptRequest> ReadAdoptRequest(const std::string& line);
std::string WriteAdoptRequest(const AdoptRequest& request);
/// {"error": ...}, or {"ok": true} if `status` is ok; and back, from an answer.
std::string OutcomeJson(const Status& status);
Status ReadOutcome(const std::string& answer);

}  // namespace weir::agents
