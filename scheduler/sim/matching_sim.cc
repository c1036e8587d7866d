#include "scheduler/sim/matching_sim.h"

#include <algorithm>
#include <limits>
#include <random>

#include "scheduler/compress/levels.h"
#include "scheduler/rate/matcher.h"
#include "scheduler/sim/arrivals.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNoGroup = UINT32_MAX;

class MatchingSim {
 public:
  MatchingSim(const traces::Trace& trace, Order* order, const SimOptions& options)
      : trace_(trace),
        order_(*order),
        options_(options),
        arrivals_(trace, options),
        ports_(trace.ports),
        table_(2 * trace.ports),
        matcher_(trace.ports),
        merger_(trace.ports),
        random_(options.seed) {
    outcome_.coflows.resize(trace.coflows.size());
  }

  SimOutcome Run() {
    std::int64_t first = kNever;
    while (true) {
      const std::int64_t next = NextEvent();
      if (next == kNever) {
        break;
      }
      first = std::min(first, next);
      MoveTo(next);
      ++outcome_.events;
      const bool ended = EndCoflows();
      const bool arrived = StartCoflows();
      Decide(ended || arrived);
      matcher_.Rematch(order_.needs_sizes() ? table_.load : table_.flows_left, slot_of_group_);
    }
    outcome_.makespan = now_ - (first == kNever ? 0 : first);
    return std::move(outcome_);
  }

 private:
  std::int64_t NextEvent() {
    std::int64_t next = arrivals_.Next();
    if (!table_.live().empty()) {
      const std::int64_t end = matcher_.NextEnd();
      next = std::min(next, end == kNever ? kNever : now_ + end);
      change_due_ = options_.delay > 0 ? next_tick_ : NextOrderChange();
      next = std::min(next, change_due_);
    }
    return next;
  }

  /// The order's own reasons to be asked again, at once when decisions are not delayed; on the arrival grid, so that
  /// flow ends stay on it.
  std::int64_t NextOrderChange() {
    rate_.assign(table_.id.size(), 0);
    for (const std::uint32_t slot : table_.live()) {
      rate_[slot] =
          matcher_.Rate(main_group_[slot]) + (pilot_group_[slot] == kNoGroup ? 0 : matcher_.Rate(pilot_group_[slot]));
    }
    const std::int64_t change = order_.NextChange(table_, now_, rate_);
    const std::int64_t step = std::max<std::int64_t>(1, options_.arrival_step);
    return change > kNever - step ? kNever : (change + step - 1) / step * step;
  }

  void MoveTo(std::int64_t next) {
    const std::int64_t interval = next - now_;
    now_ = next;
    if (interval == 0) {
      return;
    }
    const bool observe = !order_.needs_sizes();
    std::int64_t moved_bytes = 0;
    matcher_.Advance(interval,
                     [&](std::uint32_t group, std::uint32_t source, std::uint32_t destination, std::int64_t sent) {
                       const std::uint32_t slot = slot_of_group_[group];
                       const std::size_t row = std::size_t{slot} * 2 * ports_;
                       table_.load[row + source] -= interval;
                       table_.load[row + ports_ + destination] -= interval;
                       table_.bytes_left[slot] -= interval;
                       moved_bytes += interval;
                       if (observe) {
                         table_.attained[row + source] += interval;
                         table_.attained[row + ports_ + destination] += interval;
                         table_.bytes_sent[slot] += interval;
                         table_.largest_seen[slot] = std::max(table_.largest_seen[slot], sent);
                       }
                     });
    outcome_.bytes_moved += static_cast<double>(moved_bytes);
  }

  /// Books the flows that ended; true if a coflow did.
  bool EndCoflows() {
    flow_ended_ = !matcher_.ended().empty();
    outcome_.rate_changes += 2 * matcher_.ended().size();
    finished_.clear();
    for (const EndedFlow& flow : matcher_.ended()) {
      const std::uint32_t slot = slot_of_group_[flow.group];
      const std::size_t row = std::size_t{slot} * 2 * ports_;
      for (const std::size_t link : {row + flow.source, row + ports_ + flow.destination}) {
        --table_.flows_left[link];
        ++table_.ended_flows[link];
        table_.ended_bytes[link] += flow.bytes;
      }
      table_.ended_squares[slot] += static_cast<double>(flow.bytes) * static_cast<double>(flow.bytes);
      if (flow.group == pilot_group_[slot]) {
        --table_.pilots_left[slot];
      }
      if (--flows_left_[slot] == 0) {
        finished_.push_back(slot);
      }
    }
    for (const std::uint32_t slot : finished_) {
      EndCoflow(slot);
    }
    matcher_.ForgetEnded();
    return !finished_.empty();
  }

