#include "scheduler/turns/turns.h"

#include <cmath>

#include "tests/scheduler/turns/fabric_fixture.h"

namespace weir::scheduler {
namespace {

class Turns : public FabricFixture {};

TEST_F(Turns, OneJobAloneIsNeverHeldAndGetsTheWholeLink) {
  const LinkIndex link = Link();
  const auto lane = Lane(Job(), {link}, true);
  const auto idle = Lane(Job(), {Link()});
  Decide();
  EXPECT_FALSE(Held(lane));
  EXPECT_EQ(RateOf(lane), kRate);
  EXPECT_FALSE(Held(idle));
}

TEST_F(Turns, LanesOfOneJobShareALinkEvenly) {
  const LinkIndex link = Link();
  const auto job = Job();
  const auto a = Lane(job, {link}, true);
  const auto b = Lane(job, {link}, true);
  Decide();
  EXPECT_EQ(RateOf(a), kRate / 2);
  EXPECT_EQ(RateOf(b), kRate / 2);
}

TEST_F(Turns, OfTheLanesOfOneProcessTheOldestGoesFirstWhileItIsWorthIt) {
  const LinkIndex link = Link();
  const auto job = Job();
  const auto a = Lane(job, {link}, true);
  const auto b = Lane(job, {link}, true);
  const auto c = Lane(job, {link}, true);
  const auto other = Lane(job, {link}, true);
  for (const auto lane : {a, b, c}) state_.lanes[lane].sender = 7;
  state_.lanes[other].sender = 8;
  state_.lanes[a].since = now_;
  state_.lanes[c].since = now_;
  Left(b, 0.020 * kRate);
  Decide();
  EXPECT_DOUBLE_EQ(RateOf(b), kRate * 16 / 33);
  EXPECT_DOUBLE_EQ(RateOf(other), kRate * 16 / 33) << "another process is nobody's younger brother";
  EXPECT_DOUBLE_EQ(RateOf(a), kRate / 66);
  EXPECT_DOUBLE_EQ(RateOf(c), kRate / 66);
  Stop(b);
  Left(a, kRate);
  Decide(1);
  EXPECT_DOUBLE_EQ(RateOf(a), kRate * 16 / 33) << "of equal age: the lower number";
  Left(a, 0.019 * kRate);
  Decide(1);
  for (const auto lane : {a, c, other}) EXPECT_DOUBLE_EQ(RateOf(lane), kRate / 3);
}

TEST_F(Turns, FirstComeFirstServedAndNobodyIsInterrupted) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link});
  Decide();
  EXPECT_TRUE(Held(b)) << "an idle lane that would have to wait is held in advance";
  Start(b);
  Decide(50);
  EXPECT_FALSE(Held(a));
  EXPECT_TRUE(Held(b));
  EXPECT_EQ(RateOf(b), kRate) << "a held lane keeps its cap";
  Stop(a);
  Decide(1);
  EXPECT_FALSE(Held(b)) << "work conserving: nobody else wants the link now";
}

TEST_F(Turns, PauseShorterThanTheCoflowGapKeepsTheRight) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link}, true);
  Decide();
  Stop(a);
  Decide(5);
  EXPECT_FALSE(Held(b)) << "others use the pause";
  Start(a);
  Decide(9);
  EXPECT_FALSE(Held(a));
  EXPECT_TRUE(Held(b));
}

TEST_F(Turns, PauseAsLongAsTheCoflowGapEndsTheTurn) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link}, true);
  Decide();
  Stop(a);
  Decide(1);
  Decide(16);
  Start(a);
  Decide(1);
  EXPECT_TRUE(Held(a));
  EXPECT_FALSE(Held(b));
}

TEST_F(Turns, DirectionsAreIndependent) {
  const LinkIndex there = Link();
  const LinkIndex back = Link();
  const auto a = Lane(Job(), {there}, true);
  const auto b = Lane(Job(), {back}, true);
  Decide();
  EXPECT_FALSE(Held(a));
  EXPECT_FALSE(Held(b));
}

TEST_F(Turns, ThreeJobsOnTwoLinksLetTheDisjointPairGoTogether) {
  const LinkIndex x = Link();
  const LinkIndex y = Link();
  const auto a = Lane(Job(), {x}, true);
  const auto both = Lane(Job(), {x, y});
  const auto c = Lane(Job(), {y});
  Decide();
  Start(both);
  Decide(1);
  Start(c);
  Decide(1);
  EXPECT_FALSE(Held(a));
  EXPECT_TRUE(Held(both));
  EXPECT_FALSE(Held(c)) << "the link of a job that cannot go anyway is not kept idle";
}

