#include "transport/pacer/timing_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace weir::transport {
namespace {

constexpr Nanoseconds kTick = TimingWheel::kTick;
/// What the rings hold in all; later times wait beside them.
constexpr Nanoseconds kTurn = kTick << 24;

struct Named : TimingWheel::Timer {
  int name = 0;
};

std::vector<int> Expired(TimingWheel* wheel, Nanoseconds now) {
  std::vector<int> names;
  while (TimingWheel::Timer* timer = wheel->Expire(now)) names.push_back(static_cast<Named*>(timer)->name);
  return names;
}

std::vector<Named> Timers(int count) {
  std::vector<Named> timers(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) timers[static_cast<std::size_t>(i)].name = i;
  return timers;
}

TEST(TimingWheel, TimersOfAllRingsWakeInTheOrderOfTheirTimes) {
  TimingWheel wheel(0);
  const std::vector<Nanoseconds> at{17 * kSecond,     3 * kMicrosecond, 5 * kMillisecond, 60 * kMicrosecond,
                                    2 * kMillisecond, 900 * kSecond,    3 * kMicrosecond, kSecond};
  std::vector<Named> timers = Timers(static_cast<int>(at.size()));
  for (std::size_t i = 0; i < at.size(); ++i) wheel.Set(&timers[i], at[i]);
  EXPECT_EQ(Expired(&wheel, 1000 * kSecond), (std::vector<int>{1, 6, 3, 4, 2, 7, 0, 5}));
  EXPECT_EQ(wheel.Expire(2000 * kSecond), nullptr);
}

TEST(TimingWheel, ATimerWakesNeverEarlyAndAtMostATickLate) {
  for (const Nanoseconds after : {Nanoseconds{1}, kTick - 1, kTick, kTick + 1, 64 * kTick - 1, 64 * kTick,
                                  4096 * kTick + 1, kTurn - 1, kTurn, kTurn + 1, 5 * kTurn + 7}) {
    for (const Nanoseconds begin : {Nanoseconds{0}, Nanoseconds{1}, 63 * kTick, 64 * kTick - 1, kTurn - kTick}) {
      TimingWheel wheel(begin);
      Named timer;
      wheel.Set(&timer, begin + after);
      EXPECT_EQ(wheel.Expire(begin + after - 1), nullptr) << begin << " and " << after;
      EXPECT_EQ(wheel.Expire(begin + after + kTick), &timer) << begin << " and " << after;
    }
  }
}

TEST(TimingWheel, ATimeThatHasPassedWakesWithTheNextTickAndNotInTheSameCalls) {
  TimingWheel wheel(kSecond);
  Named timer;
  ASSERT_EQ(wheel.Expire(2 * kSecond), nullptr);
  wheel.Set(&timer, kSecond / 2);
  EXPECT_EQ(wheel.Expire(2 * kSecond), nullptr) << "who sets it again each time it wakes would never come to an end";
  EXPECT_EQ(wheel.Expire(2 * kSecond + kTick), &timer);
}

TEST(TimingWheel, ATimerThatIsSetAgainWakesAtItsLastTimeOnly) {
  TimingWheel wheel(0);
  Named timer;
  wheel.Set(&timer, 10 * kMicrosecond);
  wheel.Set(&timer, 5 * kMillisecond);
  EXPECT_EQ(wheel.Expire(4 * kMillisecond), nullptr);
  EXPECT_EQ(wheel.Expire(6 * kMillisecond), &timer);
  wheel.Set(&timer, 9 * kSecond);
  wheel.Set(&timer, 7 * kMillisecond);
  EXPECT_EQ(wheel.Expire(8 * kMillisecond), &timer);
  EXPECT_EQ(wheel.Expire(10 * kSecond), nullptr);
}

TEST(TimingWheel, ACancelledTimerDoesNotWakeEvenAmongThoseOfTheSameTick) {
  TimingWheel wheel(0);
  std::vector<Named> timers = Timers(3);
  for (Named& timer : timers) wheel.Set(&timer, kMillisecond);
  timers[1].Unlink();
  EXPECT_FALSE(timers[1].linked());
  ASSERT_EQ(wheel.Expire(2 * kMillisecond), &timers[0]);
  timers[2].Unlink();  // It is due, and was not told yet.
  EXPECT_EQ(wheel.Expire(2 * kMillisecond), nullptr);
}

TEST(TimingWheel, ADestroyedTimerDoesNotWake) {
  TimingWheel wheel(0);
  auto timer = std::make_unique<Named>();
  wheel.Set(timer.get(), kSecond);
  timer.reset();
  EXPECT_EQ(wheel.Expire(2 * kSecond), nullptr);
}

TEST(TimingWheel, AnHourWithoutTimersIsOneStepAndATimerSetAfterItIsExact) {
  TimingWheel wheel(0);
  EXPECT_EQ(wheel.Expire(3600 * kSecond), nullptr);
  Named timer;
  wheel.Set(&timer, 3600 * kSecond + 50 * kMicrosecond);
  EXPECT_EQ(wheel.Expire(3600 * kSecond + 49 * kMicrosecond), nullptr);
  EXPECT_EQ(wheel.Expire(3600 * kSecond + 52 * kMicrosecond), &timer);
}

/// What a wheel should do, by a sorted map: for each timer that is set the tick with which it wakes.
struct Model {
  std::multimap<std::int64_t, int> by_tick;
  std::map<int, std::multimap<std::int64_t, int>::iterator> set;
  std::int64_t until = 0;

