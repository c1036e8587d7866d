#include "agents/host/profile_learner.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir::agents {
namespace {

constexpr std::size_t kBordersCompared = 8;  // borders whose think times are compared for one candidate period
constexpr std::size_t kMatchesMin = 2;       // two sizes alike may be chance, three are a pattern
constexpr std::size_t kRecent = 16;          // iterations that estimates of times alone look at
constexpr double kUncontendedShare = 0.85;   // their quantile of (seen - held)
constexpr Nanoseconds kLongerBorder = 3;     // times the border of a period that a multiple's must have to be preferred
constexpr std::uint64_t kYoung = 64;         // messages until which period and border are looked at every iteration
constexpr std::uint64_t kLookAgain = 16;     // iterations between two looks after that
constexpr Nanoseconds kBurstGap = 5 * kMillisecond;      // think time that ends a burst
constexpr Nanoseconds kTellingHold = 15 * kMillisecond;  // a hold long enough to tell overlap from dependency
constexpr double kNewest = 0.25;                         // weight of the newest think time in their mean
constexpr double kConfident = 0.5;                       // profiles with less are used for nothing
constexpr double kOverlapShare = 0.35;  // of a hold, at most, by which an overlapped burst delays the next

// Two messages are the same step of an iteration when their lane is the same and their sizes differ by 2 % at most:
// streams that are cut into frames (HTTP/2, zmq) vary by a few bytes.
bool SameStep(LaneId lane_a, Bytes a, LaneId lane_b, Bytes b) {
  if (lane_a != lane_b) return false;
  const Bytes difference = a > b ? a - b : b - a;
  return difference * 50 <= std::max(a, b);
}

// What a duration would have been without contention, from (seen, held) pairs, oldest first. Seen is never shorter than
// alone, so the shortest is a ceiling; seen less held is exact where the hold was exposed and too short where compute
// covered it, so a high quantile of that is taken.
class AloneEstimate {
 public:
  void Add(Nanoseconds seen, Nanoseconds held) {
    shortest_ = std::min(shortest_, seen);
    unheld_.push_back(seen - std::min(held, seen));
  }
  bool empty() const { return unheld_.empty(); }
  Nanoseconds Get() const {
    std::vector<Nanoseconds> recent(unheld_.end() - static_cast<std::ptrdiff_t>(std::min(kRecent, unheld_.size())),
                                    unheld_.end());
    std::sort(recent.begin(), recent.end());
    const auto at = static_cast<std::size_t>(std::lround(kUncontendedShare * static_cast<double>(recent.size() - 1)));
    return std::min(shortest_, recent[at]);
  }

 private:
  Nanoseconds shortest_ = std::numeric_limits<Nanoseconds>::max();
  std::vector<Nanoseconds> unheld_;
};

}  // namespace

void ProfileLearner::OnHeld(Nanoseconds from, Nanoseconds to) {
  if (to > from) held_ += to - from;
}

void ProfileLearner::OnDrained(Nanoseconds time) {
  if (!in_flight_) return;
  in_flight_ = false;
  last_drained_ = std::max(time, last_message_);
  messages_.back().drained = last_drained_;
  messages_.back().drained_held = held_;
  if (steps_.empty()) return;
  if (current_.steps[newest_]) {
    current_.steps[newest_]->drained = last_drained_;
    current_.steps[newest_]->drained_held = held_;
  }
  if (begun_ == steps_.size()) profile_.iteration_started = last_drained_;
}

void ProfileLearner::OnMessage(Nanoseconds time, LaneId lane, Bytes bytes) {
  const Nanoseconds gap = in_flight_ || messages_.empty() ? 0 : std::max<Nanoseconds>(0, time - last_drained_);
  messages_.push_back({lane, bytes, time, gap, held_, 0, 0});
  if (messages_.size() > kHistory) messages_.pop_front();
  last_message_ = time;
  in_flight_ = true;
  ++messages_seen_;

  if (!steps_.empty() && !Place(messages_.back())) Unlock();
  if (steps_.empty()) {
    if (const std::size_t found = FindPeriod(); found > 0) Lock(found);
  } else if (begun_ == 1 && (messages_seen_ < kYoung || cycles_matched_ % kLookAgain == 0)) {
    LookAgain();
  }
  if (!steps_.empty()) FillProfile();
}