TEST_F(Turns, SmallerJobInterruptsWhenItsKeyLeads) {
  const LinkIndex link = Link();
  const auto small = Job();
  const auto large = Job();
  const auto large_lane = Lane(large, {link}, true);
  const auto small_lane = Lane(small, {link});
  Profile(large, 20e6, 3000, {link});
  Profile(small, 0.5e6, 200, {link});
  Left(large_lane, 20e6);
  Decide();
  Start(small_lane);
  Left(small_lane, 0.5e6);
  Decide(1);
  EXPECT_LT(state_.jobs[small].turn.level, state_.jobs[large].turn.level);
  EXPECT_GT(state_.jobs[small].turn.key, state_.jobs[large].turn.key + 0.2);
  EXPECT_FALSE(Held(small_lane));
  EXPECT_TRUE(Held(large_lane));
}

TEST_F(Turns, SmallerJobWaitsWhileItsKeyDoesNotLead) {
  const LinkIndex link = Link();
  const auto small = Job();
  const auto large = Job();
  const auto large_lane = Lane(large, {link}, true);
  const auto small_lane = Lane(small, {link});
  Profile(large, 20e6, 3000, {link});
  Profile(small, 0.5e6, 200, {link});
  Left(large_lane, 0.1e6);
  Due(large_lane, -30'000);  // ten iterations late
  Decide();
  Start(small_lane);
  Left(small_lane, 0.5e6);
  Decide(1);
  EXPECT_FALSE(Held(large_lane));
  EXPECT_TRUE(Held(small_lane));
}

TEST_F(Turns, LargerJobNeverInterrupts) {
  const LinkIndex link = Link();
  const auto small = Job();
  const auto large = Job();
  const auto small_lane = Lane(small, {link}, true);
  const auto large_lane = Lane(large, {link});
  Profile(large, 20e6, 3000, {link});
  Profile(small, 0.5e6, 200, {link});
  Left(small_lane, 0.5e6);
  Decide();
  Start(large_lane);
  Left(large_lane, 20e6);
  Due(large_lane, -30'000);
  Decide(1);
  EXPECT_GT(state_.jobs[large].turn.key, state_.jobs[small].turn.key);
  EXPECT_FALSE(Held(small_lane));
  EXPECT_TRUE(Held(large_lane));
}

TEST_F(Turns, AmongEqualsABurstThatComputeCoversLetsAnExposedOnePass) {
  const LinkIndex link = Link();
  const auto a = Job();
  const auto b = Job();
  const auto covered = Lane(a, {link}, true);
  const auto exposed = Lane(b, {link});
  Profile(a, 4e6, 900, {link});
  Profile(b, 4e6, 900, {link});
  Due(covered, 300, true);
  Decide();
  Start(exposed);
  Due(exposed, 200);
  Decide(1);
  EXPECT_TRUE(Held(covered));
  EXPECT_FALSE(Held(exposed));
}

TEST_F(Turns, AmongEqualsTwoExposedBurstsDoNotInterruptEachOther) {
  const LinkIndex link = Link();
  const auto a = Job();
  const auto b = Job();
  const auto first = Lane(a, {link}, true);
  const auto second = Lane(b, {link});
  Profile(a, 4e6, 900, {link});
  Profile(b, 4e6, 900, {link});
  Due(first, 300);
  Decide();
  Start(second);
  Due(second, -500);
  Decide(1);
  EXPECT_FALSE(Held(first));
  EXPECT_TRUE(Held(second));
}

TEST_F(Turns, KeyIsProjectedSlowdownOverTheRootOfTheShare) {
  const LinkIndex link = Link();
  const auto job = Job();
  const auto lane = Lane(job, {link}, true);
  Profile(job, 2.5e6, 1000, {link});  // busy 0.25 s of 1 s: share 0.25
  Left(lane, 1e6);                    // 0.1 s to send
  Due(lane, 0);                       // so it would end 0.1 s late
  Decide();
  const double expected = 1.1 / 0.5 * std::pow(1.0 / 0.1, 0.1);
  EXPECT_NEAR(state_.jobs[job].turn.key, expected, 1e-9);
}

TEST_F(Turns, LevelDoesNotFollowNoiseAtItsBorder) {
  const LinkIndex link = Link();
  const auto job = Job();
  const auto lane = Lane(job, {link}, true);
  const double border = std::pow(4.0, 10);  // bytes x seconds
  Profile(job, border * 0.98, 1000, {link});
  Left(lane, 1e5);
  Decide();
  EXPECT_EQ(state_.jobs[job].turn.level, 9);
  Profile(job, border * 1.05, 1000, {link});
  Decide(10);
  EXPECT_EQ(state_.jobs[job].turn.level, 9);
  Profile(job, border * 1.4, 1000, {link});
  Decide(10);
  EXPECT_EQ(state_.jobs[job].turn.level, 10);
}

TEST_F(Turns, GuaranteedInterruptsAtOnceAndIsNeverHeldInAdvance) {
  const LinkIndex link = Link();
  const auto plain = Lane(Job(), {link}, true);
  const auto favoured = Lane(Job(JobClass::kGuaranteed), {link});
  Decide();
  EXPECT_FALSE(Held(favoured));
  Start(favoured);
  Decide(1);
  EXPECT_FALSE(Held(favoured));
  EXPECT_TRUE(Held(plain));
}

/// A guaranteed lane that begins in 50 ms, give or take 1, and somebody else who sends meanwhile.
class Clearing : public FabricFixture {
 protected:
  Clearing() {
    const LinkIndex link = Link();
    other_ = Lane(Job(), {link}, true);
    elsewhere_ = Lane(Job(), {Link()}, true);
    favoured_ = Lane(Job(JobClass::kGuaranteed), {link});
    Expect(50, 1);
  }
  void Expect(double in_ms, double deviation_ms) {
    state_.lanes[favoured_].next_known = true;
    state_.lanes[favoured_].next = now_ + static_cast<Nanoseconds>(in_ms * 1e6);
    state_.lanes[favoured_].next_deviation = static_cast<Nanoseconds>(deviation_ms * 1e6);
  }
  std::uint32_t other_ = 0, elsewhere_ = 0, favoured_ = 0;
};

TEST_F(Clearing, TheWayIsClearWhenTheGuaranteedJobBegins) {
  EXPECT_EQ(Decide().next, now_ + 46'500 * kMicrosecond) << "expectation - deviation - clear_ahead";
  EXPECT_FALSE(Held(other_));
  Decide(46.5);
  EXPECT_TRUE(Held(other_));
  EXPECT_FALSE(Held(elsewhere_));
  EXPECT_FALSE(Held(favoured_));
  Start(favoured_);
  Decide(3.5);
  EXPECT_FALSE(Held(favoured_));
  EXPECT_TRUE(Held(other_));
  Stop(favoured_);
  state_.lanes[favoured_].next_known = false;
  Decide(20);
  EXPECT_FALSE(Held(other_));
}

TEST_F(Clearing, WhoDoesNotComeIsNotWaitedForLong) {
  Decide();
  Decide(46.5);
  ASSERT_TRUE(Held(other_));
  EXPECT_EQ(decision_.next, now_ + 6'500 * kMicrosecond) << "expectation + 2 deviations + clear_past";
  Decide(6.5);
  EXPECT_FALSE(Held(other_));
  EXPECT_EQ(state_.jobs[state_.lanes[other_].job].turn.coflows, 1u) << "it is still the same turn";
  EXPECT_EQ(decision_.next, kNever);
}

TEST_F(Clearing, LanesThatAreIdleStayOutOfTheWayToo) {
  Stop(other_);
  Decide();
  EXPECT_FALSE(Held(other_));
  Decide(48);
  EXPECT_TRUE(Held(other_));
}

TEST_F(Clearing, VagueExpectationsClearNothing) {
  Expect(50, 2.1);
  EXPECT_EQ(Decide().next, kNever);
  Decide(48);
  EXPECT_FALSE(Held(other_));
}

TEST_F(Clearing, OnlyForTheGuaranteedClass) {
  state_.jobs[state_.lanes[favoured_].job].job_class = JobClass::kBestEffort;
  EXPECT_EQ(Decide().next, kNever);
  Decide(48);
  EXPECT_FALSE(Held(other_));
}

TEST_F(Clearing, AnotherGuaranteedJobIsNotSentAway) {
  state_.jobs[state_.lanes[other_].job].job_class = JobClass::kGuaranteed;
  Decide();
  Decide(48);
  EXPECT_FALSE(Held(other_));
}

TEST_F(Turns, ScavengerGoesLast) {
  const LinkIndex link = Link();
  const auto scavenger = Lane(Job(JobClass::kScavenger), {link}, true);
  const auto plain = Lane(Job(), {link});
  Decide();
  EXPECT_FALSE(Held(scavenger));
  Start(plain);
  Decide(1);
  EXPECT_TRUE(Held(scavenger));
  EXPECT_FALSE(Held(plain));
}

TEST_F(Turns, HolderWithoutProgressLosesItsTurnUntilItMoves) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link});
  state_.lanes[a].bytes_sent = 1000;
  Decide();
  Start(b);
  Decide(1);
  EXPECT_TRUE(Held(b));
  Decide(50);
  EXPECT_TRUE(Held(b)) << "within its lease";
  Decide(51);
  EXPECT_FALSE(Held(b)) << "100 ms without progress";
  state_.lanes[b].bytes_sent = 1000;
  state_.lanes[a].bytes_sent = 2000;  // it moves again: a newcomer
  Decide(10);
  EXPECT_TRUE(Held(a));
  EXPECT_FALSE(Held(b));
}

TEST_F(Turns, HolderThatMovesKeepsItsTurn) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link});
  Decide();
  Start(b);
  for (int i = 0; i < 100; ++i) {
    state_.lanes[a].bytes_sent += 1000;
    Decide(10);
    ASSERT_FALSE(Held(a)) << i;
  }
}

