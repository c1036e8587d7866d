#include "agents/host/profile_learner.h"

#include <algorithm>
#include <cmath>

namespace weir::agents {
namespace {

constexpr std::size_t kCompared = 64;       // messages whose rhythm is compared for one candidate period
constexpr std::size_t kMatchesMin = 2;      // two sizes alike may be chance, three are a pattern
constexpr double kRhythmSlack = 0.5;        // a shorter period may be this much worse in rhythm (log2 units)
constexpr std::size_t kRecent = 16;         // iterations that the estimate of the time alone looks at
constexpr double kUncontendedShare = 0.85;  // its quantile of (period - held)

// Two messages are the same step of an iteration when their lane is the same and their sizes differ by 2 % at most:
// streams that are cut into frames (HTTP/2, zmq) vary by a few bytes.
bool SameStep(LaneId lane_a, Bytes a, LaneId lane_b, Bytes b) {
  if (lane_a != lane_b) return false;
  const Bytes difference = a > b ? a - b : b - a;
  return difference * 50 <= std::max(a, b);
}

double LogGap(Nanoseconds gap) {
  return std::log2(ToSeconds(gap) * 1e3 + 1.0);
}

}  // namespace

void ProfileLearner::OnHeld(Nanoseconds from, Nanoseconds to) {
  if (to > from) held_since_message_ += to - from;
}

void ProfileLearner::OnDrained(Nanoseconds time) {
  if (!in_flight_) return;
  in_flight_ = false;
  last_drained_ = std::max(time, last_message_);
  if (period_ > 0 && position_ == period_) profile_.iteration_started = last_drained_;
}

void ProfileLearner::OnMessage(Nanoseconds time, LaneId lane, Bytes bytes) {
  const Nanoseconds gap = in_flight_ || messages_.empty() ? 0 : std::max<Nanoseconds>(0, time - last_drained_);
  messages_.push_back({lane, bytes, time, gap, held_since_message_});
  held_since_message_ = 0;
  if (messages_.size() > kHistory) messages_.pop_front();
  last_message_ = time;
  in_flight_ = true;

  if (period_ > 0 && !Matches(0, period_)) Unlock();
  if (period_ == 0) {
    if (const std::size_t found = FindPeriod(); found > 0) Lock(found);
    return;
  }
  if (++position_ > period_) OnBorder();
  FillBytesLeft();
}

// Whether the message `back` places before the newest repeats the one `lag` places before it.
bool ProfileLearner::Matches(std::size_t back, std::size_t lag) const {
  if (back + lag >= messages_.size()) return false;
  const Message& a = messages_[messages_.size() - 1 - back];
  const Message& b = messages_[messages_.size() - 1 - back - lag];
  return SameStep(a.lane, a.bytes, b.lane, b.bytes);
}

// Mean distance, in log2 of milliseconds, between think times one `lag` apart.
double ProfileLearner::RhythmError(std::size_t lag) const {
  const std::size_t count = std::min(messages_.size() - lag, std::max(kCompared, lag));
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = messages_.size() - 1 - i;
    sum += std::abs(LogGap(messages_[at].gap) - LogGap(messages_[at - lag].gap));
  }
  return sum / static_cast<double>(count);
}

// The shortest period of sizes whose think times repeat about as well as those of any other period; 0 if none yet.
// A candidate needs two whole repetitions.
std::size_t ProfileLearner::FindPeriod() const {
  std::vector<std::pair<std::size_t, double>> candidates;
  double best = 1e9;
  for (std::size_t lag = 1; lag <= kPeriodMax && 2 * lag <= messages_.size(); ++lag) {
    std::size_t matched = 0;
    const std::size_t needed = std::max(lag, kMatchesMin);
    while (matched < needed && Matches(matched, lag)) ++matched;
    if (matched < needed) continue;
    candidates.emplace_back(lag, RhythmError(lag));
    best = std::min(best, candidates.back().second);
  }
  for (const auto& [lag, error] : candidates) {
    if (error <= best + kRhythmSlack) return lag;
  }
  return 0;
}

void ProfileLearner::Lock(std::size_t period) {
  period_ = period;
  // The newest message stands `offset` places after the one with the longest think time before it.
  position_ = LongestGapOffset() + 1;
  cycles_matched_ = 2;
  FillTemplate();
  RebuildIterations();
  FillBytesLeft();
}

void ProfileLearner::Unlock() {
  period_ = 0;
  cycles_matched_ = 0;
  profile_.confidence *= 0.5;
}

// Adds the iteration that began `back + period_` and ended `back` messages before the newest.
void ProfileLearner::AppendIteration(std::size_t back) {
  if (back + period_ >= messages_.size()) return;
  const std::size_t end = messages_.size() - 1 - back;
  Iteration iteration{messages_[end].time - messages_[end - period_].time, 0};
  for (std::size_t i = end - period_ + 1; i <= end; ++i) iteration.held += messages_[i].held;
  iterations_.push_back(iteration);
  if (iterations_.size() > kIterations) iterations_.pop_front();
}

