#include "agents/host/profile_learner.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::agents {
namespace {

constexpr LaneId kLane{1};

struct Step {
  Nanoseconds think;  // before the message
  Bytes bytes;
  LaneId lane = kLane;
};

// Plays iterations of a job alone on a link of 10 MB/s: every message is begun after its think time and drained at
// rate.
class Player {
 public:
  explicit Player(std::vector<Step> steps) : steps_(std::move(steps)) {}

  void PlayStep(const Step& step, Nanoseconds hold = 0) {
    now_ += step.think;
    learner.OnMessage(now_, step.lane, step.bytes);
    if (hold > 0) learner.OnHeld(now_, now_ + hold);
    now_ += hold + static_cast<Nanoseconds>(TransferNanoseconds(static_cast<double>(step.bytes), 10e6));
    if (step.think >= 0) learner.OnDrained(now_);
  }
  // `hold` delays the first message of every iteration.
  void Play(int iterations, Nanoseconds hold = 0) {
    for (int i = 0; i < iterations; ++i) {
      for (std::size_t s = 0; s < steps_.size(); ++s) PlayStep(steps_[s], s == 0 ? hold : 0);
    }
  }

  ProfileLearner learner;

 private:
  std::vector<Step> steps_;
  Nanoseconds now_ = kSecond;
};

const std::vector<Step> kTwoBuckets = {{400 * kMillisecond, 1'500'000}, {160 * kMillisecond, 2'500'000}};

TEST(ProfileLearner, KnowsNothingBeforeTwoIterations) {
  Player player(kTwoBuckets);
  player.Play(1);
  EXPECT_EQ(player.learner.profile().confidence, 0);
  EXPECT_EQ(player.learner.profile().bytes_total, 0u);
  EXPECT_FALSE(player.learner.ExpectedGap().has_value());
}

TEST(ProfileLearner, TwoIterationsGiveBytesPeriodAndBorder) {
  Player player(kTwoBuckets);
  player.Play(2);
  const Profile& profile = player.learner.profile();
  EXPECT_EQ(profile.bytes_total, 4'000'000u);
  EXPECT_EQ(profile.bytes_left, 0u);
  EXPECT_EQ(profile.period, 960 * kMillisecond);
  EXPECT_EQ(profile.alone, 960 * kMillisecond);
  EXPECT_GE(profile.confidence, 0.5);
  EXPECT_EQ(profile.iteration_started, kSecond + 2 * 960 * kMillisecond);
}

TEST(ProfileLearner, ParameterBroadcastBeforeTheFirstIterationIsForgotten) {
  Player player(kTwoBuckets);
  for (Bytes bytes : {24'000'000u, 5'000u, 70'000u}) player.PlayStep({10 * kMillisecond, bytes});
  player.Play(3);
  EXPECT_EQ(player.learner.profile().bytes_total, 4'000'000u);
  EXPECT_GE(player.learner.profile().confidence, 0.5);
}

TEST(ProfileLearner, BytesLeftCountsTheMessagesNotBegun) {
  Player player(kTwoBuckets);
  player.Play(3);
  player.PlayStep(kTwoBuckets[0]);
  EXPECT_EQ(player.learner.profile().bytes_left, 2'500'000u);
  ASSERT_EQ(player.learner.profile().lanes.size(), 1u);
  EXPECT_EQ(player.learner.profile().lanes[0].bytes, 4'000'000u);
  EXPECT_EQ(player.learner.profile().lanes[0].bytes_left, 2'500'000u);
  EXPECT_EQ(player.learner.ExpectedGap(), 160 * kMillisecond);
}

TEST(ProfileLearner, TheNextMessageIsForeseenOnceNothingIsInFlight) {
  Player player(kTwoBuckets);
  player.Play(1);
  EXPECT_FALSE(player.learner.ExpectedNext().has_value());
  player.Play(3);
  const Nanoseconds drained = kSecond + 4 * 960 * kMillisecond;
  auto next = player.learner.ExpectedNext();
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->lane, kLane);
  EXPECT_EQ(next->at, drained + 400 * kMillisecond);
  EXPECT_EQ(next->deviation, 0);
  player.learner.OnMessage(drained + 400 * kMillisecond, kLane, 1'500'000);
  EXPECT_FALSE(player.learner.ExpectedNext().has_value());
  player.learner.OnDrained(drained + 550 * kMillisecond);
  EXPECT_EQ(player.learner.ExpectedNext()->at, drained + 710 * kMillisecond);
}

