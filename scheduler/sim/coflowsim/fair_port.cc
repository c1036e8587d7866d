#include "scheduler/sim/coflowsim/fair_port.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace weir::scheduler::coflowsim {

/// Each share adds to the sum with two roundings, of the product and of the sum; the factor leaves room for those of
/// whoever compares.
double FairPort::Slack(double sum) const {
  constexpr double kRoundings = 16 * std::numeric_limits<double>::epsilon();
  return sum * static_cast<double>(shares_.size()) * kRoundings;
}

void FairPort::Update(Step now) {
  sum_ = SumAt(now);
  since_ = now;
  const double share = kStepBytes / std::max(1U, flows_);
  if (share != share_) {
    share_ = share;
    shares_.back() = {share, now};
    shares_.push_back({0, kNoStep});
    while (!least_.empty() && shares_[least_.back()].bytes >= share) {
      least_.pop_back();
    }
    least_.push_back(current());
  }
  next_ = kNoStep;
  if (!waiting_.empty()) {
    const double steps = std::ceil((waiting_.front().at - sum_ - Slack(sum_)) / share_);
    next_ = now + static_cast<Step>(std::clamp(steps, 1.0, static_cast<double>(kNoStep - 1 - now)));
  }
}

double FairPort::LeastSince(const Share* share) const {
  return shares_[*std::lower_bound(least_.begin(), least_.end(), share - shares_.data())].bytes;
}

void FairPort::Wait(double bytes, Step now, Waiting flow) {
  waiting_.push_back({SumAt(now) + bytes, flow});
  std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
}

/// Twice the slack, so that rounding in Update does not leave behind the one for whom it is time.
void FairPort::TakeDue(Step now, std::vector<Waiting>* due) {
  const double sum = SumAt(now);
  const double limit = sum + 2 * Slack(sum);
  while (!waiting_.empty() && waiting_.front().at <= limit) {
    due->push_back(waiting_.front().flow);
    std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    waiting_.pop_back();
  }
}

void FairPort::Forget(Step now) {
  sum_ = 0;
  since_ = now;
  shares_.assign({{share_, now}, {0, kNoStep}});
  least_.assign({0});
}

}  // namespace weir::scheduler::coflowsim