TEST_F(Turns, NobodyWaitsForEver) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(JobClass::kBestEffort), {link}, true);
  const auto b = Lane(Job(), {link});
  Decide();
  Start(b);
  bool went = false;
  for (int i = 0; i < 300 && !went; ++i) {
    state_.lanes[a].bytes_sent += 1000;
    Decide(10);
    went = !Held(b);
  }
  EXPECT_TRUE(went) << "still waiting after 3 s";
}

TEST_F(Turns, AdoptedLanesAreSlowedDownButNeverHeld) {
  const LinkIndex link = Link();
  Lane(Job(), {link}, true);
  const auto adopted = Lane(Job(), {link}, true);
  state_.lanes[adopted].adopted = true;
  Decide();
  EXPECT_FALSE(Held(adopted));
  EXPECT_EQ(RateOf(adopted), kAdoptedFloor) << "the link is another's";
}

TEST_F(Turns, AdoptedLaneAloneGetsTheWholeLink) {
  const auto adopted = Lane(Job(), {Link()}, true);
  state_.lanes[adopted].adopted = true;
  Decide();
  EXPECT_FALSE(Held(adopted));
  EXPECT_EQ(RateOf(adopted), kRate);
}

TEST_F(Turns, AsksToBeWokenWhileSomebodyWaitsAndNotOtherwise) {
  const LinkIndex link = Link();
  const auto a = Lane(Job(), {link}, true);
  const auto b = Lane(Job(), {link});
  EXPECT_EQ(Decide().next, kNever);
  Start(b);
  const Nanoseconds next = Decide(1).next;
  EXPECT_LE(next, now_ + 10 * kMillisecond);
  EXPECT_TRUE(decision_.lanes[a].progress);
}

