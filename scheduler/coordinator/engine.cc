// Connections, greetings and leases of agents.
#include "scheduler/coordinator/engine.h"

#include <algorithm>
#include <utility>

#include "coflow/wire/weir.pb.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kProtocolVersion = 1;

std::uint32_t CodeNumber(StatusCode code) {
  return static_cast<std::uint32_t>(code);
}

}  // namespace

CoordinatorEngine::CoordinatorEngine(const Topology& topology, std::unique_ptr<Policy> policy, std::uint64_t epoch,
                                     EngineOptions options)
    : topology_(topology), policy_(std::move(policy)), epoch_(epoch), options_(options) {
  for (const Link& link : topology_.links()) state_.links.push_back({.rate = link.payload_rate(), .holder = JobId()});
}

CoordinatorEngine::~CoordinatorEngine() = default;

void CoordinatorEngine::OnConnect(Nanoseconds now, ConnectionId connection, std::string peer) {
  auto agent = std::make_unique<AgentRecord>();
  agent->connection = connection;
  agent->peer = std::move(peer);
  agent->connected = agent->last_heard = now;
  const bool full = agents_.size() >= kMaxAgents;
  agents_[connection] = std::move(agent);
  if (full) Drop(connection, CodeNumber(StatusCode::kResourceExhausted), "too many agents; the limit is 4096");
}

void CoordinatorEngine::OnDisconnect(Nanoseconds /*now*/, ConnectionId connection) {
  const auto found = agents_.find(connection);
  if (found == agents_.end()) return;
  if (found->second->greeted) Log("agent_disconnected", "host=" + found->second->host_name);
  Forget(connection);
}

void CoordinatorEngine::OnMessage(Nanoseconds now, ConnectionId connection, const wire::AgentMessage& message) {
  const auto found = agents_.find(connection);
  if (found == agents_.end()) return;  // Dropped in this very turn of the loop.
  AgentRecord& agent = *found->second;
  agent.last_heard = now;
  ++counters_.messages;
  using Kind = wire::AgentMessage;
  if (message.kind_case() == Kind::kHello) return OnHello(now, agent, message.hello());
  if (!agent.greeted) return Drop(connection, CodeNumber(StatusCode::kProtocol), "the first message must be a hello");
  switch (message.kind_case()) {
    case Kind::kHeartbeat:
      return Pong(agent, message.heartbeat().now_ns());
    case Kind::kProcessAttached:
      return OnProcessAttached(now, agent, message.process_attached());
    case Kind::kProcessDetached:
      return Detach(agent, ProcessId(message.process_detached().process()));
    case Kind::kLaneOpened:
      return OnLaneOpened(agent, message.lane_opened());
    case Kind::kLaneClosed:
      return CloseLane(agent, LaneId(message.lane_closed().lane()));
    case Kind::kDemandUpdate:
      return OnDemand(now, agent, message.demand_update());
    case Kind::kProfileUpdate:
      return OnProfile(now, agent, message.profile_update());
    case Kind::kApplied:
      return OnApplied(now, agent, message.applied());
    default:
      return Refuse(agent, CodeNumber(StatusCode::kUnsupported), "this kind of message is not known here");
  }
}

void CoordinatorEngine::OnHello(Nanoseconds now, AgentRecord& agent, const wire::Hello& hello) {
  const std::uint32_t protocol = CodeNumber(StatusCode::kProtocol);
  if (agent.greeted) return Drop(agent.connection, protocol, "a second hello on one connection");
  if (hello.protocol_version() != kProtocolVersion) {
    return Drop(agent.connection, CodeNumber(StatusCode::kUnsupported),
                "protocol version " + std::to_string(hello.protocol_version()) + " is not spoken here; use 1");
  }
  if (hello.host().empty() || hello.host().size() > kMaxNameBytes) {
    return Drop(agent.connection, protocol, "the hello names no host, or one longer than 256 bytes");
  }
  agent.host_name = hello.host();
  for (auto it = agents_.begin(); it != agents_.end();) {
    AgentRecord& other = *(it++)->second;
    if (&other == &agent || !other.greeted || other.host_name != hello.host()) continue;
    // The newest connection of one agent is the true one. Two agents under one name would replace each other for ever:
    // the first stays as long as it is heard.
    if (other.instance != hello.instance() && now - other.last_heard < Lease()) return RefuseTwin(agent, other, hello);
    Drop(other.connection, CodeNumber(StatusCode::kAlreadyExists), "replaced by a newer connection of the same host");
  }
  agent.greeted = true;
  agent.instance = hello.instance();
  agent.version = hello.version().substr(0, kMaxNameBytes);
  const Host* host = topology_.FindHost(agent.host_name);
  for (int i = 0; host == nullptr && i < std::min(hello.addresses_size(), 64); ++i) {
    const auto address = IpAddress::Parse(hello.addresses(i));
    if (address) host = topology_.FindHost(*address);
  }
  agent.host = host == nullptr ? HostId() : host->id;
  Log("agent_connected", "host=" + agent.host_name + " from=" + agent.peer + (host == nullptr ? " known=no" : ""));
  auto reply = std::make_shared<wire::CoordinatorMessage>();
  reply->mutable_welcome()->set_epoch(epoch_);
  reply->mutable_welcome()->set_protocol_version(kProtocolVersion);
  reply->mutable_welcome()->set_heartbeat_ms(static_cast<std::uint32_t>(options_.heartbeat / kMillisecond));
  reply->mutable_welcome()->set_host_unknown(host == nullptr);
  reply->mutable_welcome()->set_ttl_ms(static_cast<std::uint32_t>(options_.ttl / kMillisecond));
  Send(agent, std::move(reply));
}

