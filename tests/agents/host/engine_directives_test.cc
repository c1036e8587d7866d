// Directives, their time to live, reconnecting, and what replaces the coordinator when it is silent.
#include "agents/client/segment.h"
#include "agents/host/engine.h"
#include "tests/agents/host/engine_fixture.h"

namespace weir::agents {
namespace {

class Directives : public EngineTest {};

TEST_F(Directives, HoldClosesTheGateWithABound) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  const Actions actions = Take();
  ASSERT_EQ(actions.writes.size(), 1u);
  EXPECT_TRUE(actions.writes[0].control.hold);
  EXPECT_TRUE(actions.writes[0].wake);
  EXPECT_GT(actions.writes[0].control.hold_until, now_);
  EXPECT_LE(actions.writes[0].control.hold_until, now_ + client::kHoldMax_ns);
}

TEST_F(Directives, ScheduleIsAnsweredWithItsSequence) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].applied().epoch(), kEpoch);
  EXPECT_EQ(sent_[0].applied().sequence(), 1u);
  EXPECT_EQ(sent_[0].applied().refused_size(), 0);
}

TEST_F(Directives, SameDirectiveAgainWakesNobody) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  Take();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  EXPECT_TRUE(Take().writes.empty());
}

TEST_F(Directives, RateIsSharedByTheSocketsThatSend) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Actions actions = Take();
  ASSERT_EQ(actions.writes.size(), 1u);
  EXPECT_EQ(actions.writes[0].control.pacing_rate, 12'500'000u);
  EXPECT_EQ(actions.writes[0].control.notsent_lowat, 25'000u);  // 2 ms at the rate.
  engine_.OnSample(now_, ref, {1, 1, 5000, 4, true, false});
  actions = Take();
  ASSERT_EQ(actions.writes.size(), 1u);
  EXPECT_EQ(actions.writes[0].control.pacing_rate, 3'125'000u);
}

TEST_F(Directives, RateNeverFallsBelowWhatAProcessCanLiveWith) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, 1));
  EXPECT_EQ(Take().writes.at(0).control.pacing_rate, static_cast<std::uint64_t>(AgentEngine::kRateFloor));
}

TEST_F(Directives, WithoutARateNothingIsCapped) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  const LaneControl control = Take().writes.at(0).control;
  EXPECT_EQ(control.pacing_rate, 0u);
  EXPECT_EQ(control.notsent_lowat, 0u);
  EXPECT_EQ(control.marks, 0u);
}

TEST_F(Directives, UnmanagedLaneIsLeftAlone) {
  Connect();
  const LaneRef ref = Lane();
  wire::CoordinatorMessage message = Directive(At(ref).id.value, wire::GATE_HOLD, kRate);
  message.mutable_schedule()->mutable_directives(0)->set_unmanaged(true);
  Say(message);
  EXPECT_TRUE(Take().writes.empty());
}

TEST_F(Directives, WrongOnesAreRefusedOneByOne) {
  Connect();
  const LaneRef ref = Lane();
  const std::uint64_t id = At(ref).id.value;
  wire::CoordinatorMessage message = Directive(4242, wire::GATE_HOLD);
  const auto add = [&](double rate, std::uint32_t level, int gate) {
    wire::Directive* directive = message.mutable_schedule()->add_directives();
    directive->set_lane(id);
    directive->set_rate(rate);
    directive->set_level(level);
    directive->set_gate(static_cast<wire::Gate>(gate));
  };
  add(-1, 0, 0);
  add(std::numeric_limits<double>::quiet_NaN(), 0, 0);
  add(1e13, 0, 0);
  add(0, 8, 0);
  add(0, 0, 5);
  add(kRate, 7, 0);
  Say(message);
  const Actions actions = Take();
  EXPECT_EQ(sent_.at(0).applied().refused_size(), 6);
  EXPECT_EQ(engine_.counters().directives_refused, 6u);
  EXPECT_EQ(actions.writes.size(), 1u);
  EXPECT_FALSE(actions.disconnect);
}

TEST_F(Directives, OldEpochAndOldSequenceAreIgnored) {
  Connect();
  const LaneRef ref = Lane();
  wire::CoordinatorMessage message = Directive(At(ref).id.value, wire::GATE_HOLD);
  message.mutable_schedule()->set_epoch(kEpoch - 1);
  Say(message);
  message.mutable_schedule()->set_epoch(kEpoch);
  message.mutable_schedule()->set_sequence(0);
  Say(message);
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(engine_.counters().stale, 2u);
}