// Whether the message `back` places before the newest repeats the one `lag` places before it.
bool ProfileLearner::Matches(std::size_t back, std::size_t lag) const {
  if (back + lag >= messages_.size()) return false;
  const Message& a = messages_[messages_.size() - 1 - back];
  const Message& b = messages_[messages_.size() - 1 - back - lag];
  return SameStep(a.lane, a.bytes, b.lane, b.bytes);
}

// Whether the newest `lag` messages are those before them in another order: a held collective lets the next one
// overtake parts of it. Needs 2 * lag messages.
bool ProfileLearner::SameMultiset(std::size_t lag) const {
  std::vector<std::pair<LaneId, Bytes>> newest;
  std::vector<std::pair<LaneId, Bytes>> before;
  for (std::size_t i = 0; i < lag; ++i) {
    const Message& a = messages_[messages_.size() - 1 - i];
    const Message& b = messages_[messages_.size() - 1 - i - lag];
    newest.emplace_back(a.lane, a.bytes);
    before.emplace_back(b.lane, b.bytes);
  }
  std::sort(newest.begin(), newest.end());
  std::sort(before.begin(), before.end());
  for (std::size_t i = 0; i < lag; ++i) {
    if (!SameStep(newest[i].first, newest[i].second, before[i].first, before[i].second)) return false;
  }
  return true;
}

// The usual think time before an iteration of `period` messages, if every iteration begins after one like it: the one
// part of the rhythm that contention hardly changes, since the traffic before it is over. 0 if they do not. Looks at
// the newest `stretch` messages.
Nanoseconds ProfileLearner::BorderGap(std::size_t period, std::size_t stretch) const {
  std::vector<Nanoseconds> gaps;
  const std::size_t known = messages_seen_ > messages_.size() ? messages_.size() : messages_.size() - 1;
  for (std::size_t back = LongestGapOffset(period); back < std::min(known, stretch); back += period) {
    gaps.push_back(messages_[messages_.size() - 1 - back].gap);
  }
  if (gaps.empty()) return 0;
  std::sort(gaps.begin(), gaps.end());
  const Nanoseconds median = gaps[gaps.size() / 2];
  return median >= kBurstGap && gaps.front() >= median / 4 ? median : 0;
}

// Whether of the borders of a `shorter` period every (period / shorter)-th is long and all others are short, in all of
// the newest `stretch` messages.
bool ProfileLearner::BordersAlternate(std::size_t period, std::size_t shorter, Nanoseconds gap,
                                      std::size_t stretch) const {
  const std::size_t known = messages_seen_ > messages_.size() ? messages_.size() : messages_.size() - 1;
  const std::size_t offset = LongestGapOffset(period);
  for (std::size_t back = offset % shorter; back < std::min(known, stretch); back += shorter) {
    const Nanoseconds seen = messages_[messages_.size() - 1 - back].gap;
    const bool border = back % period == offset;
    if (border ? seen < gap / 2 : seen > gap / kLongerBorder) return false;
  }
  return true;
}

// The shortest period of sizes whose borders are steady; 0 if none yet. A candidate needs two whole repetitions. A
// multiple is better if its borders stand out among the others without exception: messages some ms apart with a long
// pause after every n-th are iterations of n, not of one. (Contention makes some borders longer too, but not every
// n-th.)
std::size_t ProfileLearner::FindPeriod() const {
  std::size_t best = 0;
  Nanoseconds best_gap = 0;
  for (std::size_t lag = 1; lag <= kPeriodMax && 2 * lag <= messages_.size(); ++lag) {
    if (best > 0 && lag % best != 0) continue;
    const std::size_t needed = std::max(lag, kMatchesMin);
    std::size_t matched = 0;
    while (matched < kBordersCompared * needed && Matches(matched, lag)) ++matched;
    if (matched < needed && (lag < 3 || !SameMultiset(lag))) continue;
    const std::size_t stretch = std::max(matched, needed) + lag;
    const Nanoseconds gap = BorderGap(lag, stretch);
    if (gap == 0) continue;
    if (best > 0) {
      if (gap >= kLongerBorder * best_gap && BordersAlternate(lag, best, gap, stretch)) return lag;
      continue;
    }
    best = lag;
    best_gap = gap;
  }
  return best;
}

// How many places before the newest message lies the step with the longest mean think time, 0..period-1.
std::size_t ProfileLearner::LongestGapOffset(std::size_t period) const {
  std::size_t best = 0;
  double best_gap = -1;
  for (std::size_t offset = 0; offset < period; ++offset) {
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t back = offset; back < messages_.size() && count < 4; back += period, ++count) {
      sum += static_cast<double>(messages_[messages_.size() - 1 - back].gap);
    }
    if (count > 0 && sum / static_cast<double>(count) > best_gap) {
      best_gap = sum / static_cast<double>(count);
      best = offset;
    }
  }
  return best;
}