  explicit Model(Nanoseconds now) : until(now / kTick) {}
  void Cancel(int name) {
    const auto found = set.find(name);
    if (found == set.end()) return;
    by_tick.erase(found->second);
    set.erase(found);
  }
  void Set(int name, Nanoseconds at) {
    Cancel(name);
    set[name] = by_tick.emplace(std::max((at + kTick - 1) / kTick, until + 1), name);
  }
  /// By tick: the order within one does not matter.
  std::multimap<std::int64_t, int> Expire(Nanoseconds now) {
    until = std::max(until, now / kTick);
    std::multimap<std::int64_t, int> expired(by_tick.begin(), by_tick.upper_bound(until));
    for (const auto& [tick, name] : expired) Cancel(name);
    return expired;
  }
};

/// A span of any size: as often some nanoseconds as some minutes.
Nanoseconds Span(std::mt19937_64* random) {
  const std::uint64_t bits = (*random)() % 38;
  return static_cast<Nanoseconds>((*random)() & ((std::uint64_t{1} << bits) - 1));
}

void CompareWithAMap(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Nanoseconds now = Span(&random);
  TimingWheel wheel(now);
  Model model(now);
  std::vector<Named> timers = Timers(1 + static_cast<int>(random() % 40));
  for (int step = 0; step < 150; ++step) {
    Named& timer = timers[random() % timers.size()];
    const std::uint64_t what = random() % 8;
    if (what < 5) {
      const Nanoseconds at = what == 0 ? now - std::min(now, Span(&random)) : now + Span(&random);
      wheel.Set(&timer, at);
      model.Set(timer.name, at);
      ASSERT_EQ(timer.at(), at);
    } else if (what == 5) {
      timer.Unlink();
      model.Cancel(timer.name);
    } else {
      now += Span(&random);
      const auto expected = model.Expire(now);
      std::multimap<std::int64_t, int> left = expected;
      std::int64_t tick = 0;
      while (TimingWheel::Timer* woken = wheel.Expire(now)) {
        const int name = static_cast<Named*>(woken)->name;
        const auto found =
            std::find_if(left.begin(), left.end(), [name](const auto& one) { return one.second == name; });
        ASSERT_NE(found, left.end()) << "timer " << name << " woke and should not have";
        ASSERT_GE(found->first, tick) << "out of order";
        ASSERT_FALSE(woken->linked());
        tick = found->first;
        left.erase(found);
      }
      ASSERT_TRUE(left.empty()) << left.size() << " of " << expected.size() << " did not wake";
    }
  }
}

TEST(TimingWheel, DoesWhatASortedMapDoes) {
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    CompareWithAMap(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace weir::transport