TEST_F(Directives, FullScheduleTakesThemFromLanesItLeavesOut) {
  Connect();
  const LaneRef one = Lane();
  const LaneRef two = Lane("other");
  Say(Directive(At(one).id.value, wire::GATE_HOLD));
  Take();
  wire::CoordinatorMessage message = Directive(At(two).id.value, wire::GATE_HOLD);
  message.mutable_schedule()->set_full(true);
  Say(message);
  Take();
  EXPECT_FALSE(At(one).written.hold);
  EXPECT_TRUE(At(two).written.hold);
}

TEST_F(Directives, HoldsAreRenewedWithoutWaking) {
  Connect();
  const LaneRef ref = Lane();
  engine_.OnTime(now_);
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  Take();
  now_ += AgentEngine::kHeartbeat;
  engine_.OnTime(now_);
  const Actions actions = Take();
  ASSERT_EQ(actions.writes.size(), 1u);
  EXPECT_FALSE(actions.writes[0].wake);
  EXPECT_TRUE(actions.writes[0].control.hold);
}

TEST_F(Directives, TimeHeldIsCounted) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  Take();
  now_ += kSecond;  // Held without demand: nobody waits.
  Write(ref, 5000);
  Take();
  now_ += 30 * kMillisecond;
  Say(Directive(At(ref).id.value, wire::GATE_GO));
  Take();
  EXPECT_EQ(At(ref).held.total, 30 * kMillisecond);
  now_ += kSecond;
  EXPECT_EQ(At(ref).held.since, 0);
}

TEST_F(Directives, AdoptedProcessIsSlowedInsteadOfHeld) {
  Connect();
  const LaneRef ref{Attach("llama", true), 0};
  engine_.OnLaneAppeared(now_, ref, "10.0.0.2");
  Say(Directive(At(ref).id.value, wire::GATE_HOLD, kRate));
  const LaneControl control = Take().writes.at(0).control;
  EXPECT_FALSE(control.hold);
  EXPECT_EQ(control.pacing_rate, static_cast<std::uint64_t>(AgentEngine::kRateFloor));
}

TEST_F(Directives, RefusalAfterTheWelcomeIsSaidOnceAndTheRestGoesOn) {
  Connect();
  const LaneRef ref = Lane();
  wire::CoordinatorMessage refuse;
  refuse.mutable_refuse()->set_reason("too many jobs");
  Say(refuse);
  const Actions first = Take();
  EXPECT_FALSE(first.disconnect);
  EXPECT_EQ(first.refusal, "too many jobs");
  Say(refuse);
  EXPECT_TRUE(Take().refusal.empty());
  EXPECT_EQ(engine_.counters().refusals, 2u);
  Say(Directive(At(ref).id.value, wire::GATE_HOLD, kRate));
  EXPECT_TRUE(Take().writes.at(0).control.hold);
}

TEST_F(Directives, RefusalInsteadOfAWelcomeEndsTheConnection) {
  engine_.OnConnected(now_);
  Take();
  wire::CoordinatorMessage refuse;
  refuse.mutable_refuse()->set_reason("version 1 is not spoken here");
  Say(refuse);
  const Actions actions = Take();
  EXPECT_TRUE(actions.disconnect);
  EXPECT_NE(actions.disconnect_reason.find("version 1 is not spoken here"), std::string::npos);
}

TEST_F(Directives, CoordinatorThatDoesNotKnowTheHostIsToldApart) {
  Connect();
  EXPECT_FALSE(engine_.host_unknown());
  engine_.OnDisconnected(now_);
  engine_.OnConnected(now_);
  wire::CoordinatorMessage message;
  message.mutable_welcome()->set_epoch(kEpoch);
  message.mutable_welcome()->set_host_unknown(true);
  Say(message);
  EXPECT_TRUE(engine_.host_unknown());
}

