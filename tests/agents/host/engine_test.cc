// The life of processes and lanes, and what the coordinator is told of it.
#include "agents/host/engine.h"

#include "agents/host/status_json.h"
#include "tests/agents/host/engine_fixture.h"

namespace weir::agents {
namespace {

using Phase = AgentEngine::Phase;

class LaneLife : public EngineTest {};

TEST_F(LaneLife, NewLaneIsIdleAndAsksForTheFirstWrite) {
  const LaneRef ref{Attach(), 3};
  engine_.OnLaneAppeared(now_, ref, "10.0.0.2");
  const Actions actions = Take();
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
  ASSERT_EQ(actions.arms.size(), 1u);
  EXPECT_EQ(actions.arms[0].lane, ref);
  EXPECT_TRUE(actions.arms[0].start);
  EXPECT_TRUE(actions.writes.empty());
}

TEST_F(LaneLife, FirstWriteIsToldAtOnce) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  const Actions actions = Take();
  EXPECT_EQ(At(ref).phase, Phase::kSending);
  ASSERT_EQ(Demands().size(), 1u);
  EXPECT_TRUE(Demands()[0].active());
  EXPECT_EQ(Demands()[0].bytes_waiting(), 5000u);
  ASSERT_EQ(actions.arms.size(), 1u);
  EXPECT_TRUE(actions.arms[0].drain);
}

TEST_F(LaneLife, LanesThatChangeInOneTurnShareOneMessage) {
  Connect();
  const LaneRef one = Lane();
  const LaneRef two = Lane("other");
  Write(one, 5000);
  Write(two, 5000);
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].demand_update().lanes_size(), 2);
}

TEST_F(LaneLife, NothingIsMeasuredWhileTheProcessHasARest) {
  const LaneRef ref = Lane();
  Write(ref, 5000);
  EXPECT_TRUE(Take().measures.empty());
  now_ += kSecond;
  engine_.OnTime(now_);
  EXPECT_TRUE(Take().measures.empty());
}

TEST_F(LaneLife, TakenMessageIsMeasuredAndWaitedFor) {
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  Taken(ref);
  ASSERT_EQ(Take().measures.size(), 1u);
  Measured(ref, 100'000, 50'000);
  EXPECT_EQ(At(ref).phase, Phase::kDraining);
  EXPECT_TRUE(Take().measures.empty());
  now_ = At(ref).check_at;
  engine_.OnTime(now_);
  EXPECT_EQ(Take().measures.size(), 1u);
}

TEST_F(LaneLife, NextLookComesWhenTheQueueShouldBeGone) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, 125'000, 125'000);
  EXPECT_EQ(At(ref).check_at, now_ + 10 * kMillisecond - AgentEngine::kHandOver);
  now_ += 9 * kMillisecond;
  Measured(ref, 12'000, 12'000);
  EXPECT_EQ(At(ref).check_at, now_ + AgentEngine::kMeasureMin);
}

TEST_F(LaneLife, BytesThatCameMeanwhileDoNotMakeAQueueLookSlow) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, 100'000, 100'000);
  now_ += 4 * kMillisecond;  // 50,000 bytes leave, 49,000 come.
  engine_.OnSample(now_, ref, {messages_ * 1000 + 49'000, messages_ + 1, 0, 0, false, true});
  Measured(ref, 99'000, 99'000);
  EXPECT_EQ(At(ref).check_at,
            now_ + static_cast<Nanoseconds>(TransferNanoseconds(99'000, kRate)) - AgentEngine::kHandOver);
}

TEST_F(LaneLife, QueueThatStandsStillIsAskedLessAndLess) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, 100'000);
  Nanoseconds before = 0;
  for (int i = 0; i < 8; ++i) {
    now_ = At(ref).check_at;
    Measured(ref, 100'000);
    const Nanoseconds wait = At(ref).check_at - now_;
    EXPECT_GE(wait, before);
    before = wait;
  }
  EXPECT_EQ(before, AgentEngine::kMeasureMax);
}

TEST_F(LaneLife, MessageThatFollowsAtOnceIsWatchedToItsEnd) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  // The first message's end rang; when we look, the second is under way.
  engine_.OnSample(now_, ref, {6000, ++messages_, 5000, 1, false, true});
  const Actions actions = Take();
  ASSERT_EQ(actions.arms.size(), 1u);
  EXPECT_TRUE(actions.arms[0].drain);
  EXPECT_EQ(At(ref).phase, Phase::kSending);
}

TEST_F(LaneLife, NextOneIsCalledJustBeforeTheQueueIsEmpty) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, static_cast<Bytes>(kRate * ToSeconds(AgentEngine::kHandOver)), 8'000);
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
}

TEST_F(LaneLife, NothingIsCalledBeforeTheFirstLevelIsThrough) {
  Connect();
  const LaneRef ref = Lane();
  wire::CoordinatorMessage message = Directive(At(ref).id.value, wire::GATE_GO, kRate);
  message.mutable_schedule()->mutable_directives(0)->set_level(0);
  Say(message);
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, static_cast<Bytes>(kRate * ToSeconds(AgentEngine::kHandOver)), 8'000);
  EXPECT_EQ(At(ref).phase, Phase::kDraining);
  Measured(ref, 0);
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
}

TEST_F(LaneLife, BytesUnderWayOnACappedPathHaveLeft) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, 200'000, 0, 20 * kMillisecond);  // 250,000 bytes fit into the round trip.
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
}

TEST_F(LaneLife, BytesUnderWayWithoutACapAreWaitedFor) {
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Taken(ref);
  Take();
  Measured(ref, 200'000, 0, 20 * kMillisecond);
  EXPECT_EQ(At(ref).phase, Phase::kDraining);
}

TEST_F(LaneLife, KernelThatCannotBeAskedIsAskedLater) {
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Taken(ref);
  Take();
  QueueSample unreachable;
  unreachable.reachable = false;
  engine_.OnQueueMeasured(now_, ref, unreachable);
  EXPECT_EQ(At(ref).phase, Phase::kDraining);
  EXPECT_EQ(At(ref).check_at, now_ + AgentEngine::kMeasureMax);
}

TEST_F(LaneLife, DrainedLaneIsToldIdleAndAsksForTheNextWrite) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  Taken(ref);
  Take();
  Measured(ref, 0);
  const Actions actions = Take();
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
  ASSERT_EQ(Demands().size(), 2u);
  EXPECT_FALSE(Demands()[1].active());
  ASSERT_EQ(actions.arms.size(), 1u);
  EXPECT_TRUE(actions.arms[0].start);
}

TEST_F(LaneLife, MessageThatLeftWithinTheTurnIsNotWorthAWord) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 0);
  ASSERT_EQ(Take().measures.size(), 1u);
  Measured(ref, 0);
  Take();
  EXPECT_TRUE(Demands().empty());
  EXPECT_EQ(engine_.counters().starts, 1u);
  EXPECT_EQ(engine_.counters().drains, 1u);
}

