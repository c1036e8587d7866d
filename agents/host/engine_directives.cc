// From the coordinator's words to gates and caps, and what stands in for them when it is silent.
#include <algorithm>
#include <cmath>
#include <utility>

#include "agents/client/segment.h"
#include "agents/host/engine.h"
#include "coflow/wire/weir.pb.h"

namespace weir::agents {
namespace {

constexpr std::uint32_t kMarkBit = 1u << 31;
constexpr std::uint32_t kLowatMin = 16 * 1024;
constexpr std::uint32_t kLowatMax = 1024 * 1024;
constexpr Nanoseconds kTtlMin = 100 * kMillisecond;
constexpr Nanoseconds kTtlMax = 60 * kSecond;
constexpr Nanoseconds kHeartbeatMin = 50 * kMillisecond;
constexpr BytesPerSecond kRateMax = 1e12;

/// Level 0 goes first. AF4x, AF3x, AF2x, AF1x, then CS1 ("lower effort"); docs/agent.md has the table.
constexpr std::uint32_t kDscpOfLevel[AgentEngine::kLevels] = {34, 36, 26, 28, 18, 20, 10, 8};
/// As linux/pkt_sched.h names them: interactive, interactive bulk, best effort, bulk. In this order pfifo_fast serves
/// them, and each may be set without privileges.
constexpr std::uint32_t kPriorityOfLevel[AgentEngine::kLevels] = {6, 6, 4, 4, 0, 0, 2, 2};

std::uint32_t MarksOfLevel(std::uint32_t level) {
  return kMarkBit | kPriorityOfLevel[level] << 8 | kDscpOfLevel[level] << 2;
}

Nanoseconds ClampTtl(std::uint32_t ttl_ms) {
  return std::clamp(static_cast<Nanoseconds>(ttl_ms) * kMillisecond, kTtlMin, kTtlMax);
}

}  // namespace

void AgentEngine::OnCoordinatorMessage(Nanoseconds now, std::string_view bytes) {
  wire::CoordinatorMessage message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      message.kind_case() == wire::CoordinatorMessage::KIND_NOT_SET) {
    ++counters_.garbage;
    return Disconnect("it sent what is no message");
  }
  switch (message.kind_case()) {
    case wire::CoordinatorMessage::kWelcome:
      OnWelcome(now, message.welcome());
      break;
    case wire::CoordinatorMessage::kSchedule:
      OnSchedule(now, message.schedule());
      break;
    case wire::CoordinatorMessage::kPong:
      if (welcomed_) Heard(now);
      break;
    case wire::CoordinatorMessage::kRefuse:
      OnRefuse(message.refuse().reason());
      break;
    case wire::CoordinatorMessage::KIND_NOT_SET:
      break;
  }
}

void AgentEngine::Disconnect(std::string reason) {
  actions_.disconnect = true;
  actions_.disconnect_reason = std::move(reason);
}

/// Before the welcome it is we who are refused. Afterwards it is one thing that we said, and the rest goes on; a
/// coordinator that wants no more of us closes the connection itself.
void AgentEngine::OnRefuse(std::string reason) {
  ++counters_.refusals;
  if (!welcomed_) return Disconnect("it refused us: " + reason);
  if (!std::exchange(refusal_told_, true)) actions_.refusal = std::move(reason);
}

void AgentEngine::OnWelcome(Nanoseconds now, const wire::Welcome& welcome) {
  if (welcome.epoch() < epoch_) {
    ++counters_.stale;
    return Disconnect("its epoch is older than one obeyed before");
  }
  if (!connected_ || welcomed_) {
    ++counters_.garbage;
    return Disconnect("it sent a welcome out of turn");
  }
  epoch_ = welcome.epoch();
  sequence_ = 0;  // Counts within one connection.
  if (welcome.ttl_ms() > 0) ttl_ = ClampTtl(welcome.ttl_ms());
  if (welcome.heartbeat_ms() > 0) {
    heartbeat_every_ = std::max(kHeartbeatMin, static_cast<Nanoseconds>(welcome.heartbeat_ms()) * kMillisecond);
  }
  welcomed_ = true;
  host_unknown_ = welcome.host_unknown();
  lost_at_ = 0;
  heartbeat_at_ = now;
  Heard(now);
  Announce(now);
}

void AgentEngine::OnSchedule(Nanoseconds now, const wire::Schedule& schedule) {
  if (!welcomed_) {
    ++counters_.garbage;
    return Disconnect("it sent a schedule before its welcome");
  }
  if (schedule.epoch() != epoch_ || schedule.sequence() <= sequence_) {
    ++counters_.stale;
    return;
  }
  sequence_ = schedule.sequence();
  if (schedule.ttl_ms() > 0) ttl_ = ClampTtl(schedule.ttl_ms());
  if (schedule.full()) {
    for (auto& [id, lane] : lanes_) lane.directed = false;
  }
  wire::AgentMessage answer;
  wire::Applied* applied = answer.mutable_applied();
  applied->set_epoch(epoch_);
  applied->set_sequence(sequence_);
  for (const wire::Directive& directive : schedule.directives()) {
    std::string reason = ApplyDirective(directive);
    const auto lane = lanes_.find(LaneId(directive.lane()));
    if (reason.empty()) {
      ++counters_.directives;
      if (!schedule.full()) ApplyLane(now, lane->second);
      continue;
    }
    ++counters_.directives_refused;
    wire::RefusedDirective* refused = applied->add_refused();
    refused->set_lane(directive.lane());
    refused->set_reason(std::move(reason));
  }
  if (schedule.full()) {
    for (auto& [id, lane] : lanes_) {
      if (!lane.directed) ClearDirective(now, lane);
    }
    ApplyAll(now);
  }
  Heard(now);
  Send(answer);
}