/// An engine that marks, with one lane, and a coordinator that changes the lane's level.
class Marks : public ::testing::Test {
 protected:
  static EngineOptions Options() {
    EngineOptions options;
    options.marks = true;
    return options;
  }
  Marks() {
    engine_.OnLaneAppeared(1, ref_, "10.0.0.2");
    engine_.OnConnected(1);
    wire::CoordinatorMessage welcome;
    welcome.mutable_welcome()->set_epoch(1);
    engine_.OnCoordinatorMessage(1, welcome.SerializeAsString());
  }
  std::uint32_t AtLevel(std::uint32_t level) {
    wire::CoordinatorMessage message;
    message.mutable_schedule()->set_epoch(1);
    message.mutable_schedule()->set_sequence(++sequence_);
    wire::Directive* directive = message.mutable_schedule()->add_directives();
    directive->set_lane(engine_.FindLane(ref_)->id.value);
    directive->set_level(level);
    engine_.OnCoordinatorMessage(1, message.SerializeAsString());
    return engine_.FindLane(ref_)->written.marks;
  }

  AgentEngine engine_{Options()};
  const LaneRef ref_{*engine_.OnProcessAttached(1, {}), 0};
  std::uint64_t sequence_ = 0;
};

TEST_F(Marks, AreSetOnceAndNeverChange) {
  const std::uint32_t marks = AtLevel(0);
  EXPECT_NE(marks, 0u);
  EXPECT_EQ(AtLevel(7), marks);
}

class MarksOfLevel : public Marks, public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(MarksOfLevel, AreThoseOfTheDocumentation) {
  constexpr std::uint32_t kDscp[] = {34, 36, 26, 28, 18, 20, 10, 8};
  constexpr std::uint32_t kPriority[] = {6, 6, 4, 4, 0, 0, 2, 2};
  EXPECT_EQ(AtLevel(GetParam()), 1u << 31 | kPriority[GetParam()] << 8 | kDscp[GetParam()] << 2);
}

INSTANTIATE_TEST_SUITE_P(All, MarksOfLevel, ::testing::Range(0u, 8u));

class Silence : public EngineTest {};

TEST_F(Silence, HoldsBridgeARestartOfTheCoordinatorAndNoMore) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD, kRate));
  Take();
  engine_.OnDisconnected(now_);
  now_ += 299 * kMillisecond;
  engine_.OnTime(now_);
  EXPECT_TRUE(At(ref).written.hold);
  EXPECT_LE(engine_.NextDeadline(), now_ + kMillisecond);
  now_ += kMillisecond;
  engine_.OnTime(now_);
  EXPECT_FALSE(At(ref).written.hold);
  EXPECT_GT(At(ref).written.pacing_rate, 0u);
  Connect();
  EXPECT_FALSE(At(ref).written.hold) << "a hold of the lost connection came back";
}

TEST_F(Silence, CapsOutliveTheConnectionUntilTheirTimeIsOver) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_GO, kRate));
  Take();
  engine_.OnDisconnected(now_);
  now_ += 1999 * kMillisecond;
  engine_.OnTime(now_);
  EXPECT_GT(At(ref).written.pacing_rate, 0u);
  EXPECT_LE(engine_.NextDeadline(), now_ + kMillisecond);
  now_ += kMillisecond;
  engine_.OnTime(now_);
  Take();
  EXPECT_TRUE(engine_.in_fallback());
  EXPECT_TRUE(At(ref).written.SameAs(LaneControl()));
  EXPECT_EQ(engine_.counters().fallbacks, 1u);
}

TEST_F(Silence, OneWordBringsTheDirectivesBack) {
  Connect();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  now_ += 3 * kSecond;
  engine_.OnTime(now_);
  EXPECT_FALSE(At(ref).written.hold);
  wire::CoordinatorMessage pong;
  pong.mutable_pong();
  Say(pong);
  EXPECT_TRUE(At(ref).written.hold);
}

TEST_F(Silence, ReconnectAnnouncesEverythingAgain) {
  Connect();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  Take();
  engine_.OnDisconnected(now_);
  sent_.clear();
  engine_.OnConnected(now_);
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].hello().host(), "node1");
  EXPECT_EQ(sent_[0].hello().instance(), 99u);
  EXPECT_EQ(sent_[0].hello().addresses(0), "10.0.0.1");
  sent_.clear();
  Welcome(kEpoch + 1);
  Take();
  ASSERT_EQ(sent_.size(), 3u);
  EXPECT_EQ(sent_[0].process_attached().process(), ref.process.value);
  EXPECT_EQ(sent_[0].process_attached().job().name(), "llama");
  EXPECT_EQ(sent_[1].lane_opened().peer_address(), "10.0.0.2");
  EXPECT_TRUE(sent_[2].demand_update().lanes(0).active());
  EXPECT_EQ(engine_.epoch(), kEpoch + 1);
}