/// It will try again and again, and is logged the first time.
void CoordinatorEngine::RefuseTwin(const AgentRecord& agent, AgentRecord& first, const wire::Hello& hello) {
  const bool known = std::exchange(first.twin, hello.instance()) == hello.instance();
  Drop(agent.connection, CodeNumber(StatusCode::kAlreadyExists),
       "host " + hello.host() + " has an agent already, connected from " + first.peer +
           "; stop one of the two, or give each its own --host",
       !known);
}

/// Says why, closes, and forgets at once: whatever the connection still sends is ignored.
void CoordinatorEngine::Drop(ConnectionId connection, std::uint32_t code, std::string reason, bool log) {
  const auto found = agents_.find(connection);
  if (found == agents_.end()) return;
  Refuse(*found->second, code, reason);
  if (log) {
    Log("agent_dropped",
        "host=" + found->second->host_name + " from=" + found->second->peer + " reason=\"" + reason + "\"");
  }
  actions_.push_back({.kind = Action::Kind::kDrop,
                      .connection = connection,
                      .message = nullptr,
                      .text = std::move(reason),
                      .detail = {}});
  Forget(connection);
}

void CoordinatorEngine::Forget(ConnectionId connection) {
  const auto found = agents_.find(connection);
  if (found == agents_.end()) return;
  AgentRecord& agent = *found->second;
  while (!agent.processes.empty()) Detach(agent, agent.processes.begin()->first);
  agents_.erase(found);
}

void CoordinatorEngine::ExpireAgents(Nanoseconds now) {
  for (auto it = agents_.begin(); it != agents_.end();) {
    const AgentRecord& agent = *(it++)->second;
    if (now - agent.last_heard < Lease()) continue;
    ++counters_.agents_expired;
    Drop(agent.connection, CodeNumber(StatusCode::kUnavailable), "not heard for three heartbeats");
  }
}

void CoordinatorEngine::Send(AgentRecord& agent, std::shared_ptr<const wire::CoordinatorMessage> message) {
  actions_.push_back({.kind = Action::Kind::kSend,
                      .connection = agent.connection,
                      .message = std::move(message),
                      .text = {},
                      .detail = {}});
}

void CoordinatorEngine::Refuse(AgentRecord& agent, std::uint32_t code, std::string reason) {
  ++counters_.refusals;
  auto message = std::make_shared<wire::CoordinatorMessage>();
  message->mutable_refuse()->set_code(code);
  message->mutable_refuse()->set_reason(std::move(reason));
  Send(agent, std::move(message));
}

void CoordinatorEngine::Log(std::string event, std::string detail) {
  actions_.push_back({.kind = Action::Kind::kLog,
                      .connection = ConnectionId(),
                      .message = nullptr,
                      .text = std::move(event),
                      .detail = std::move(detail)});
}

void CoordinatorEngine::Pong(AgentRecord& agent, std::int64_t agent_now) {
  auto message = std::make_shared<wire::CoordinatorMessage>();
  message->mutable_pong()->set_epoch(epoch_);
  message->mutable_pong()->set_agent_now_ns(agent_now);
  Send(agent, std::move(message));
}

std::string_view CoordinatorEngine::NameOfJob(JobId id) const {
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    if (state_.jobs[job].id == id) return jobs_[job].name;
  }
  const auto found = std::ranges::find_if(job_names_, [id](const auto& entry) { return entry.first == id; });
  return found == job_names_.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace weir::scheduler
