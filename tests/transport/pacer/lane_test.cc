#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "transport/fake/manual_clock.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"

namespace weir::transport {
namespace {

LaneDirective Capped(double bits) {
  LaneDirective directive;
  directive.rate = BitsPerSecond(bits);
  return directive;
}

LaneDirective AtLevel(std::uint8_t level) {
  LaneDirective directive;
  directive.level = level;
  return directive;
}

/// Sends all the time as a busy caller would: asks again when the lane says so, or after 50 us. Returns the bytes.
Bytes Saturate(Lane* lane, ManualClock* clock, Nanoseconds span) {
  const Nanoseconds end = clock->Now() + span;
  Bytes total = 0;
  while (clock->Now() < end) {
    const Bytes got = lane->Admit(1u << 30, clock->Now());
    total += got;
    const Nanoseconds next = got == 0 ? std::min(lane->AskAgainAt(clock->Now()), clock->Now() + 50'000) : clock->Now();
    clock->Advance(std::min(std::max<Nanoseconds>(next - clock->Now(), got == 0 ? 1 : 0), end - clock->Now()));
    if (got != 0 && !(lane->directive().rate > 0)) break;  // Nothing would stop it.
  }
  return total;
}

/// A link of a fixed rate under several lanes that all have something to send: whoever is admitted occupies it.
struct Link {
  Pacer pacer;
  ManualClock clock;
  std::vector<std::unique_ptr<ScriptedDirectives>> sources;
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<bool> busy;
  std::vector<Bytes> sent;
  double rate;

  explicit Link(double bits) : rate(BitsPerSecond(bits)) {}

  void Add(std::vector<ScriptedDirectives::Step> script) {
    sources.push_back(std::make_unique<ScriptedDirectives>(&clock, std::move(script)));
    lanes.push_back(std::make_unique<Lane>(&pacer, sources.back().get()));
    busy.push_back(true);
    sent.push_back(0);
  }

  void Run(Nanoseconds span) {
    const Nanoseconds end = clock.Now() + span;
    const auto wanted = static_cast<Bytes>(rate * 0.0005);
    std::size_t turn = lanes.size() - 1;  // The last one first: it is the one that comes and goes.
    while (clock.Now() < end) {
      const std::size_t i = turn++ % lanes.size();
      const Bytes got = busy[i] ? lanes[i]->Admit(wanted, clock.Now()) : 0;
      if (!busy[i]) lanes[i]->Drained(clock.Now());
      sent[i] += got;
      clock.Advance(got == 0 ? 200 : static_cast<Nanoseconds>(TransferNanoseconds(static_cast<double>(got), rate)));
    }
  }

  double Share(std::size_t i) const {
    Bytes all = 0;
    for (const Bytes bytes : sent) all += bytes;
    return static_cast<double>(sent[i]) / static_cast<double>(all);
  }
};

class LaneRates : public testing::TestWithParam<double> {};

TEST_P(LaneRates, CapIsKeptWithinHalfAPercentOfASecondAndTheBurst) {
  ManualClock clock;
  Pacer pacer;
  ScriptedDirectives source(&clock, {{0, Capped(GetParam())}});
  Lane lane(&pacer, &source);
  Saturate(&lane, &clock, 100 * kMillisecond);  // The full bucket of the start.
  const auto bytes = static_cast<double>(Saturate(&lane, &clock, kSecond));
  const double want = GetParam() / 8;
  EXPECT_NEAR(bytes, want, std::max(2048.0, want * 0.005));
}

INSTANTIATE_TEST_SUITE_P(OneMegabitToHundredGigabit, LaneRates, testing::Values(1e6, 1e7, 1e8, 1e9, 5e9, 1e10, 1e11));

/// An owner that has ever more to send and comes when it is let run: after `gap` each time, or after random times up to
/// it, most of them short. Takes what it may in pieces as a device does that is handed a little at a time.
class LateOwner {
 public:
  LateOwner(double bits, Nanoseconds gap, bool random)
      : gap_(gap), random_(random), source_(&clock_, {{0, Capped(bits)}}) {}

  Bytes Run(Nanoseconds span) {
    const Nanoseconds end = clock_.Now() + span;
    Bytes total = 0;
    for (; clock_.Now() < end; clock_.Advance(Gap())) {
      for (Bytes got = 1; got != 0; total += got) got = lane_.Admit(kPiece, clock_.Now());
    }
    return total;
  }

  static constexpr Bytes kPiece = 4096;

 private:
  Nanoseconds Gap() {
    if (!random_) return gap_;
    const auto longest = static_cast<std::uint64_t>(draw_() % 4 == 0 ? gap_ : gap_ / 20);
    return 1 + static_cast<Nanoseconds>(draw_() % longest);
  }

  Nanoseconds gap_;
  bool random_;
  std::mt19937_64 draw_{11};
  ManualClock clock_;
  Pacer pacer_;
  ScriptedDirectives source_;
  Lane lane_{&pacer_, &source_};
};

TEST(LaneRate, CapIsKeptWithinTwoPercentHoweverLateItsOwnerComesUpToTheBound) {
  const Nanoseconds bound = PacerOptions().late_time;
  for (const double bits : {1e6, 1e7, 1e8, 5e8, 5e9}) {
    for (const Nanoseconds gap : {50 * kMicrosecond, 6 * kMillisecond, 12 * kMillisecond, bound}) {
      for (const bool random : {false, true}) {
        LateOwner owner(bits, gap, random);
        owner.Run(kSecond);  // The full bucket of the start.
        const double want = bits / 8;
        for (int second = 0; second < 5; ++second) {
          EXPECT_NEAR(static_cast<double>(owner.Run(kSecond)), want, 0.02 * want + 2048)
              << bits << " bit/s, gaps of " << gap << " ns, random: " << random;
        }
      }
    }
  }
}

TEST(LaneRate, AnOwnerThatComesLaterThanTheBoundIsOwedTheBound) {
  const Nanoseconds bound = PacerOptions().late_time;
  LateOwner owner(1e8, 2 * bound, false);
  owner.Run(kSecond);
  EXPECT_NEAR(static_cast<double>(owner.Run(kSecond)), 1.25e7 / 2, 0.02 * 1.25e7);
}

TEST(LaneRate, OneThatHadNothingToSendBeginsWithAShortBurst) {
  ManualClock clock;
  Pacer pacer;
  ScriptedDirectives source(&clock, {{0, Capped(1e8)}});
  Lane lane(&pacer, &source);
  const auto all = [&] {
    Bytes total = 0;
    for (Bytes got = 1; got != 0; total += got) got = lane.Admit(4096, clock.Now());
    return total;
  };
  all();
  lane.Drained(clock.Now());
  clock.Advance(kSecond);
  EXPECT_LE(all(), 62'500u);  // 5 ms.
  clock.Advance(kSecond);
  EXPECT_NEAR(static_cast<double>(all()), 250'000, 4096);  // It wanted more: 20 ms.
}

TEST(LaneRate, AChangeIsInForceFromTheNextPieceOn) {
  ManualClock clock;
  Pacer pacer;
  const Nanoseconds change = 500 * kMillisecond;
  ScriptedDirectives source(&clock, {{0, Capped(1e9)}, {change, Capped(1e6)}, {2 * change, Capped(1e9)}});
  Lane lane(&pacer, &source);
  Saturate(&lane, &clock, change - clock.Now());
  const Bytes slow = Saturate(&lane, &clock, 100 * kMillisecond);
  EXPECT_LE(slow, 12'500u + 2048u);  // 100 ms at 1 Mbit/s, and a burst.
  Saturate(&lane, &clock, 2 * change - clock.Now());
  const Bytes fast = Saturate(&lane, &clock, 10 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(fast), 1.25e6, 1.25e4);
}

TEST(LaneRate, HundredChangesASecondKeepTheirMean) {
  ManualClock clock;
  Pacer pacer;
  std::vector<ScriptedDirectives::Step> steps;
  steps.reserve(200);
  for (int i = 0; i < 200; ++i) steps.push_back({i * 10 * kMillisecond, Capped(i % 2 == 0 ? 4e8 : 1e8)});
  ScriptedDirectives source(&clock, steps);
  Lane lane(&pacer, &source);
  const Bytes bytes = Saturate(&lane, &clock, 2 * kSecond);
  EXPECT_NEAR(static_cast<double>(bytes), 2 * 250e6 / 8, 0.01 * 2 * 250e6 / 8);
}

TEST(LaneRate, NonsenseIsNoCap) {
  for (const double rate : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    ManualClock clock;
    Pacer pacer;
    LaneDirective directive;
    directive.rate = rate;
    ScriptedDirectives source(&clock, {{0, directive}});
    Lane lane(&pacer, &source);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(lane.Admit(5000, clock.Now()), 5000u) << rate;
  }
}

TEST(LaneRate, WhatTheDeviceDidNotTakeMayBeSentLater) {
  ManualClock clock;
  Pacer pacer;
  ScriptedDirectives source(&clock, {{0, Capped(8e5)}});  // Pieces of 1024, a burst of 2048.
  Lane lane(&pacer, &source);
  ASSERT_EQ(lane.Admit(1u << 20, clock.Now()), 2048u);
  lane.Return(1024);
  EXPECT_EQ(lane.counters().bytes, 1024u);
  EXPECT_EQ(lane.Admit(1u << 20, clock.Now()), 1024u);
  EXPECT_EQ(lane.Admit(1u << 20, clock.Now()), 0u);
  EXPECT_EQ(lane.counters().waits_for_rate, 1u);
}

TEST(LaneGate, PhaseOpensAndShutsOnTime) {
  ManualClock clock;
  Pacer pacer;
  LaneDirective directive;
  directive.phase = {100 * kMillisecond, 30 * kMillisecond, 20 * kMillisecond};
  ScriptedDirectives source(&clock, {{0, directive}});
  Lane lane(&pacer, &source);
  for (; clock.Now() < 300 * kMillisecond; clock.Advance(kMillisecond)) {
    const Nanoseconds into = clock.Now() % (100 * kMillisecond);
    const bool open = into >= 30 * kMillisecond && into < 50 * kMillisecond;
    const Bytes got = lane.Admit(100, clock.Now());
    ASSERT_EQ(got != 0, open) << clock.Now();
    if (got == 0) {
      const Nanoseconds again = lane.AskAgainAt(clock.Now());
      EXPECT_EQ(again % (100 * kMillisecond), 30 * kMillisecond);
      EXPECT_LE(again - clock.Now(), 80 * kMillisecond);
    }
  }
  EXPECT_GT(lane.counters().waits_for_gate, 0u);
}

TEST(LaneGate, AHoldEndsByItselfHoweverLongItWasMeant) {
  ManualClock clock;
  Pacer pacer;
  LaneDirective directive;
  directive.hold_until = std::numeric_limits<Nanoseconds>::max();
  ScriptedDirectives source(&clock, {{0, directive}});
  Lane lane(&pacer, &source);
  EXPECT_EQ(lane.Admit(1, clock.Now()), 0u);
  clock.Advance(kGateClosedMax - 1);
  EXPECT_EQ(lane.Admit(1, clock.Now()), 0u);
  clock.Advance(1);
  EXPECT_EQ(lane.Admit(1, clock.Now()), 1u);
}

TEST(LaneGate, OneThatWouldShutForTooLongIsOpenAndCounted) {
  const Nanoseconds lowest = std::numeric_limits<Nanoseconds>::min();
  const PhaseGate cases[] = {{kGateClosedMax + 2, 0, 1}, {-5, 0, 1}, {10, 0, 0}, {10, 0, 11}, {lowest, lowest, lowest}};
  for (const PhaseGate& gate : cases) {
    ManualClock clock;
    clock.Advance(gate.window);
    Pacer pacer;
    LaneDirective directive;
    directive.phase = gate;
    ScriptedDirectives source(&clock, {{lowest, directive}});
    Lane lane(&pacer, &source);
    EXPECT_EQ(lane.Admit(9, 5), 9u) << gate.period;
    EXPECT_EQ(lane.counters().gates_ignored, 1u);
  }
}

TEST(LaneLevels, AHighOneAmongEightLowOnesGetsAllButTheFloorAtOnce) {
  Link link(1e9);
  for (int i = 0; i < 8; ++i) link.Add({{0, AtLevel(5)}});
  link.Add({{0, AtLevel(1)}});
  link.busy[8] = false;
  link.Run(100 * kMillisecond);
  for (int i = 0; i < 8; ++i) EXPECT_NEAR(link.Share(static_cast<std::size_t>(i)), 0.125, 0.01);
  link.sent.assign(9, 0);
  link.busy[8] = true;
  link.Run(20 * kMillisecond);
  EXPECT_GE(link.Share(8), 0.95);
  link.sent.assign(9, 0);
  link.Run(2 * kSecond);
  EXPECT_NEAR(link.Share(8), 1 - 1.0 / 64, 0.005);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(link.Share(i), 1.0 / 64 / 8, 0.0006) << i;
  link.sent.assign(9, 0);
  link.busy[8] = false;
  link.Run(20 * kMillisecond);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(link.Share(i), 0.125, 0.02);
}

TEST(LaneLevels, ALowOneIsServedAfterTheAgingBoundEvenOnASlowLink) {
  Link link(1e6);  // A second of it is less than the floor's price.
  link.Add({{0, AtLevel(0)}});
  link.Add({{0, AtLevel(7)}});
  link.Run(3 * kSecond);
  EXPECT_GE(link.lanes[1]->counters().floor_pieces, 2u);
}

TEST(LaneLevels, OneThatIsCappedLeavesItsGapsToTheLowerOnes) {
  Link link(1e9);
  LaneDirective high = Capped(1e8);
  high.level = 0;
  link.Add({{0, high}});
  link.Add({{0, AtLevel(3)}});
  link.Run(kSecond);
  EXPECT_NEAR(static_cast<double>(link.sent[0]), 1.25e7, 2e5);
  EXPECT_GT(link.Share(1), 0.85);
}

TEST(LaneLevels, OneThatStopsAskingHoldsNobodyBackForLong) {
  Pacer pacer;
  ManualClock clock;
  ScriptedDirectives low_script(&clock, {{0, AtLevel(7)}});
  Lane high(&pacer, nullptr);
  Lane low(&pacer, &low_script);
  ASSERT_GT(high.Admit(10, clock.Now()), 0u);
  EXPECT_EQ(low.Admit(10, clock.Now()), 0u);
  EXPECT_EQ(low.counters().waits_for_level, 1u);
  clock.Advance(pacer.options().stale_after + 1);
  EXPECT_EQ(low.Admit(10, clock.Now()), 10u);
}

TEST(LaneLevels, OneThatIsDrainedHoldsOthersBackForAsLongAsItsBytesAreWorth) {
  Pacer pacer;
  ManualClock clock;
  ScriptedDirectives low_script(&clock, {{0, AtLevel(7)}});
  Lane high(&pacer, nullptr);
  Lane low(&pacer, &low_script);
  const auto held_for = [&](Bytes bytes) {
    for (Bytes sent = 0; sent < bytes;) sent += high.Admit(bytes - sent, clock.Now());
    const Nanoseconds begin = clock.Now();
    while (true) {
      high.Drained(clock.Now());  // Said again and again, as a sender does: it counts once.
      if (low.Admit(1, clock.Now()) != 0) return clock.Now() - begin;
      clock.Advance(100);
    }
  };
  EXPECT_NEAR(static_cast<double>(held_for(1000)), 1000, 100);
  EXPECT_NEAR(static_cast<double>(held_for(100'000)), 100'000, 100);
  EXPECT_NEAR(static_cast<double>(held_for(100'000'000)), static_cast<double>(pacer.options().linger_max), 100);
}

TEST(LaneLevels, ALaneThatEndsOrChangesItsLevelLeavesNothingBehind) {
  Pacer pacer;
  ManualClock clock;
  ScriptedDirectives low_script(&clock, {{0, AtLevel(4)}});
  ScriptedDirectives sinking(&clock, {{0, AtLevel(2)}, {100, AtLevel(200)}});
  Lane low(&pacer, &low_script);
  {
    Lane high(&pacer, nullptr);
    ASSERT_GT(high.Admit(10, clock.Now()), 0u);
    EXPECT_EQ(low.Admit(10, clock.Now()), 0u);
  }
  EXPECT_EQ(low.Admit(10, clock.Now()), 10u);
  Lane other(&pacer, &sinking);
  ASSERT_GT(other.Admit(10, clock.Now()), 0u);
  EXPECT_EQ(low.Admit(10, clock.Now()), 0u);
  clock.Advance(200);
  EXPECT_EQ(other.Admit(10, clock.Now()), 0u);  // Last level now, and the fourth contends.
  EXPECT_EQ(other.directive().level, kQueueLevels - 1);
  EXPECT_EQ(low.Admit(10, clock.Now()), 10u);
}

TEST(LaneLevels, LanesOfSeveralThreadsLeaveNothingBehind) {
  Pacer pacer;
  const auto work = [&pacer](std::uint8_t level) {
    ManualClock clock;
    ScriptedDirectives source(&clock,
                              {{0, AtLevel(level)}, {50 * kMillisecond, AtLevel(7)}, {90 * kMillisecond, AtLevel(0)}});
    Lane lane(&pacer, &source);
    for (int i = 0; i < 10'000; ++i) {
      lane.Return(lane.Admit(1000, clock.Now()) / 2);
      clock.Advance(10 * kMicrosecond);
      if (i % 7 == 0) lane.Idle();
    }
  };
  std::thread one(work, 2);
  std::thread other(work, 5);
  work(3);
  one.join();
  other.join();
  // Nobody is left who would hold the last level back.
  ManualClock clock;
  ScriptedDirectives source(&clock, {{0, AtLevel(7)}});
  Lane last(&pacer, &source);
  EXPECT_EQ(last.Admit(10, clock.Now()), 10u);
}

/// A lane of level 0 that two channels share, and one of level 7.
struct Shared {
  ManualClock clock;
  Pacer pacer;
  ScriptedDirectives high{&clock, {{0, AtLevel(0)}}};
  ScriptedDirectives low{&clock, {{0, AtLevel(7)}}};
  Lane lane{&pacer, &high};
  Lane below{&pacer, &low};
};

TEST(LaneShares, OneThatHasNothingToSendLeavesThePlaceOfTheLaneToOneThatWaits) {
  Shared shared;
  LaneShare idle(&shared.lane);
  LaneShare busy(&shared.lane);
  ASSERT_GT(idle.Admit(1000, shared.clock.Now()), 0u);
  ASSERT_GT(busy.Admit(1000, shared.clock.Now()), 0u);
  for (int i = 0; i < 100; ++i) {
    shared.clock.Advance(kMillisecond);
    busy.Waits(shared.clock.Now());
    idle.Drained(shared.clock.Now());
    ASSERT_EQ(shared.below.Admit(1000, shared.clock.Now()), 0u) << "after " << i + 1 << " ms";
  }
  busy.Drained(shared.clock.Now());
  shared.clock.Advance(PacerOptions{}.linger_max);
  EXPECT_EQ(shared.below.Admit(1000, shared.clock.Now()), 1000u);
}

TEST(LaneShares, OneThatHasNothingToSendDoesNotCutTheCreditThatAnotherSaves) {
  ManualClock clock;
  Pacer pacer;
  ScriptedDirectives source(&clock, {{0, Capped(1e9)}});
  Lane lane(&pacer, &source);
  LaneShare idle(&lane);
  LaneShare busy(&lane);
  const auto send = [&] {
    Bytes total = 0;
    while (const Bytes got = busy.Admit(1u << 30, clock.Now())) total += got;
    return total;
  };
  send();
  Bytes sent = 0;
  for (Nanoseconds elapsed = 0; elapsed < kSecond; elapsed += 16 * kMillisecond) {
    idle.Drained(clock.Now());
    clock.Advance(16 * kMillisecond);
    idle.Drained(clock.Now());
    sent += send();
  }
  EXPECT_NEAR(static_cast<double>(sent), 1e9 / 8, 1e9 / 8 * 0.02);
}

TEST(LaneShares, OneThatEndsLeavesNothingBehind) {
  Shared shared;
  LaneShare stays(&shared.lane);
  {
    LaneShare ends(&shared.lane);
    ASSERT_GT(ends.Admit(1000, shared.clock.Now()), 0u);
    ASSERT_GT(stays.Admit(1000, shared.clock.Now()), 0u);
    stays.Idle();
    ASSERT_EQ(shared.below.Admit(1000, shared.clock.Now()), 0u) << "the other still has something";
  }
  EXPECT_EQ(shared.below.Admit(1000, shared.clock.Now()), 1000u);
  ASSERT_GT(stays.Admit(1000, shared.clock.Now()), 0u);
  EXPECT_EQ(shared.below.Admit(1000, shared.clock.Now()), 0u) << "it speaks for itself again";
}

TEST(LaneDirectives, WithoutASourceEverythingPasses) {
  Pacer pacer;
  Lane lane(&pacer, nullptr);
  EXPECT_EQ(lane.Admit(100, 1), 100u);
  EXPECT_EQ(lane.Admit(1u << 30, 1), pacer.options().piece_max);
}

TEST(LaneLevels, OneThatWaitsForSomethingElseKeepsItsPlace) {
  ManualClock clock;
  Pacer pacer;
  LaneDirective low;
  low.level = 7;
  ScriptedDirectives of_low(&clock, {{0, low}});
  Lane high_lane(&pacer, nullptr);
  Lane low_lane(&pacer, &of_low);
  ASSERT_GT(high_lane.Admit(1000, clock.Now()), 0u);
  for (int i = 0; i < 100; ++i) {
    clock.Advance(kMillisecond);
    high_lane.Waits(clock.Now());
    EXPECT_EQ(low_lane.Admit(1000, clock.Now()), 0u) << i;
  }
  clock.Advance(2 * pacer.options().stale_after);
  EXPECT_GT(low_lane.Admit(1000, clock.Now()), 0u) << "its owner is away";
  high_lane.Idle();
  clock.Advance(kMillisecond);
  high_lane.Waits(clock.Now());
  EXPECT_GT(low_lane.Admit(1000, clock.Now()), 0u) << "it had left";
}

}  // namespace
}  // namespace weir::transport