TEST_F(Silence, NothingIsSaidBeforeTheWelcome) {
  engine_.OnConnected(now_);
  Take();
  sent_.clear();
  const LaneRef ref = Lane();
  Write(ref, 5000);
  now_ += kSecond;
  engine_.OnTime(now_);
  Take();
  EXPECT_TRUE(sent_.empty());
}

TEST_F(Silence, HeartbeatsFollowTheWelcome) {
  Connect();
  now_ += AgentEngine::kHeartbeat;
  EXPECT_LE(engine_.NextDeadline(), now_);
  engine_.OnTime(now_);
  Take();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].heartbeat().now_ns(), now_);
}

class Strangers : public EngineTest {};

TEST_F(Strangers, GarbageEndsTheConnection) {
  Connect();
  engine_.OnCoordinatorMessage(now_, "\xff\xff\xff not a message");
  EXPECT_TRUE(Take().disconnect);
  engine_.OnCoordinatorMessage(now_, "");
  EXPECT_TRUE(Take().disconnect);
  EXPECT_EQ(engine_.counters().garbage, 2u);
}

TEST_F(Strangers, ScheduleBeforeTheWelcomeEndsTheConnection) {
  engine_.OnConnected(now_);
  Take();
  const LaneRef ref = Lane();
  Say(Directive(At(ref).id.value, wire::GATE_HOLD));
  EXPECT_TRUE(Take().disconnect);
  EXPECT_FALSE(At(ref).written.hold);
}

TEST_F(Strangers, SecondWelcomeEndsTheConnection) {
  Connect();
  Welcome();
  EXPECT_TRUE(Take().disconnect);
}

TEST_F(Strangers, LeaderOfAnOlderEpochIsRefused) {
  Connect();
  engine_.OnDisconnected(now_);
  engine_.OnConnected(now_);
  Welcome(kEpoch - 1);
  EXPECT_TRUE(Take().disconnect);
  EXPECT_FALSE(engine_.connected());
  EXPECT_EQ(engine_.counters().stale, 1u);
}

TEST_F(Strangers, RefusalEndsTheConnection) {
  engine_.OnConnected(now_);
  wire::CoordinatorMessage message;
  message.mutable_refuse()->set_reason("no such host");
  Say(message);
  EXPECT_TRUE(Take().disconnect);
}

class LocalTurns : public EngineTest {
 protected:
  LocalTurns() : EngineTest(LocalPolicy::kFifo) {}
};

TEST_F(LocalTurns, FirstJobHoldsTheOthersBack) {
  const LaneRef one = Lane("one");
  const LaneRef two = Lane("two");
  Write(one, 5000);
  EXPECT_FALSE(At(one).written.hold);
  EXPECT_TRUE(At(two).written.hold);
  Write(two, 5000);
  EXPECT_TRUE(At(two).written.hold);
  Take();
  Taken(one);
  Take();
  Measured(one, 0);
  EXPECT_FALSE(At(two).written.hold);
  EXPECT_TRUE(At(one).written.hold);
}

TEST_F(LocalTurns, TurnEndsByTime) {
  const LaneRef one = Lane("one");
  const LaneRef two = Lane("two");
  Write(one, 5000);
  Write(two, 5000);
  Take();
  now_ += LocalFifo::kTurnMax;
  EXPECT_LE(engine_.NextDeadline(), now_);
  engine_.OnTime(now_);
  EXPECT_TRUE(At(one).written.hold);
  EXPECT_FALSE(At(two).written.hold);
}

TEST_F(LocalTurns, EndWhenTheCoordinatorSpeaks) {
  const LaneRef one = Lane("one");
  const LaneRef two = Lane("two");
  Write(one, 5000);
  Connect();
  EXPECT_FALSE(At(one).written.hold);
  EXPECT_FALSE(At(two).written.hold);
}

TEST_F(LocalTurns, JobThatDiesGivesItsTurnAway) {
  const LaneRef one = Lane("one");
  const LaneRef two = Lane("two");
  Write(one, 5000);
  Write(two, 5000);
  engine_.OnProcessDetached(now_, one.process);
  EXPECT_FALSE(At(two).written.hold);
}

}  // namespace
}  // namespace weir::agents