  void EndCoflow(std::uint32_t slot) {
    const std::size_t coflow = coflow_of_slot_[slot];
    outcome_.coflows[coflow].end = now_;
    outcome_.coflows[coflow].admitted = order_.Admitted(slot);
    matcher_.RemoveGroup(main_group_[slot]);
    if (pilot_group_[slot] != kNoGroup) {
      matcher_.RemoveGroup(pilot_group_[slot]);
    }
    std::erase(placed_, slot);
    std::erase(pending_, slot);
    table_.FreeSlot(slot);
    arrivals_.OnEnd(coflow, now_);
  }

  bool StartCoflows() {
    bool any = false;
    while (arrivals_.Next() == now_) {
      StartCoflow(arrivals_.Pop());
      any = true;
    }
    outcome_.active_max = std::max<std::uint64_t>(outcome_.active_max, table_.live().size());
    return any;
  }

  void StartCoflow(std::size_t index) {
    const traces::TraceCoflow& coflow = trace_.coflows[index];
    merger_.Merge(coflow.flows, &flows_);
    const std::uint32_t slot = table_.AddSlot();
    for (auto* column : {&main_group_, &pilot_group_}) {
      column->resize(table_.id.size(), kNoGroup);
    }
    coflow_of_slot_.resize(table_.id.size());
    flows_left_.resize(table_.id.size());
    coflow_of_slot_[slot] = index;
    flows_left_[slot] = static_cast<std::int64_t>(flows_.size());
    FillRow(slot, coflow);
    main_group_[slot] = kNoGroup;
    pilot_group_[slot] = kNoGroup;
    SplitPilots(slot);
    main_group_[slot] = AddGroup(slot, flows_);
    newcomers_ = true;
    const std::int64_t deadline = coflow.deadline == 0 ? 0 : table_.deadline[slot] - now_;
    outcome_.coflows[index] = {.id = coflow.id,
                               .arrival = now_,
                               .end = 0,
                               .isolation = static_cast<std::int64_t>(table_.isolation[slot]),
                               .deadline = deadline,
                               .admitted = false};
  }

  void FillRow(std::uint32_t slot, const traces::TraceCoflow& coflow) {
    table_.id[slot] = coflow.id;
    table_.arrival[slot] = now_;
    table_.deadline[slot] = coflow.deadline == 0 ? kNever : now_ + TicksOf(coflow.deadline, options_.scale);
    table_.weight[slot] = coflow.weight;
    table_.width[slot] = static_cast<std::int64_t>(flows_.size());
    table_.narrow_side[slot] = std::min(coflow.mappers, coflow.reducers);
    table_.wide_side[slot] = std::max(coflow.mappers, coflow.reducers);
    const std::size_t row = std::size_t{slot} * 2 * ports_;
    for (const MatchFlow& flow : flows_) {
      table_.bytes_left[slot] += flow.bytes;
      table_.longest_flow[slot] = std::max(table_.longest_flow[slot], flow.bytes);
      for (const std::size_t link : {row + flow.source, row + ports_ + flow.destination}) {
        table_.load[link] += flow.bytes;
        ++table_.flows_left[link];
      }
    }
    const auto load = table_.Load(slot);
    table_.isolation[slot] = static_cast<double>(*std::max_element(load.begin(), load.end()));
  }

