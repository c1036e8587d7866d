#include "scheduler/sim/decisions.h"

#include <algorithm>
#include <cmath>

namespace weir::scheduler {

std::int64_t TimeAfter(std::int64_t now, double ticks) {
  constexpr double kTicksMax = 1e18;
  return ticks < kTicksMax ? now + std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(ticks))) : kNever;
}

std::int64_t Decisions::NextChange(const ActiveTable& table, std::int64_t now, Motion& motion) {
  if (options_.delay > 0) {
    change_due_ = next_tick_;
    return change_due_;
  }
  // On the arrival grid, so that flow ends stay on it.
  const std::int64_t change = order_.NextChange(table, now, motion);
  const std::int64_t step = std::max<std::int64_t>(1, options_.arrival_step);
  change_due_ = change > kNever - step ? kNever : (change + step - 1) / step * step;
  return change_due_;
}

void Decisions::Ended(const ActiveTable& table, std::uint32_t slot) {
  order_.Ended(table, slot);
  std::erase(placed_, slot);
  std::erase(pending_, slot);
}

bool Decisions::Due(std::int64_t now, bool coflows_changed, bool flow_ended) const {
  if (options_.delay > 0) {
    return next_tick_ == kNever || now >= next_tick_;
  }
  return (coflows_changed && (newcomers_ || order_.refresh() != Refresh::kArrivals)) ||
         (flow_ended && order_.refresh() == Refresh::kFlowEnds) || now >= change_due_;
}

bool Decisions::Decide(const ActiveTable& table, std::int64_t now, bool coflows_changed, bool flow_ended) {
  bool decided = false;
  if (options_.delay > 0) {
    decided = DecideAtTicks(table, now);
  } else if (Due(now, coflows_changed, flow_ended)) {
    Sort(table, now, &placed_);
    decided = true;
  }
  newcomers_ = false;
  change_due_ = kNever;
  return decided;
}

bool Decisions::DecideAtTicks(const ActiveTable& table, std::int64_t now) {
  if (table.live().empty()) {
    pending_.clear();
    next_tick_ = kNever;
    return false;
  }
  if (newcomers_) {
    for (const std::uint32_t slot : table.live()) {
      if (std::find(placed_.begin(), placed_.end(), slot) == placed_.end()) {
        placed_.insert(placed_.begin(), slot);
      }
    }
  }
  if (next_tick_ == kNever) {
    next_tick_ = (now + options_.delay - 1) / options_.delay * options_.delay;
  }
  if (now < next_tick_) {
    return false;
  }
  fresh_.clear();
  for (const std::uint32_t slot : placed_) {
    if (std::find(pending_.begin(), pending_.end(), slot) == pending_.end()) {
      fresh_.push_back(slot);
    }
  }
  placed_.assign(fresh_.begin(), fresh_.end());
  placed_.insert(placed_.end(), pending_.begin(), pending_.end());
  Sort(table, now, &pending_);
  next_tick_ += options_.delay;
  return true;
}

void Decisions::Sort(const ActiveTable& table, std::int64_t now, std::vector<std::uint32_t>* into) {
  if (!sorts_) {
    into->assign(table.live().begin(), table.live().end());
    return;
  }
  const std::int64_t begin = options_.clock_ns != nullptr ? options_.clock_ns() : 0;
  order_.Sort(table, now, into);
  if (options_.clock_ns != nullptr) {
    times_.Add(options_.clock_ns() - begin);
  }
  ++count_;
}

void Decisions::Report(SimOutcome* outcome) const {
  outcome->decisions = count_;
  outcome->decision_ns = times_;
}

}  // namespace weir::scheduler