class MaxMinRates : public FabricFixture {
 protected:
  MaxMinRates() : FabricFixture("max-min") {}
};

TEST_F(MaxMinRates, NobodyIsHeldAndWeightsDecide) {
  const LinkIndex link = Link();
  const auto heavy = Job();
  state_.jobs[heavy].weight = 3;
  const auto a = Lane(heavy, {link}, true);
  const auto b = Lane(Job(), {link}, true);
  Decide();
  EXPECT_FALSE(Held(a));
  EXPECT_FALSE(Held(b));
  EXPECT_NEAR(RateOf(a), 0.75 * kRate, 1);
  EXPECT_NEAR(RateOf(b), 0.25 * kRate, 1);
}

TEST_F(MaxMinRates, ClassesAreStrictButForFloors) {
  const LinkIndex link = Link();
  const auto first = Lane(Job(JobClass::kGuaranteed), {link}, true);
  const auto plain = Lane(Job(), {link}, true);
  const auto last = Lane(Job(JobClass::kScavenger), {link}, true);
  Decide();
  EXPECT_DOUBLE_EQ(RateOf(plain), 0.05 * kRate);
  EXPECT_DOUBLE_EQ(RateOf(last), kAdoptedFloor) << "1 % is less than a lane can be told";
  EXPECT_DOUBLE_EQ(RateOf(first), 0.94 * kRate);
  Stop(first);
  Decide();
  EXPECT_DOUBLE_EQ(RateOf(plain), 0.99 * kRate);
}

TEST(MakePolicy, UnknownNameListsTheKnown) {
  const auto policy = MakePolicy("sjf");
  ASSERT_FALSE(policy.has_value());
  EXPECT_NE(policy.error().message().find("turns, fifo, max-min or none"), std::string::npos);
}

}  // namespace
}  // namespace weir::scheduler
