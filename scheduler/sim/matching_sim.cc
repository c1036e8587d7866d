#include "scheduler/sim/matching_sim.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "scheduler/compress/levels.h"
#include "scheduler/rate/matcher.h"
#include "scheduler/sim/admission.h"
#include "scheduler/sim/arrivals.h"
#include "scheduler/sim/decisions.h"
#include "scheduler/sim/observer.h"

namespace weir::scheduler {
namespace {

constexpr std::uint32_t kNoGroup = UINT32_MAX;

class MatchingSim final : private Motion {
 public:
  MatchingSim(const traces::Trace& trace, Order* order, const SimOptions& options)
      : trace_(trace),
        order_(*order),
        options_(options),
        arrivals_(trace, options),
        ports_(trace.ports),
        fabric_(Fabric::BigSwitch(trace.ports)),
        table_(2 * trace.ports),
        matcher_(trace.ports),
        admission_(trace, *order, fabric_, options),
        decisions_(order, options),
        watching_(options.observer != nullptr && options.observer->sees_links()) {
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
      decisions_.Decide(table_, now_, ended || arrived, flow_ended_);
      Place(ended || arrived);
      matcher_.Rematch(order_.needs_sizes() ? table_.load : table_.flows_left, slot_of_group_);
    }
    outcome_.makespan = now_ - (first == kNever ? 0 : first);
    decisions_.Report(&outcome_);
    return std::move(outcome_);
  }

 private:
  std::int64_t NextEvent() {
    std::int64_t next = arrivals_.Next();
    if (!table_.live().empty()) {
      const std::int64_t end = matcher_.NextEnd();
      next = std::min(next, end == kNever ? kNever : now_ + end);
      next = std::min(next, decisions_.NextChange(table_, now_, *this));
    }
    return next;
  }

  double Rate(std::uint32_t slot) const {
    return static_cast<double>(matcher_.Rate(main_group_[slot]) +
                               (pilot_group_[slot] == kNoGroup ? 0 : matcher_.Rate(pilot_group_[slot])));
  }

  std::int64_t WhenSent(std::uint32_t slot, double bytes) override {
    const double rate = Rate(slot);
    return rate > 0 ? TimeAfter(now_, (bytes - static_cast<double>(table_.bytes_sent[slot])) / rate) : kNever;
  }

  /// Whether a flow that is served now is the one that has sent most is not known. If it is not, that one stands still
  /// while others catch up, and just below `bytes` it would be looked at every tick; hence late by a share.
  std::int64_t WhenOneSent(std::uint32_t slot, double bytes) override {
    constexpr double kLateShare = 1e-3;
    const double ticks = std::max(bytes - static_cast<double>(table_.largest_seen[slot]), kLateShare * bytes);
    return Rate(slot) > 0 ? TimeAfter(now_, ticks) : kNever;
  }

  void MoveTo(std::int64_t next) {
    const std::int64_t interval = next - now_;
    now_ = next;
    if (interval == 0) {
      return;
    }
    if (watching_) {
      ShowInterval(next - interval, next);
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

  void ShowInterval(std::int64_t begin, std::int64_t end) {
    uses_.clear();
    matcher_.VisitPairs([this](std::uint32_t group, std::uint32_t source, std::uint32_t destination) {
      const std::size_t coflow = coflow_of_slot_[slot_of_group_[group]];
      uses_.push_back({coflow, source, 1.0});
      uses_.push_back({coflow, ports_ + destination, 1.0});
    });
    options_.observer->OnInterval(begin, end, uses_);
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
      ++table_.flows_ended[slot];
      table_.ended_squares[slot] += static_cast<double>(flow.bytes) * static_cast<double>(flow.bytes);
      if (flow.group == pilot_group_[slot]) {
        BookPilot(slot, flow);
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

  void BookPilot(std::uint32_t slot, const EndedFlow& flow) {
    --table_.pilots_left[slot];
    table_.pilot_squares[slot] += static_cast<double>(flow.bytes) * static_cast<double>(flow.bytes);
    for (const std::uint32_t link : {flow.source, ports_ + flow.destination}) {
      table_.PilotBytes(slot)[link] += flow.bytes;
      ++table_.PilotFlows(slot)[link];
    }
  }

  void EndCoflow(std::uint32_t slot) {
    const std::size_t coflow = coflow_of_slot_[slot];
    outcome_.coflows[coflow].end = now_;
    outcome_.coflows[coflow].admitted = order_.Admitted(slot);
    matcher_.RemoveGroup(main_group_[slot]);
    if (pilot_group_[slot] != kNoGroup) {
      matcher_.RemoveGroup(pilot_group_[slot]);
    }
    decisions_.Ended(table_, slot);
    table_.FreeSlot(slot);
    arrivals_.OnEnd(coflow, now_);
    if (options_.observer != nullptr) {
      options_.observer->OnEnd(coflow, now_);
    }
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
    const std::uint32_t slot = admission_.Admit(coflow, now_, &table_);
    for (auto* column : {&main_group_, &pilot_group_}) {
      column->resize(table_.id.size(), kNoGroup);
    }
    coflow_of_slot_.resize(table_.id.size());
    flows_left_.resize(table_.id.size());
    coflow_of_slot_[slot] = index;
    flows_left_[slot] = table_.width[slot];
    pilot_group_[slot] = admission_.pilots().empty() ? kNoGroup : AddGroup(slot, admission_.pilots());
    main_group_[slot] = AddGroup(slot, admission_.rest());
    decisions_.Started();
    outcome_.coflows[index] = {.id = coflow.id,
                               .arrival = now_,
                               .end = 0,
                               .isolation = static_cast<std::int64_t>(table_.isolation[slot]),
                               .deadline = coflow.deadline == 0 ? 0 : table_.deadline[slot] - now_,
                               .admitted = false};
    if (options_.observer != nullptr) {
      options_.observer->OnStart(index, now_);
    }
  }

  std::uint32_t AddGroup(std::uint32_t slot, std::span<const MatchFlow> flows) {
    const std::uint32_t group = matcher_.AddGroup(flows);
    if (group >= slot_of_group_.size()) {
      slot_of_group_.resize(group + 1);
    }
    slot_of_group_[group] = slot;
    return group;
  }

  /// Hands the order to the matcher if it differs from the one in force.
  void Place(bool coflows_changed) {
    served_.assign(decisions_.placed().begin(), decisions_.placed().end());
    if (options_.levels > 0) {
      levels_.Assign(table_, options_.levels, &served_);
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
  Fabric fabric_;
  ActiveTable table_;
  Matcher matcher_;
  Admission admission_;
  Decisions decisions_;
  LevelMap levels_;
  bool watching_;
  SimOutcome outcome_;
  std::int64_t now_ = 0;
  bool flow_ended_ = false;
  std::vector<LinkUse> uses_;  // scratch of ShowInterval()

  // By slot.
  std::vector<std::uint32_t> main_group_, pilot_group_;
  std::vector<std::size_t> coflow_of_slot_;
  std::vector<std::int64_t> flows_left_;
  std::vector<std::uint32_t> slot_of_group_;
  std::vector<std::uint32_t> served_, groups_, groups_in_force_, finished_;
};

}  // namespace

SimOutcome RunMatching(const traces::Trace& trace, Order* order, const SimOptions& options) {
  return MatchingSim(trace, order, options).Run();
}

}  // namespace weir::scheduler