// The sizes are certain from the first match on, the rhythm is not: while the pattern is young, and now and then after
// that, a better period or border may show.
void ProfileLearner::LookAgain() {
  const std::size_t found = FindPeriod();
  if (found > 0 && (found != steps_.size() || LongestGapOffset(found) != 0)) Lock(found);
}

void ProfileLearner::Lock(std::size_t period) {
  // The iteration that is running began `offset` places before the newest message; the one before it is the template.
  const std::size_t offset = LongestGapOffset(period);
  steps_.assign(period, {});
  const std::size_t first = messages_.size() - 1 - offset;
  const std::size_t start = first >= period ? first - period : first;
  for (std::size_t i = 0; i < period; ++i) {
    const std::size_t at = start + i < messages_.size() ? start + i : start + i - period;
    steps_[i].lane = messages_[at].lane;
    steps_[i].bytes = messages_[at].bytes;
  }
  iterations_.clear();
  cycles_matched_ = 1;
  Replay();
}

// Reads what the history already tells, so that a pattern is of use the moment it is found.
void ProfileLearner::Replay() {
  const std::size_t period = steps_.size();
  const std::size_t offset = LongestGapOffset(period);
  std::size_t at = messages_.size() - 1 - offset;
  if (at >= period) at -= period;
  current_ = Iteration{};
  current_.steps.resize(period);
  begun_ = period;  // so that the first message placed opens an iteration
  profile_.iteration_started = messages_[at].time - messages_[at].gap;
  for (; at < messages_.size(); ++at) {
    if (!Place(messages_[at])) {
      Unlock();
      return;
    }
    if (begun_ == period && messages_[at].drained > 0) profile_.iteration_started = messages_[at].drained;
  }
}

void ProfileLearner::Unlock() {
  steps_.clear();
  begun_ = 0;
  cycles_matched_ = 0;
  profile_.confidence *= 0.5;
}

// Finds the step of the current iteration that `message` is, the first one that fits; false if there is none.
bool ProfileLearner::Place(const Message& message) {
  if (begun_ == steps_.size()) {
    if (!SameStep(message.lane, message.bytes, steps_[0].lane, steps_[0].bytes)) return false;
    OnBorder(message);
    if (steps_.empty()) return false;
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (current_.steps[i] || !SameStep(message.lane, message.bytes, steps_[i].lane, steps_[i].bytes)) continue;
    current_.steps[i] = message;
    newest_ = i;
    ++begun_;
    return true;
  }
  return false;
}

// `first` is the first message of the next iteration.
void ProfileLearner::OnBorder(const Message& first) {
  ++cycles_matched_;
  if (current_.steps[0]) {
    ++profile_.iteration;
    current_.period = first.time - current_.steps[0]->time;
    current_.period_held = first.held - current_.steps[0]->held;
    iterations_.push_back(std::move(current_));
    if (iterations_.size() > kIterations) iterations_.pop_front();
  }
  current_ = Iteration{};
  current_.started = first.gap > 0 ? first.time - first.gap : 0;
  current_.held = first.held;
  current_.steps.resize(steps_.size());
  begun_ = 0;
  profile_.iteration_started = first.time - first.gap;
  Estimate();
}

void ProfileLearner::Estimate() {
  if (iterations_.empty()) return;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    AloneEstimate begin;
    AloneEstimate drained;
    double gap = 0;
    double deviation = 0;
    for (const Iteration& iteration : iterations_) {
      if (!iteration.steps[i] || iteration.started == 0) continue;
      const Message& message = *iteration.steps[i];
      begin.Add(message.time - iteration.started, message.held - iteration.held);
      const auto seen = static_cast<double>(message.gap);
      if (gap > 0) deviation += kNewest * (std::abs(seen - gap) - deviation);
      gap += (gap > 0 ? kNewest : 1) * (seen - gap);
      if (message.drained > 0) drained.Add(message.drained - iteration.started, message.drained_held - iteration.held);
    }
    steps_[i].gap = static_cast<Nanoseconds>(gap);
    steps_[i].deviation = static_cast<Nanoseconds>(deviation);
    steps_[i].begin = begin.empty() ? 0 : begin.Get();
    steps_[i].drained = drained.empty() ? 0 : drained.Get();
  }
  profile_.period = iterations_.back().period;
  profile_.alone = EstimateAlone();
  EstimateBursts();
  const auto cycles = static_cast<double>(std::min<std::uint64_t>(cycles_matched_, 12));
  profile_.confidence = 1.0 - std::pow(0.5, cycles - 1.0);
}