TEST_F(LaneLife, NewMessageWhileDrainingKeepsTheLaneActive) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  Taken(ref);
  Take();
  Measured(ref, 9000, 9000);
  Write(ref, 7000);
  Take();
  EXPECT_EQ(At(ref).phase, Phase::kSending);
  EXPECT_EQ(Demands().size(), 1u);
}

TEST_F(LaneLife, ProgressIsToldOnlyWhenAskedForAndWhileActive) {
  Connect();
  const LaneRef ref = Lane();
  wire::CoordinatorMessage message = Directive(At(ref).id.value, wire::GATE_GO);
  message.mutable_schedule()->mutable_directives(0)->set_progress(true);
  Say(message);
  Write(ref, 5000);
  Take();
  sent_.clear();
  now_ += AgentEngine::kProgressEvery;
  EXPECT_LE(engine_.NextDeadline(), now_);
  engine_.OnTime(now_);
  Take();
  EXPECT_EQ(Demands().size(), 1u);
  Send(ref);
  Take();
  sent_.clear();
  now_ += AgentEngine::kProgressEvery;
  engine_.OnTime(now_);
  Take();
  EXPECT_TRUE(Demands().empty());
}

TEST_F(LaneLife, DetachedProcessTakesItsLanesAlong) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  sent_.clear();
  engine_.OnProcessDetached(now_, ref.process);
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].process_detached().process(), ref.process.value);
  EXPECT_FALSE(engine_.any_active());
  EXPECT_EQ(engine_.FindLane(ref), nullptr);
  Write(ref, 10);
  engine_.OnProcessDetached(now_, ref.process);
  EXPECT_TRUE(Take().empty());
}

TEST_F(LaneLife, LaneThatGoesAwayIsToldClosed) {
  Connect();
  const LaneRef ref = Lane();
  const std::uint64_t id = At(ref).id.value;
  engine_.OnLaneGone(now_, ref);
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].lane_closed().lane(), id);
}