// Reads what the history already tells, so that a pattern is of use the moment it is found.
void ProfileLearner::RebuildIterations() {
  iterations_.clear();
  const std::size_t border = position_ - 1;  // places before the newest
  for (std::size_t cycle = cycles_matched_; cycle-- > 0;) AppendIteration(border + cycle * period_);
  if (border < messages_.size()) {
    const Message& first = messages_[messages_.size() - 1 - border];
    profile_.iteration_started = first.time - first.gap;
  }
  FillTimes();
}

void ProfileLearner::FillTimes() {
  if (iterations_.empty()) {
    profile_.confidence = 0;
    return;
  }
  profile_.period = iterations_.back().period;
  profile_.alone = EstimateAlone();
  const auto cycles = static_cast<double>(std::min<std::uint64_t>(cycles_matched_, 12));
  profile_.confidence = 1.0 - std::pow(0.5, cycles - 1.0);
}

// How many places before the newest message lies the step with the longest mean think time, 0..period-1.
std::size_t ProfileLearner::LongestGapOffset() const {
  std::size_t best = 0;
  double best_gap = -1;
  for (std::size_t offset = 0; offset < period_; ++offset) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t back = offset; back < messages_.size() && count < 4; back += period_, ++count) {
      sum += static_cast<double>(messages_[messages_.size() - 1 - back].gap);
    }
    if (count > 0 && sum / static_cast<double>(count) > best_gap) {
      best_gap = sum / static_cast<double>(count);
      best = offset;
    }
  }
  return best;
}

// The newest message is the first of the next iteration.
void ProfileLearner::OnBorder() {
  position_ = 1;
  ++cycles_matched_;
  ++profile_.iteration;
  // The sizes are certain from the first match on, the rhythm is not: look again while the pattern is young.
  if (cycles_matched_ <= 6 || cycles_matched_ % 16 == 0) {
    const std::size_t found = FindPeriod();
    if (found > 0 && (found != period_ || LongestGapOffset() != 0)) {
      Lock(found);
      return;
    }
  }
  AppendIteration(0);
  profile_.iteration_started = messages_.back().time - messages_.back().gap;
  FillTemplate();
  FillTimes();
}

void ProfileLearner::FillTemplate() {
  template_.assign(period_, {});
  for (std::size_t step = 0; step < period_; ++step) {
    // The newest message is step position_ - 1; this step lies (position_ - 1 - step) mod period_ places before it.
    const std::size_t first = (position_ - 1 + period_ - step) % period_;
    double gap = 0;
    std::size_t count = 0;
    for (std::size_t back = first; back < messages_.size() && count < 4; back += period_, ++count) {
      const Message& message = messages_[messages_.size() - 1 - back];
      if (count == 0) template_[step] = message;
      gap += static_cast<double>(message.gap);
    }
    if (count > 0) template_[step].gap = static_cast<Nanoseconds>(gap / static_cast<double>(count));
  }
  profile_.bytes_total = 0;
  profile_.lanes.clear();
  for (const Message& step : template_) {
    profile_.bytes_total += step.bytes;
    const auto lane = std::find_if(profile_.lanes.begin(), profile_.lanes.end(),
                                   [&step](const Profile::Lane& l) { return l.lane == step.lane; });
    if (lane != profile_.lanes.end()) {
      lane->bytes += step.bytes;
    } else {
      profile_.lanes.push_back({step.lane, step.bytes, 0});
    }
  }
}

void ProfileLearner::FillBytesLeft() {
  profile_.bytes_left = 0;
  for (Profile::Lane& lane : profile_.lanes) lane.bytes_left = 0;
  for (std::size_t step = position_; step < template_.size(); ++step) {
    profile_.bytes_left += template_[step].bytes;
    for (Profile::Lane& lane : profile_.lanes) {
      if (lane.lane == template_[step].lane) lane.bytes_left += template_[step].bytes;
    }
  }
}

// Time without contention. A period is never shorter than it, so the shortest seen is a ceiling; period less held time
// is exact where the hold was exposed and too short where compute covered it, so a high quantile of that is taken.
Nanoseconds ProfileLearner::EstimateAlone() const {
  Nanoseconds shortest = iterations_.front().period;
  for (const Iteration& iteration : iterations_) shortest = std::min(shortest, iteration.period);
  std::vector<Nanoseconds> unheld;
  const std::size_t count = std::min(kRecent, iterations_.size());
  for (std::size_t i = iterations_.size() - count; i < iterations_.size(); ++i) {
    unheld.push_back(iterations_[i].period - std::min(iterations_[i].held, iterations_[i].period));
  }
  std::sort(unheld.begin(), unheld.end());
  const auto at = static_cast<std::size_t>(kUncontendedShare * static_cast<double>(unheld.size() - 1) + 0.5);
  return std::min(shortest, unheld[at]);
}

Nanoseconds ProfileLearner::ExpectedGap() const {
  if (period_ == 0 || template_.size() != period_) return 0;
  return template_[position_ % period_].gap;
}

}  // namespace weir::agents