void ProfileLearner::EstimateBursts() {
  std::size_t begin = 0;
  while (begin < steps_.size()) {
    std::size_t end = begin + 1;
    while (end < steps_.size() && steps_[end].gap < kBurstGap) ++end;
    EstimateOverlap(begin, end);
    for (std::size_t i = begin; i < end; ++i) steps_[i].burst_end = end;
    begin = end;
  }
}

// A burst is overlapped if, in the iterations in which it was held, the next one began on time and the iteration ended
// on time. The last burst of an iteration never is: the iteration's end waits for it.
void ProfileLearner::EstimateOverlap(std::size_t burst_begin, std::size_t burst_end) {
  bool overlapped = false;
  if (burst_end < steps_.size()) {
    const Nanoseconds usual = steps_[burst_end].begin - steps_[burst_begin].begin;
    std::size_t told = 0;
    std::size_t on_time = 0;
    for (const Iteration& iteration : iterations_) {
      if (!iteration.steps[burst_begin] || !iteration.steps[burst_end]) continue;
      const Nanoseconds held = iteration.steps[burst_end]->held - iteration.steps[burst_begin]->held;
      const Nanoseconds later = iteration.steps[burst_end]->time - iteration.steps[burst_begin]->time - usual;
      if (held < kTellingHold) continue;
      ++told;
      // The sender may go on while a peer waits for the bytes (a pipeline's stage): then the iteration gets longer by
      // more than its other holds explain.
      const Nanoseconds longer = iteration.period - profile_.alone - (iteration.period_held - held);
      const auto tolerated = static_cast<Nanoseconds>(kOverlapShare * static_cast<double>(held));
      if (later < tolerated && longer < tolerated) ++on_time;
    }
    overlapped = told > 0 && 2 * on_time > told;
  }
  for (std::size_t i = burst_begin; i < burst_end; ++i) steps_[i].overlapped = overlapped;
}

void ProfileLearner::FillProfile() {
  profile_.bytes_total = 0;
  profile_.bytes_left = 0;
  profile_.lanes.clear();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Bytes left = current_.steps[i] ? 0 : steps_[i].bytes;
    profile_.bytes_total += steps_[i].bytes;
    profile_.bytes_left += left;
    const auto lane = std::find_if(profile_.lanes.begin(), profile_.lanes.end(),
                                   [this, i](const Profile::Lane& l) { return l.lane == steps_[i].lane; });
    if (lane != profile_.lanes.end()) {
      lane->bytes += steps_[i].bytes;
      lane->bytes_left += left;
    } else {
      profile_.lanes.push_back({steps_[i].lane, steps_[i].bytes, left});
    }
  }
}

Nanoseconds ProfileLearner::EstimateAlone() const {
  AloneEstimate alone;
  for (const Iteration& iteration : iterations_) alone.Add(iteration.period, iteration.period_held);
  return alone.Get();
}

std::optional<Nanoseconds> ProfileLearner::ExpectedGap() const {
  if (steps_.empty() || iterations_.empty()) return std::nullopt;
  return steps_[(newest_ + 1) % steps_.size()].gap;
}

std::optional<NextMessage> ProfileLearner::ExpectedNext() const {
  if (steps_.empty() || profile_.confidence < kConfident || in_flight_) return std::nullopt;
  const Step& step = steps_[(newest_ + 1) % steps_.size()];
  return NextMessage{step.lane, last_drained_ + step.gap, step.deviation};
}

std::optional<Due> ProfileLearner::CurrentDue() const {
  if (steps_.empty() || profile_.confidence < kConfident || begun_ == 0 || current_.started == 0) return std::nullopt;
  const Step& step = steps_[newest_];
  if (step.overlapped) return Due{current_.started + steps_[step.burst_end].begin, true};
  // Inside a burst the messages follow each other without a drain, so the burst's end is what was seen.
  Nanoseconds end = 0;
  for (std::size_t i = newest_; i < step.burst_end && end == 0; ++i) end = steps_[i].drained;
  if (end == 0) return std::nullopt;
  return Due{current_.started + end, false};
}

}  // namespace weir::agents