/// Stores one directive in its lane. Returns why not, or "".
std::string AgentEngine::ApplyDirective(const wire::Directive& directive) {
  const auto found = lanes_.find(LaneId(directive.lane()));
  if (found == lanes_.end()) return "no such lane";
  if (!std::isfinite(directive.rate()) || directive.rate() < 0 || directive.rate() > kRateMax) {
    return "rate must be between 0 and 1e12 bytes/s";
  }
  if (directive.level() >= kLevels) return "level must be 0 to 7";
  if (directive.gate() != wire::GATE_GO && directive.gate() != wire::GATE_HOLD) return "unknown gate";
  Lane& lane = found->second;
  lane.directed = true;
  lane.unmanaged = directive.unmanaged();
  lane.hold = directive.gate() == wire::GATE_HOLD;
  lane.rate = directive.rate();
  lane.level = directive.level();
  lane.progress = directive.progress();
  if (options_.marks && !lane.marked && !lane.unmanaged) {
    lane.marked = true;
    lane.marks = MarksOfLevel(lane.level);
  }
  return "";
}

void AgentEngine::ClearDirective(Nanoseconds, Lane& lane) {
  lane.directed = lane.hold = lane.progress = lane.unmanaged = false;
  lane.rate = 0;
  lane.level = 0;
}

void AgentEngine::Heard(Nanoseconds now) {
  heard_at_ = now;
  UpdateFallback(now);
}

void AgentEngine::UpdateFallback(Nanoseconds now) {
  if (lost_at_ != 0 && now >= HoldsUntil()) {
    lost_at_ = 0;
    for (auto& [id, lane] : lanes_) lane.hold = false;
    ApplyAll(now);
  }
  const bool fallback = heard_at_ == 0 || now >= ValidUntil();
  if (fallback == in_fallback_) return;
  in_fallback_ = fallback;
  if (fallback) ++counters_.fallbacks;
  ApplyAll(now);
}

void AgentEngine::OnConnected(Nanoseconds) {
  connected_ = true;
  welcomed_ = false;
  refusal_told_ = false;
  wire::AgentMessage message;
  wire::Hello* hello = message.mutable_hello();
  hello->set_protocol_version(1);
  hello->set_host(options_.host);
  hello->set_instance(options_.instance);
  for (const std::string& address : options_.addresses) hello->add_addresses(address);
  hello->set_version(WEIR_VERSION);
  Send(message);
}

/// What the coordinator said stays in force until its time to live is over, but for holds: nobody is left to end them,
/// so they last only long enough to bridge a restart.
void AgentEngine::OnDisconnected(Nanoseconds now) {
  if (connected_) lost_at_ = now;
  connected_ = false;
  welcomed_ = false;
}

void AgentEngine::ApplyLane(Nanoseconds now, Lane& lane) {
  const LaneControl wanted = Wanted(now, lane);
  if (wanted.SameAs(lane.written)) return;
  lane.written = wanted;
  actions_.writes.push_back({lane.ref, wanted, true});
  UpdateHeld(now, lane);
}

void AgentEngine::ApplyAll(Nanoseconds now) {
  for (auto& [id, lane] : lanes_) ApplyLane(now, lane);
}

void AgentEngine::RenewHold(Nanoseconds now, Lane& lane) {
  if (!lane.written.hold) return;
  lane.written.hold_until = Wanted(now, lane).hold_until;
  actions_.writes.push_back({lane.ref, lane.written, false});
}

LaneControl AgentEngine::Wanted(Nanoseconds now, const Lane& lane) const {
  LaneControl control;
  control.marks = lane.marks;
  if (in_fallback_) {
    if (options_.local_policy == LocalPolicy::kNone) return control;
    const JobInfo& job = processes_.at(lane.ref.process).info.job;
    const std::string& holder = local_fifo_.holder();
    control.hold = !holder.empty() && holder != job.tenant + '/' + job.name;
    control.hold_until = now + client::kHoldMax_ns;
    return control;
  }
  if (!lane.directed || lane.unmanaged) return control;
  if (lane.hold && processes_.at(lane.ref.process).info.adopted) {
    // From outside nothing can be held, only slowed down to what it can live with should we vanish.
    control.pacing_rate = static_cast<std::uint64_t>(kRateFloor);
    return control;
  }
  control.hold = lane.hold && now < HoldsUntil();
  control.hold_until = std::min(now + client::kHoldMax_ns, HoldsUntil());
  if (lane.rate > 0) {
    const double share = std::max(lane.rate / lane.sockets_peak, kRateFloor);
    control.pacing_rate = static_cast<std::uint64_t>(share);
    const double window = share * ToSeconds(options_.lowat_window);
    control.notsent_lowat = static_cast<std::uint32_t>(std::clamp(window, double{kLowatMin}, double{kLowatMax}));
  }
  return control;
}

}  // namespace weir::agents