  /// Moves a random choice of the new coflow's flows from flows_ to a group of their own.
  void SplitPilots(std::uint32_t slot) {
    const std::int64_t pilots = order_.PilotCount(table_.width[slot]);
    table_.pilots_left[slot] = pilots;
    if (pilots == 0) {
      return;
    }
    chosen_.clear();
    rest_.clear();
    std::size_t wanted = static_cast<std::size_t>(pilots);
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const bool pilot = random_() % (flows_.size() - i) < wanted;
      wanted -= pilot ? 1 : 0;
      (pilot ? chosen_ : rest_).push_back(flows_[i]);
    }
    pilot_group_[slot] = AddGroup(slot, chosen_);
    flows_.swap(rest_);
  }

  std::uint32_t AddGroup(std::uint32_t slot, std::span<const MatchFlow> flows) {
    const std::uint32_t group = matcher_.AddGroup(flows);
    if (group >= slot_of_group_.size()) {
      slot_of_group_.resize(group + 1);
    }
    slot_of_group_[group] = slot;
    return group;
  }

  void Decide(bool coflows_changed) {
    if (options_.delay > 0) {
      DecideAtTicks();
    } else if (coflows_changed || (flow_ended_ && order_.refresh() == Refresh::kFlowEnds) || now_ >= change_due_) {
      SortNow(&placed_);
    }
    newcomers_ = false;
    change_due_ = kNever;
    Place(coflows_changed);
  }

  /// What was seen at the last tick takes effect at this one; coflows that came in between go first until then.
  void DecideAtTicks() {
    if (table_.live().empty()) {
      pending_.clear();
      next_tick_ = kNever;
      return;
    }
    if (newcomers_) {
      for (const std::uint32_t slot : table_.live()) {
        if (std::find(placed_.begin(), placed_.end(), slot) == placed_.end()) {
          placed_.insert(placed_.begin(), slot);
        }
      }
    }
    if (next_tick_ == kNever) {
      next_tick_ = (now_ + options_.delay - 1) / options_.delay * options_.delay;
    }
    if (now_ < next_tick_) {
      return;
    }
    fresh_.clear();
    for (const std::uint32_t slot : placed_) {
      if (std::find(pending_.begin(), pending_.end(), slot) == pending_.end()) {
        fresh_.push_back(slot);
      }
    }
    placed_.assign(fresh_.begin(), fresh_.end());
    placed_.insert(placed_.end(), pending_.begin(), pending_.end());
    SortNow(&pending_);
    next_tick_ += options_.delay;
  }

  void SortNow(std::vector<std::uint32_t>* into) {
    const std::int64_t begin = options_.clock_ns != nullptr ? options_.clock_ns() : 0;
    order_.Sort(table_, now_, into);
    if (options_.clock_ns != nullptr) {
      const std::int64_t took = options_.clock_ns() - begin;
      outcome_.decision_ns_total += took;
      outcome_.decision_ns_max = std::max(outcome_.decision_ns_max, took);
    }
    ++outcome_.decisions;
  }

  /// Hands the order to the matcher if it differs from the one in force.
  void Place(bool coflows_changed) {
    served_ = placed_;
    if (options_.levels > 0) {
      ShareLastLevel(table_, options_.levels, &served_);
    }
    groups_.clear();
    for (const std::uint32_t slot : served_) {
      if (table_.pilots_left[slot] > 0 && order_.PilotsFirst(table_, slot)) {
        groups_.push_back(pilot_group_[slot]);
      }
    }
    for (const std::uint32_t slot : served_) {
      if (table_.pilots_left[slot] > 0 && !order_.PilotsFirst(table_, slot)) {
        groups_.push_back(pilot_group_[slot]);
      }
      groups_.push_back(main_group_[slot]);
    }
    if (coflows_changed || groups_ != groups_in_force_) {
      groups_in_force_ = groups_;
      matcher_.SetOrder(groups_);
    }
  }

  const traces::Trace& trace_;
  Order& order_;
  SimOptions options_;
  Arrivals arrivals_;
  std::uint32_t ports_;
  ActiveTable table_;
  Matcher matcher_;
  FlowMerger merger_;
  std::mt19937_64 random_;
  SimOutcome outcome_;
  std::int64_t now_ = 0;
  std::int64_t next_tick_ = kNever;
  std::int64_t change_due_ = kNever;
  bool flow_ended_ = false;
  bool newcomers_ = false;

  // By slot.
  std::vector<std::uint32_t> main_group_, pilot_group_;
  std::vector<std::size_t> coflow_of_slot_;
  std::vector<std::int64_t> flows_left_, rate_;
  std::vector<std::uint32_t> slot_of_group_;
  // Orders of slots: in force, seen at the last tick, and scratch.
  std::vector<std::uint32_t> placed_, pending_, fresh_, served_, groups_, groups_in_force_, finished_;
  std::vector<MatchFlow> flows_, chosen_, rest_;
};

}  // namespace

SimOutcome RunMatching(const traces::Trace& trace, Order* order, const SimOptions& options) {
  return MatchingSim(trace, order, options).Run();
}

}  // namespace weir::scheduler