TEST_F(LaneLife, OneProcessTooManyIsRefused) {
  for (std::size_t i = 0; i < kMaxProcesses; ++i) Attach();
  const auto refused = engine_.OnProcessAttached(now_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(engine_.processes().size(), kMaxProcesses);
}

TEST_F(LaneLife, WildValuesFromAProcessAreSurvived) {
  const LaneRef ref = Lane();
  const Bytes most = ~Bytes{0};
  engine_.OnSample(now_, ref, {most, most, most, 1024, true, true});
  engine_.OnMessageBegun(now_, ref, -5, most);
  engine_.OnMessageBegun(now_, ref, now_ + kSecond, 1);
  engine_.OnMessageBegun(now_, ref, now_ - kSecond, 1);
  engine_.OnMessageBegun(now_, {ref.process, 77}, now_, 1);
  engine_.OnSample(now_, {ref.process, 77}, {});
  engine_.OnSample(now_, ref, {0, 0, 0, 0, false, false});
  Take();
  Measured(ref, 0);
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
}

TEST_F(LaneLife, TheStatusSaysWhereTimeWentAndHowCoflowsAreKnown) {
  LaneSample sample;
  sample.stalls = {1 * kMillisecond, 2 * kMillisecond, 3 * kMillisecond, 4 * kMillisecond};
  sample.sends = {5, 6, 7};
  const LaneRef ref = Lane();
  engine_.OnSample(now_, ref, sample);
  engine_.OnMessageBegun(now_, ref, now_, 100, client::KnownBy::kAttributes);
  engine_.OnMessageBegun(now_, ref, now_, 100, client::KnownBy::kAttributes);
  engine_.OnMessageBegun(now_, ref, now_, 100, client::KnownBy::kIdleGap);
  engine_.OnMessageBegun(now_, ref, now_, 100);
  const std::string status = StatusJson(engine_, {});
  for (const char* expected : {R"("stalls_ms":{"gpu":1E0,"credit":2E0,"network":3E0,"held":4E0})",
                               R"("coflows_known_by":{"profiler":0,"attributes":2,"idle-gap":1,"writes":1})",
                               R"("sends_known_by":{"profiler":5,"attributes":6,"idle-gap":7})"}) {
    EXPECT_NE(status.find(expected), std::string::npos) << status;
  }
}

/// A job that sends ten messages in a row, two milliseconds apart, and then computes for a second: long enough for its
/// rhythm to be known.
class Linger : public EngineTest {
 protected:
  void Train(LaneRef ref, int iterations) {
    for (int i = 0; i < iterations * 10; ++i) {
      now_ += i % 10 == 0 ? kSecond : 2 * kMillisecond;
      engine_.OnTime(now_);
      engine_.OnMessageBegun(now_, ref, now_, 100'000 + 1000 * static_cast<Bytes>(i % 10));
      Send(ref);
      Take();
    }
  }
};

TEST_F(Linger, ShortPauseInsideACoflowDoesNotGiveTheTurnAway) {
  Connect();
  const LaneRef ref = Lane();
  Train(ref, 8);
  sent_.clear();
  const std::uint64_t saved = engine_.counters().lingers_saved;
  Train(ref, 1);
  EXPECT_GE(engine_.counters().lingers_saved, saved + 8);
  EXPECT_LE(Demands().size(), 3u);
}

TEST_F(Linger, PauseThatLastsTooLongEndsIt) {
  Connect();
  const LaneRef ref = Lane();
  Train(ref, 8);
  now_ += kSecond;
  engine_.OnTime(now_);
  Take();
  engine_.OnMessageBegun(now_, ref, now_, 100'000);
  Send(ref);
  Take();
  ASSERT_EQ(At(ref).phase, Phase::kLingering);
  EXPECT_LE(At(ref).check_at, now_ + 2 * AgentEngine::kLingerGapMax + kMillisecond);
  now_ = At(ref).check_at;
  engine_.OnTime(now_);
  Take();
  EXPECT_EQ(At(ref).phase, Phase::kIdle);
  EXPECT_FALSE(Demands().back().active());
}

TEST_F(Linger, FirstLevelIsWaitedForLonger) {
  Connect();
  const LaneRef ref = Lane();
  Train(ref, 8);
  wire::CoordinatorMessage first = Directive(At(ref).id.value, wire::GATE_GO, 0);
  first.mutable_schedule()->mutable_directives(0)->set_level(0);
  Say(first);
  now_ += kSecond;
  engine_.OnMessageBegun(now_, ref, now_, 100'000);
  Send(ref);
  ASSERT_EQ(At(ref).phase, Phase::kLingering);
  EXPECT_GE(At(ref).check_at, now_ + AgentEngine::kLingerFirstLevel);
}

TEST_F(Linger, FirstLevelForetellsItsNextMessage) {
  Connect();
  const LaneRef ref = Lane();
  Train(ref, 8);
  ASSERT_EQ(At(ref).phase, Phase::kIdle);
  EXPECT_FALSE(Demands().back().next_known()) << "of no use to other levels";
  wire::CoordinatorMessage first = Directive(At(ref).id.value, wire::GATE_GO, 0);
  first.mutable_schedule()->mutable_directives(0)->set_level(0);
  Say(first);
  Train(ref, 1);
  ASSERT_EQ(At(ref).phase, Phase::kIdle);
  const wire::LaneDemand last = Demands().back();
  EXPECT_FALSE(last.active());
  ASSERT_TRUE(last.next_known());
  EXPECT_EQ(last.next_in_ns(), kSecond);
  EXPECT_EQ(last.next_deviation_ns(), 0u);
}

TEST_F(Linger, EachIterationIsToldOnce) {
  Connect();
  const LaneRef ref = Lane();
  Train(ref, 8);
  sent_.clear();
  Train(ref, 3);
  std::vector<std::uint64_t> iterations;
  for (const wire::AgentMessage& message : sent_) {
    if (message.has_profile_update()) iterations.push_back(message.profile_update().iteration());
  }
  ASSERT_EQ(iterations.size(), 3u);
  EXPECT_EQ(iterations[2], iterations[0] + 2);
}

}  // namespace
}  // namespace weir::agents
