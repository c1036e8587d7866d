// Who goes before whom: see TurnsPolicy.
#include <algorithm>
#include <limits>
#include <tuple>

#include "scheduler/turns/turns.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

bool EarlierThan(const JobState& a, const JobState& b) {
  return std::tuple(a.turn.arrival, a.id) < std::tuple(b.turn.arrival, b.id);
}

/// Order inside a level: who computes on meanwhile lets those pass who wait for their bytes; else first come, first
/// served.
bool BeforeAmongEquals(const JobState& a, const JobState& b) {
  if (a.turn.overlapped != b.turn.overlapped) return b.turn.overlapped;
  return EarlierThan(a, b);
}

/// True if `a` is to go before `b`, both the first of their levels.
bool MoreUrgent(const JobState& a, const JobState& b) {
  if (a.turn.key != b.turn.key) return a.turn.key > b.turn.key;
  if (a.turn.level != b.turn.level) return a.turn.level < b.turn.level;
  return EarlierThan(a, b);
}

/// Smaller goes first whatever the levels and keys: lost turns, then class, then old age.
int Rank(const JobTurn& turn, JobClass job_class, Nanoseconds now) {
  return (turn.stalled ? 8 : 0) + 2 * static_cast<int>(job_class) + (turn.aged_until > now ? 0 : 1);
}

}  // namespace

void TurnsPolicy::Order(const FabricState& state, Nanoseconds now) {
  order_.clear();
  FindBlocks(state, now);
  while (order_.size() < entries_.size()) {
    std::uint32_t next = Select(state, now, false);
    // Two holders of different links may stand in each other's way; then the order without holders decides.
    if (next == kNone) next = Select(state, now, true);
    Place(next);
  }
}

/// A holder stands before a job that wants its link, unless that job may preempt it.
void TurnsPolicy::FindBlocks(const FabricState& state, Nanoseconds now) {
  blocks_.clear();
  stamp_.assign(entries_.size(), kNone);
  for (std::uint32_t e = 0; e < entries_.size(); ++e) {
    const JobState& job = state.jobs[entries_[e].job];
    for (const std::uint32_t i : LanesOf(entries_[e].job)) {
      if (!state.lanes[i].active) continue;
      for (const LinkIndex link : state.lanes[i].links) {
        const std::uint32_t holder = holder_of_link_[link];
        if (holder == kNone || holder == e || stamp_[holder] == e) continue;
        stamp_[holder] = e;
        if (Beats(job, state.jobs[entries_[holder].job], now)) continue;
        blocks_.push_back({.holder = holder, .entry = e});
        ++entries_[e].blockers;
      }
    }
  }
}

/// May the challenger take a link from its holder before the holder's coflow ends?
bool TurnsPolicy::Beats(const JobState& challenger, const JobState& holder, Nanoseconds now) const {
  const JobTurn& a = challenger.turn;
  const JobTurn& b = holder.turn;
  const int rank_a = Rank(a, challenger.job_class, now);
  const int rank_b = Rank(b, holder.job_class, now);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (a.level >= 0 && b.level >= 0 && a.level != b.level) {
    return a.level < b.level && b.size - a.size >= options_.like && a.key >= b.key + options_.lead;
  }
  // Among equals only a coflow that is under way already and older takes precedence: everywhere the same one goes
  // first, so that two jobs never hold a link each and wait for the other's.
  if (a.overlapped != b.overlapped) return b.overlapped;
  return a.started && EarlierThan(challenger, holder);
}

/// The first of the jobs not placed yet; kNone if holders block them all.
std::uint32_t TurnsPolicy::Select(const FabricState& state, Nanoseconds now, bool blocked_too) const {
  std::array<std::uint32_t, kLevels> heads;
  heads.fill(kNone);
  std::uint32_t unknown = kNone;  // First of the jobs without a level.
  int best_rank = std::numeric_limits<int>::max();
  for (std::uint32_t e = 0; e < entries_.size(); ++e) {
    if (entries_[e].placed || (entries_[e].blockers > 0 && !blocked_too)) continue;
    const JobState& job = state.jobs[entries_[e].job];
    const int rank = Rank(job.turn, job.job_class, now);
    if (rank > best_rank) continue;
    if (rank < best_rank) {
      best_rank = rank;
      heads.fill(kNone);
      unknown = kNone;
    }
    std::uint32_t& head = job.turn.level < 0 ? unknown : heads[static_cast<std::size_t>(job.turn.level)];
    if (head == kNone || BeforeAmongEquals(job, state.jobs[entries_[head].job])) head = e;
  }
  std::uint32_t best = kNone;
  for (const std::uint32_t head : heads) {
    if (head == kNone) continue;
    if (best == kNone || MoreUrgent(state.jobs[entries_[head].job], state.jobs[entries_[best].job])) best = head;
  }
  if (best == kNone) return unknown;
  if (unknown == kNone) return best;
  return EarlierThan(state.jobs[entries_[unknown].job], state.jobs[entries_[best].job]) ? unknown : best;
}

void TurnsPolicy::Place(std::uint32_t entry) {
  entries_[entry].placed = true;
  order_.push_back(entries_[entry].job);
  for (const Block& block : blocks_) {
    if (block.holder == entry) --entries_[block.entry].blockers;
  }
}

}  // namespace weir::scheduler
