// Decisions, and who must be told.
#include <algorithm>
#include <cmath>

#include "coflow/directive.h"
#include "coflow/wire/weir.pb.h"
#include "scheduler/coordinator/engine.h"

namespace weir::scheduler {
namespace {

/// An agent that has just said hello reports its lanes in the next messages: a full schedule without them would open
/// gates for a moment, so it gets none before it has lanes.
bool HasAnythingToHear(const AgentRecord& agent) {
  return agent.greeted && !agent.lanes.empty();
}

bool Tightens(const LaneDecision& before, const LaneDecision& after) {
  if (after.hold != before.hold) return after.hold;
  if (after.rate == 0) return false;
  return before.rate == 0 || after.rate < before.rate;
}

bool Differs(const LaneDecision& a, const LaneDecision& b, double rate_change) {
  if (a.hold != b.hold || a.level != b.level || a.progress != b.progress) return true;
  return std::abs(a.rate - b.rate) > rate_change * std::max(a.rate, b.rate);
}

bool MustTell(const LaneRecord& lane, double rate_change) {
  return !lane.told || (lane.slot != kNoSlot && Differs(lane.sent, lane.decided, rate_change));
}

}  // namespace

std::vector<Action> CoordinatorEngine::Step(Nanoseconds now) {
  ExpireAgents(now);
  if (dirty_ || now >= next_decision_) Decide(now);
  SendSchedules(now);
  PlanNextStep(now);
  return std::exchange(actions_, {});
}

void CoordinatorEngine::Decide(Nanoseconds now) {
  policy_->Decide(state_, now, decision_);
  ++counters_.decisions;
  Account(now, decision_);
  NoteGrants(now, decision_);
  for (std::size_t i = 0; i < lane_owners_.size(); ++i) lane_owners_[i].lane->decided = decision_.lanes[i];
  next_decision_ = decision_.next;
  last_decision_ = now;
  dirty_ = false;
}

void CoordinatorEngine::Account(Nanoseconds now, const Decision& decision) {
  job_on_link_.assign(jobs_.size(), false);
  for (std::size_t i = 0; i < state_.lanes.size(); ++i) {
    if (state_.lanes[i].active && decision.lanes[i].hold) job_on_link_[state_.lanes[i].job] = true;
  }
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].waiting) jobs_[j].held += now - last_decision_;
    jobs_[j].waiting = job_on_link_[j];
  }
}

void CoordinatorEngine::NoteGrants(Nanoseconds now, const Decision& decision) {
  const std::size_t links = state_.links.size();
  job_on_link_.assign(jobs_.size() * links, false);
  for (std::size_t i = 0; i < state_.lanes.size(); ++i) {
    const LaneState& lane = state_.lanes[i];
    if (!lane.active || decision.lanes[i].hold) continue;
    for (const LinkIndex link : lane.links) job_on_link_[lane.job * links + link] = true;
  }
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    bool turn = false;
    for (LinkIndex link = 0; link < links; ++link) {
      const bool granted = job_on_link_[j * links + link];
      if (granted == jobs_[j].granted[link]) continue;
      jobs_[j].granted[link] = granted;
      turn |= granted;
      grants_.push_back({now, state_.jobs[j].id, link, granted, state_.jobs[j].turn.level});
    }
    jobs_[j].turns += turn ? 1 : 0;
  }
  while (grants_.size() > kMaxGrantEvents) grants_.pop_front();
}

bool CoordinatorEngine::WantsFull(const AgentRecord& agent, Nanoseconds now) const {
  return HasAnythingToHear(agent) && (agent.wants_full || now - agent.last_full >= options_.refresh);
}

/// Everybody who loses something hears of it before anybody who gains: the other way round two would send at once.
void CoordinatorEngine::SendSchedules(Nanoseconds now) {
  std::vector<AgentRecord*> losing;
  std::vector<AgentRecord*> gaining;
  for (const auto& [connection, agent] : agents_) {
    bool told = WantsFull(*agent, now);
    bool tightens = false;
    for (const auto& [id, lane] : agent->lanes) {
      if (!MustTell(lane, options_.rate_change)) continue;
      told = true;
      tightens |= Tightens(lane.sent, lane.decided);
    }
    if (told) (tightens ? losing : gaining).push_back(agent.get());
  }
  for (AgentRecord* agent : losing) ScheduleFor(*agent, now);
  for (AgentRecord* agent : gaining) ScheduleFor(*agent, now);
}

void CoordinatorEngine::ScheduleFor(AgentRecord& agent, Nanoseconds now) {
  auto message = std::make_shared<wire::CoordinatorMessage>();
  wire::Schedule& schedule = *message->mutable_schedule();
  const bool full = WantsFull(agent, now);
  schedule.set_epoch(epoch_);
  schedule.set_sequence(++agent.sequence);
  schedule.set_full(full);
  schedule.set_ttl_ms(static_cast<std::uint32_t>(options_.ttl / kMillisecond));
  for (auto& [id, lane] : agent.lanes) {
    if (!full && !MustTell(lane, options_.rate_change)) continue;
    wire::Directive& directive = *schedule.add_directives();
    directive.set_lane(id.value);
    directive.set_unmanaged(lane.slot == kNoSlot);
    directive.set_gate(lane.decided.hold ? wire::GATE_HOLD : wire::GATE_GO);
    directive.set_rate(std::min(lane.decided.rate, kDirectiveRateMax));
    directive.set_level(lane.decided.level);
    directive.set_progress(lane.decided.progress);
    lane.sent = lane.decided;
    lane.told = true;
  }
  agent.last_sent = now;
  if (full) {
    agent.last_full = now;
    agent.wants_full = false;
  }
  ++counters_.schedules;
  counters_.directives += static_cast<std::uint64_t>(schedule.directives_size());
  Send(agent, std::move(message));
}

void CoordinatorEngine::PlanNextStep(Nanoseconds now) {
  next_step_ = next_decision_;
  const Nanoseconds lease = options_.heartbeat * options_.heartbeats_missed;
  for (const auto& [connection, agent] : agents_) {
    next_step_ = std::min(next_step_, agent->last_heard + lease);
    if (HasAnythingToHear(*agent)) next_step_ = std::min(next_step_, agent->last_full + options_.refresh);
  }
  next_step_ = std::max(next_step_, now);
}

}  // namespace weir::scheduler