TEST(ProfileLearner, DeviationOfTheExpectationIsLearned) {
  Player player({});
  for (int i = 0; i < 40; ++i) player.PlayStep({(100 + (i % 2 == 0 ? 4 : -4)) * kMillisecond, 1'000'000});
  const auto next = player.learner.ExpectedNext();
  ASSERT_TRUE(next.has_value());
  EXPECT_GT(next->deviation, 3 * kMillisecond);
  EXPECT_LT(next->deviation, 8 * kMillisecond);
}

TEST(ProfileLearner, EqualMessagesAreToldApartByThinkTime) {
  Player player(
      {{300 * kMillisecond, 100'000}, {kMillisecond, 100'000}, {kMillisecond, 100'000}, {kMillisecond, 100'000}});
  player.Play(4);
  EXPECT_EQ(player.learner.profile().bytes_total, 400'000u);
  EXPECT_EQ(player.learner.profile().period, 343 * kMillisecond);
}

TEST(ProfileLearner, SpacedMessagesOfOneIterationAreNotIterations) {
  Player player({{200 * kMillisecond, 400'000},
                 {8 * kMillisecond, 400'000},
                 {9 * kMillisecond, 400'000},
                 {8 * kMillisecond, 400'000}});
  player.Play(6);
  EXPECT_EQ(player.learner.profile().bytes_total, 1'600'000u);
  EXPECT_EQ(player.learner.profile().period, 385 * kMillisecond);
}

TEST(ProfileLearner, ExposedHoldsDoNotCountAsTimeAlone) {
  Player player(kTwoBuckets);
  player.Play(8, 150 * kMillisecond);
  EXPECT_EQ(player.learner.profile().period, 1110 * kMillisecond);
  EXPECT_EQ(player.learner.profile().alone, 960 * kMillisecond);
}

TEST(ProfileLearner, TimeAloneIsNeverAboveTheShortestPeriod) {
  Player player(kTwoBuckets);
  player.Play(4);
  player.Play(8, 150 * kMillisecond);
  EXPECT_EQ(player.learner.profile().alone, 960 * kMillisecond);
}

TEST(ProfileLearner, LanesAreSummedApart) {
  const LaneId other{2};
  Player player({{200 * kMillisecond, 1'000'000}, {kMillisecond, 500'000, other}});
  player.Play(3);
  ASSERT_EQ(player.learner.profile().lanes.size(), 2u);
  EXPECT_EQ(player.learner.profile().lanes[0].bytes, 1'000'000u);
  EXPECT_EQ(player.learner.profile().lanes[1].bytes, 500'000u);
}

TEST(ProfileLearner, AChangedPatternLowersConfidenceAndIsLearnedAnew) {
  Player player(kTwoBuckets);
  player.Play(6);
  const double before = player.learner.profile().confidence;
  player.PlayStep({10 * kMillisecond, 9'000'000});
  EXPECT_LT(player.learner.profile().confidence, before);
  Player other({{100 * kMillisecond, 700'000}, {20 * kMillisecond, 300'000}});
  other.learner = player.learner;
  other.Play(1 + 10);
  EXPECT_EQ(other.learner.profile().bytes_total, 1'000'000u);
  EXPECT_EQ(other.learner.profile().period, 220 * kMillisecond);
}

TEST(ProfileLearner, SizesThatVaryByFramingAreTheSameStep) {
  Player player({});
  for (int i = 0; i < 4; ++i) {
    player.PlayStep({300 * kMillisecond, 1'000'000 + static_cast<Bytes>(i) * 900});
    player.PlayStep({5 * kMillisecond, 200'000 - static_cast<Bytes>(i) * 100});
  }
  EXPECT_GE(player.learner.profile().confidence, 0.5);
}

// Drives two buckets whose first is overlapped with compute: the second begins on time unless the first is still held.
void PlayOverlapped(ProfileLearner& learner, Nanoseconds& now, Nanoseconds hold) {
  const Nanoseconds start = now;
  learner.OnMessage(start + 400 * kMillisecond, kLane, 1'500'000);
  if (hold > 0) learner.OnHeld(start + 400 * kMillisecond, start + 400 * kMillisecond + hold);
  learner.OnDrained(start + 550 * kMillisecond + hold);
  learner.OnMessage(start + 700 * kMillisecond, kLane, 2'500'000);
  learner.OnDrained(start + 950 * kMillisecond);
  now = start + 950 * kMillisecond;
}

TEST(ProfileLearner, BurstThatDoesNotDelayTheNextWhenHeldIsOverlapped) {
  ProfileLearner learner;
  Nanoseconds now = kSecond;
  for (int i = 0; i < 4; ++i) PlayOverlapped(learner, now, 0);
  for (int i = 0; i < 3; ++i) PlayOverlapped(learner, now, 60 * kMillisecond);
  learner.OnMessage(now + 400 * kMillisecond, kLane, 1'500'000);
  ASSERT_TRUE(learner.CurrentDue().has_value());
  EXPECT_TRUE(learner.CurrentDue()->overlapped);
  EXPECT_EQ(learner.CurrentDue()->at, now + 700 * kMillisecond);
  learner.OnDrained(now + 550 * kMillisecond);
  learner.OnMessage(now + 700 * kMillisecond, kLane, 2'500'000);
  EXPECT_FALSE(learner.CurrentDue()->overlapped);
  EXPECT_EQ(learner.CurrentDue()->at, now + 950 * kMillisecond);
}

TEST(ProfileLearner, BurstThatDelaysTheNextWhenHeldIsNotOverlapped) {
  Player player(kTwoBuckets);
  player.Play(3);
  player.Play(4, 60 * kMillisecond);
  player.PlayStep(kTwoBuckets[0]);
  ASSERT_TRUE(player.learner.CurrentDue().has_value());
  EXPECT_FALSE(player.learner.CurrentDue()->overlapped);
}

TEST(ProfileLearner, BurstThatAPeerWaitsForIsNotOverlappedThoughTheSenderGoesOn) {
  ProfileLearner learner;
  Nanoseconds now = kSecond;
  const auto play = [&](Nanoseconds hold) {
    learner.OnMessage(now + 200 * kMillisecond, kLane, 500'000);
    if (hold > 0) learner.OnHeld(now + 200 * kMillisecond, now + 200 * kMillisecond + hold);
    learner.OnDrained(now + 240 * kMillisecond + std::min(hold, 20 * kMillisecond));
    learner.OnMessage(now + 270 * kMillisecond, kLane, 400'000);
    learner.OnDrained(now + 310 * kMillisecond);
    now += 310 * kMillisecond + hold;  // The next iteration waits for a peer that was late.
  };
  for (int i = 0; i < 4; ++i) play(0);
  for (int i = 0; i < 4; ++i) play(60 * kMillisecond);
  learner.OnMessage(now + 200 * kMillisecond, kLane, 500'000);
  ASSERT_TRUE(learner.CurrentDue().has_value());
  EXPECT_FALSE(learner.CurrentDue()->overlapped);
}

TEST(ProfileLearner, OvertakingInsideAnIterationDoesNotBreakThePattern) {
  ProfileLearner learner;
  Nanoseconds now = kSecond;
  const auto play = [&](std::vector<Bytes> sizes) {
    now += 300 * kMillisecond;
    for (Bytes bytes : sizes) {
      learner.OnMessage(now, kLane, bytes);
      now += kMillisecond;
    }
    learner.OnDrained(now);
  };
  for (int i = 0; i < 4; ++i) play({700'000, 700'000, 200'000, 200'000});
  const double before = learner.profile().confidence;
  play({700'000, 200'000, 700'000, 200'000});
  play({700'000, 700'000, 200'000, 200'000});
  EXPECT_GT(learner.profile().confidence, before);
  EXPECT_EQ(learner.profile().bytes_total, 1'800'000u);
}

TEST(ProfileLearner, RandomSizesNeverLookPeriodic) {
  Player player({});
  Bytes size = 12345;
  for (int i = 0; i < 400; ++i) {
    size = size * 6364136223846793005u + 1442695040888963407u;
    player.PlayStep({10 * kMillisecond, 10'000 + size % 10'000'000});
  }
  EXPECT_LT(player.learner.profile().confidence, 0.5);
}

}  // namespace
}  // namespace weir::agents
