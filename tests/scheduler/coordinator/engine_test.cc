#include "scheduler/coordinator/engine.h"

#include <gtest/gtest.h>

#include <map>

#include "coflow/directive.h"
#include "coflow/wire/weir.pb.h"
#include "scheduler/coordinator/status_json.h"

namespace weir::scheduler {
namespace {

constexpr BytesPerSecond kWan = 12.5e6;

/// Two sites, two hosts each (h0, h1 | h2, h3), an engine, and agents that say what the test lets them say.
class CoordinatorEngineTest : public ::testing::Test {
 protected:
  CoordinatorEngineTest() : engine_(topology_, std::move(*MakePolicy("turns")), 7) {}

  /// Everything the engine wants done after one event.
  struct Outcome {
    std::vector<std::pair<std::uint64_t, std::shared_ptr<const wire::CoordinatorMessage>>> sent;
    std::vector<std::uint64_t> dropped;
    std::size_t logged = 0;
    const wire::CoordinatorMessage* Last(std::uint64_t connection, wire::CoordinatorMessage::KindCase kind) const {
      const wire::CoordinatorMessage* last = nullptr;
      for (const auto& [to, message] : sent) {
        if (to == connection && message->kind_case() == kind) last = message.get();
      }
      return last;
    }
  };

  Outcome Step(Nanoseconds after = 0) {
    now_ += after;
    Outcome outcome;
    for (const Action& action : engine_.Step(now_)) {
      if (action.kind == Action::Kind::kLog) ++outcome.logged;
      if (action.kind == Action::Kind::kDrop) outcome.dropped.push_back(action.connection.value);
      if (action.kind != Action::Kind::kSend) continue;
      outcome.sent.emplace_back(action.connection.value, action.message);
      if (action.message->kind_case() != wire::CoordinatorMessage::kSchedule) continue;
      for (const wire::Directive& directive : action.message->schedule().directives()) {
        told_[{action.connection.value, directive.lane()}] = directive;
      }
    }
    return outcome;
  }
  void Say(std::uint64_t connection, const wire::AgentMessage& message) {
    engine_.OnMessage(now_, ConnectionId(connection), message);
  }
  void Connect(std::uint64_t connection) { engine_.OnConnect(now_, ConnectionId(connection), "test"); }
  void Hello(std::uint64_t connection, const std::string& host, std::uint32_t version = 1, std::uint64_t instance = 0) {
    wire::AgentMessage message;
    message.mutable_hello()->set_protocol_version(version);
    message.mutable_hello()->set_host(host);
    message.mutable_hello()->set_instance(instance == 0 ? connection : instance);
    Say(connection, message);
  }
  void Attach(std::uint64_t connection, std::uint64_t process, const std::string& job,
              const std::string& job_class = "") {
    wire::AgentMessage message;
    message.mutable_process_attached()->set_process(process);
    message.mutable_process_attached()->mutable_job()->set_name(job);
    message.mutable_process_attached()->mutable_job()->set_job_class(job_class);
    Say(connection, message);
  }
  void Lane(std::uint64_t connection, std::uint64_t lane, std::uint64_t process, const std::string& peer) {
    wire::AgentMessage message;
    message.mutable_lane_opened()->set_lane(lane);
    message.mutable_lane_opened()->set_process(process);
    message.mutable_lane_opened()->set_peer_address(peer);
    Say(connection, message);
  }
  void Demand(std::uint64_t connection, std::uint64_t lane, bool active, std::uint64_t sent = 0) {
    wire::AgentMessage message;
    wire::LaneDemand* demand = message.mutable_demand_update()->add_lanes();
    demand->set_lane(lane);
    demand->set_active(active);
    demand->set_bytes_sent(sent);
    Say(connection, message);
  }
  void Detach(std::uint64_t connection, std::uint64_t process) {
    wire::AgentMessage message;
    message.mutable_process_detached()->set_process(process);
    Say(connection, message);
  }
  void RefuseDirective(std::uint64_t connection, std::uint64_t lane, std::uint64_t sequence) {
    wire::AgentMessage message;
    message.mutable_applied()->set_epoch(7);
    message.mutable_applied()->set_sequence(sequence);
    message.mutable_applied()->add_refused()->set_lane(lane);
    Say(connection, message);
  }
  void Heartbeat(std::uint64_t connection) {
    wire::AgentMessage message;
    message.mutable_heartbeat()->set_now_ns(1);
    Say(connection, message);
  }
  std::string Address(const char* host) const {
    return topology_.FindHost(std::string_view(host))->addresses[0].ToString();
  }
  /// Jobs "a" on h0 and "b" on h1, both sending to the other site: they meet on its link.
  void TwoJobs() {
    Connect(1);
    Connect(2);
    Hello(1, "h0");
    Hello(2, "h1");
    Attach(1, 1, "a");
    Attach(2, 1, "b");
    Lane(1, 1, 1, Address("h2"));
    Lane(2, 1, 1, Address("h3"));
    Step();
  }
  bool Held(std::uint64_t connection, std::uint64_t lane = 1) const {
    return told_.at({connection, lane}).gate() == wire::GATE_HOLD;
  }

  const Topology topology_ = Topology::MultiSite(2, 2, 2 * kWan, kWan);
  CoordinatorEngine engine_;
  Nanoseconds now_ = kSecond;
  std::map<std::pair<std::uint64_t, std::uint64_t>, wire::Directive> told_;
};

TEST_F(CoordinatorEngineTest, HelloIsAnsweredWithEpochHeartbeatAndTtl) {
  Connect(1);
  Hello(1, "h0");
  const Outcome outcome = Step();
  const auto* welcome = outcome.Last(1, wire::CoordinatorMessage::kWelcome);
  ASSERT_NE(welcome, nullptr);
  EXPECT_EQ(welcome->welcome().epoch(), 7u);
  EXPECT_EQ(welcome->welcome().heartbeat_ms(), 100u);
  EXPECT_EQ(welcome->welcome().ttl_ms(), 2000u);
}

TEST_F(CoordinatorEngineTest, WrongVersionIsDroppedWithAReason) {
  Connect(1);
  Hello(1, "h0", 9);
  const Outcome outcome = Step();
  EXPECT_EQ(outcome.dropped, std::vector<std::uint64_t>{1});
  const auto* refuse = outcome.Last(1, wire::CoordinatorMessage::kRefuse);
  ASSERT_NE(refuse, nullptr);
  EXPECT_NE(refuse->refuse().reason().find("version 9"), std::string::npos);
}

TEST_F(CoordinatorEngineTest, AnythingBeforeTheHelloIsDropped) {
  Connect(1);
  Demand(1, 1, true);
  EXPECT_EQ(Step().dropped, std::vector<std::uint64_t>{1});
}

TEST_F(CoordinatorEngineTest, SecondHelloOnOneConnectionIsDropped) {
  Connect(1);
  Hello(1, "h0");
  Hello(1, "h0");
  EXPECT_EQ(Step().dropped, std::vector<std::uint64_t>{1});
}

TEST_F(CoordinatorEngineTest, NewerConnectionOfAnAgentReplacesTheOlder) {
  Connect(1);
  Hello(1, "h0", 1, 99);
  Connect(2);
  Hello(2, "h0", 1, 99);
  const Outcome outcome = Step();
  EXPECT_EQ(outcome.dropped, std::vector<std::uint64_t>{1});
  EXPECT_EQ(engine_.agents().size(), 1u);
}

TEST_F(CoordinatorEngineTest, SecondAgentUnderANameIsRefusedWhileTheFirstIsHeard) {
  Connect(1);
  Hello(1, "h0");
  Step();
  for (const std::size_t logged : {1u, 0u}) {  // It comes again at once: said once.
    Connect(2);
    Hello(2, "h0", 1, 99);
    const Outcome outcome = Step(50 * kMillisecond);
    EXPECT_EQ(outcome.dropped, std::vector<std::uint64_t>{2});
    EXPECT_EQ(outcome.logged, logged);
    const auto* refuse = outcome.Last(2, wire::CoordinatorMessage::kRefuse);
    ASSERT_NE(refuse, nullptr);
    EXPECT_NE(refuse->refuse().reason().find("--host"), std::string::npos);
  }
  Connect(3);
  now_ += 300 * kMillisecond;  // Three heartbeats of the first are missing, though nobody has looked yet.
  Hello(3, "h0", 1, 99);
  EXPECT_EQ(Step().dropped, std::vector<std::uint64_t>{1});
  EXPECT_EQ(engine_.agents().begin()->first, ConnectionId(3));
}

TEST_F(CoordinatorEngineTest, AgentIsToldThatItsHostIsUnknown) {
  Connect(1);
  Connect(2);
  Hello(1, "h0");
  Hello(2, "elsewhere");
  const Outcome outcome = Step();
  EXPECT_FALSE(outcome.Last(1, wire::CoordinatorMessage::kWelcome)->welcome().host_unknown());
  EXPECT_TRUE(outcome.Last(2, wire::CoordinatorMessage::kWelcome)->welcome().host_unknown());
}

TEST_F(CoordinatorEngineTest, LaneToAnUnknownPeerIsUnmanaged) {
  Connect(1);
  Hello(1, "h0");
  Attach(1, 1, "a");
  Lane(1, 1, 1, "192.0.2.1");
  Step();
  EXPECT_TRUE(told_.at({1, 1}).unmanaged());
}

TEST_F(CoordinatorEngineTest, FirstToWantTheLinkGoesAndTheOtherIsHeldBeforehand) {
  TwoJobs();
  Demand(1, 1, true);
  Step(kMillisecond);
  EXPECT_FALSE(Held(1));
  EXPECT_TRUE(Held(2));
  Demand(2, 1, true);
  Step(kMillisecond);
  EXPECT_TRUE(Held(2));
  Demand(1, 1, false);
  Step(kMillisecond);
  EXPECT_FALSE(Held(2));
}

TEST_F(CoordinatorEngineTest, HoldsAreSentBeforeGos) {
  TwoJobs();
  Demand(1, 1, true);
  Demand(2, 1, true);
  Step(kMillisecond);
  Demand(1, 1, false);
  Step(20 * kMillisecond);  // a's coflow ends
  Step(20 * kMillisecond);
  Demand(2, 1, false);
  Step(20 * kMillisecond);
  Step(20 * kMillisecond);
  Demand(1, 1, true);
  Demand(2, 1, true);
  const Outcome outcome = Step(kMillisecond);
  bool gave = false;
  for (const auto& [to, message] : outcome.sent) {
    if (message->kind_case() != wire::CoordinatorMessage::kSchedule) continue;
    const bool hold = message->schedule().directives(0).gate() == wire::GATE_HOLD;
    EXPECT_FALSE(gave && hold) << "a hold was sent after a go";
    gave |= !hold;
  }
}

TEST_F(CoordinatorEngineTest, OnlyWhatChangedIsSent) {
  TwoJobs();
  Demand(1, 1, true);
  Step(kMillisecond);
  Demand(1, 1, true, 5000);
  EXPECT_TRUE(Step(kMillisecond).sent.empty());
}

TEST_F(CoordinatorEngineTest, EverythingIsRepeatedBeforeHoldsCouldRunOut) {
  TwoJobs();
  Demand(1, 1, true);
  Step(kMillisecond);
  int full = 0;
  for (int i = 0; i < 20; ++i) {
    Heartbeat(1);
    Heartbeat(2);
    const Outcome outcome = Step(100 * kMillisecond);
    const auto* schedule = outcome.Last(2, wire::CoordinatorMessage::kSchedule);
    full += schedule != nullptr && schedule->schedule().full() ? 1 : 0;
  }
  EXPECT_GE(full, 3);
  EXPECT_LE(full, 5);
}

TEST_F(CoordinatorEngineTest, DisconnectFreesTheTurnInTheSameStep) {
  TwoJobs();
  Demand(1, 1, true);
  Demand(2, 1, true);
  Step(kMillisecond);
  ASSERT_TRUE(Held(2));
  engine_.OnDisconnect(now_, ConnectionId(1));
  Step();
  EXPECT_FALSE(Held(2));
}

TEST_F(CoordinatorEngineTest, SilentAgentLosesItsLeaseAndItsTurn) {
  TwoJobs();
  Demand(1, 1, true);
  Demand(2, 1, true);
  Step(kMillisecond);
  std::vector<std::uint64_t> dropped;
  for (int i = 0; i < 4; ++i) {
    Heartbeat(2);
    for (const std::uint64_t each : Step(100 * kMillisecond).dropped) dropped.push_back(each);
  }
  EXPECT_EQ(dropped, std::vector<std::uint64_t>{1});
  EXPECT_FALSE(Held(2));
}

TEST_F(CoordinatorEngineTest, DetachedProcessTakesItsJobWithIt) {
  TwoJobs();
  ASSERT_EQ(engine_.jobs().size(), 2u);
  Detach(1, 1);
  Step();
  ASSERT_EQ(engine_.jobs().size(), 1u);
  EXPECT_EQ(engine_.jobs()[0].name, "b");
}

TEST_F(CoordinatorEngineTest, UnknownLanesAreCountedAndHarmless) {
  TwoJobs();
  Demand(1, 99, true);
  Step(kMillisecond);
  EXPECT_EQ(engine_.counters().unknown_lanes, 1u);
  EXPECT_FALSE(Held(2));
}

TEST_F(CoordinatorEngineTest, SameProcessTwiceIsRefusedAndTheConnectionKept) {
  TwoJobs();
  Attach(1, 1, "a");
  const Outcome outcome = Step();
  EXPECT_TRUE(outcome.dropped.empty());
  EXPECT_NE(outcome.Last(1, wire::CoordinatorMessage::kRefuse), nullptr);
}

TEST_F(CoordinatorEngineTest, FirstScheduleOfAConnectionIsFull) {
  Connect(1);
  Hello(1, "h0");
  EXPECT_EQ(Step().Last(1, wire::CoordinatorMessage::kSchedule), nullptr) << "it has not told its lanes yet";
  Attach(1, 1, "a");
  Lane(1, 1, 1, Address("h2"));
  const Outcome outcome = Step();
  const auto* schedule = outcome.Last(1, wire::CoordinatorMessage::kSchedule);
  ASSERT_NE(schedule, nullptr);
  EXPECT_TRUE(schedule->schedule().full());
  EXPECT_EQ(schedule->schedule().epoch(), 7u);
  EXPECT_EQ(schedule->schedule().sequence(), 1u);
}

TEST_F(CoordinatorEngineTest, ProcessesBeyondTheLimitAreRefusedWithTheLimit) {
  Connect(1);
  Hello(1, "h0");
  for (std::uint64_t process = 1; process <= kMaxProcessesPerAgent; ++process) Attach(1, process, "a");
  EXPECT_EQ(Step().Last(1, wire::CoordinatorMessage::kRefuse), nullptr);
  Attach(1, kMaxProcessesPerAgent + 1, "a");
  const Outcome outcome = Step();
  const auto* refuse = outcome.Last(1, wire::CoordinatorMessage::kRefuse);
  ASSERT_NE(refuse, nullptr);
  EXPECT_NE(refuse->refuse().reason().find("1024"), std::string::npos);
  EXPECT_TRUE(outcome.dropped.empty());
  EXPECT_EQ(engine_.agents().at(ConnectionId(1))->processes.size(), kMaxProcessesPerAgent);
}

TEST_F(CoordinatorEngineTest, AgentsBeyondTheLimitAreDroppedWithTheLimit) {
  for (std::uint64_t connection = 1; connection <= kMaxAgents; ++connection) Connect(connection);
  EXPECT_TRUE(Step().dropped.empty());
  Connect(kMaxAgents + 1);
  const Outcome outcome = Step();
  EXPECT_EQ(outcome.dropped, std::vector<std::uint64_t>{kMaxAgents + 1});
  const auto* refuse = outcome.Last(kMaxAgents + 1, wire::CoordinatorMessage::kRefuse);
  ASSERT_NE(refuse, nullptr);
  EXPECT_NE(refuse->refuse().reason().find("4096"), std::string::npos);
}

TEST_F(CoordinatorEngineTest, JobWithoutANameOrWithAnEndlessOneIsRefused) {
  Connect(1);
  Hello(1, "h0");
  Attach(1, 1, "");
  Attach(1, 2, std::string(kMaxNameBytes + 1, 'x'));
  Step();
  EXPECT_EQ(engine_.counters().refusals, 2u);
  EXPECT_TRUE(engine_.jobs().empty());
}

TEST_F(CoordinatorEngineTest, LaneOfAProcessThatIsNotAttachedIsRefused) {
  TwoJobs();
  Lane(1, 2, 9, Address("h2"));
  const Outcome outcome = Step();
  EXPECT_NE(outcome.Last(1, wire::CoordinatorMessage::kRefuse), nullptr);
  EXPECT_FALSE(told_.contains({1, 2}));
}

// Sending it again at once made agent and coordinator repeat themselves as fast as the network carried it.
TEST_F(CoordinatorEngineTest, RefusedDirectiveComesAgainOnlyWithTheNextFullSchedule) {
  TwoJobs();
  RefuseDirective(1, 1, 1);
  EXPECT_TRUE(Step(kMillisecond).sent.empty());
  EXPECT_EQ(engine_.counters().directives_refused, 1u);
  bool again = false;
  for (int i = 0; i < 6 && !again; ++i) {
    Heartbeat(1);
    Heartbeat(2);
    const Outcome outcome = Step(100 * kMillisecond);
    const auto* schedule = outcome.Last(1, wire::CoordinatorMessage::kSchedule);
    again = schedule != nullptr && schedule->schedule().directives_size() == 1;
  }
  EXPECT_TRUE(again);
}

// Agents refuse larger caps; the topology allows links that are faster.
TEST(CoordinatorEngine, CapsOfVeryFastLinksStayWithinTheProtocol) {
  const Topology topology = Topology::BigSwitch(2, kMaxCapacity);
  CoordinatorEngine engine(topology, std::move(*MakePolicy("turns")), 1);
  const std::string peer = topology.FindHost(std::string_view("h1"))->addresses[0].ToString();
  engine.OnConnect(kSecond, ConnectionId(1), "test");
  wire::AgentMessage message;
  message.mutable_hello()->set_protocol_version(1);
  message.mutable_hello()->set_host("h0");
  engine.OnMessage(kSecond, ConnectionId(1), message);
  message.mutable_process_attached()->set_process(1);
  message.mutable_process_attached()->mutable_job()->set_name("a");
  engine.OnMessage(kSecond, ConnectionId(1), message);
  message.mutable_lane_opened()->set_lane(1);
  message.mutable_lane_opened()->set_process(1);
  message.mutable_lane_opened()->set_peer_address(peer);
  engine.OnMessage(kSecond, ConnectionId(1), message);
  const std::vector<Action> actions = engine.Step(kSecond);
  ASSERT_FALSE(actions.empty());
  ASSERT_TRUE(actions.back().message != nullptr && actions.back().message->has_schedule());
  EXPECT_EQ(actions.back().message->schedule().directives(0).rate(), kDirectiveRateMax);
}

// Names of ended jobs are kept for the timeline; their number pushed out the names of jobs that still ran.
TEST_F(CoordinatorEngineTest, HolderKeepsItsNameHoweverManyJobsCameAfterIt) {
  TwoJobs();
  Demand(1, 1, true);
  for (std::size_t i = 0; i <= kMaxJobs; ++i) {
    Attach(2, 2, "short" + std::to_string(i));
    Detach(2, 2);
  }
  Step(kMillisecond);
  EXPECT_NE(StatusJson(engine_, now_).find("\"holder\":\"a\""), std::string::npos);
}

TEST_F(CoordinatorEngineTest, GuaranteedClassReachesThePolicy) {
  TwoJobs();
  Attach(2, 2, "vip", "guaranteed");
  Lane(2, 2, 2, Address("h3"));
  Demand(1, 1, true);
  Step(kMillisecond);
  EXPECT_FALSE(Held(2, 2));
  Demand(2, 2, true);
  Step(kMillisecond);
  EXPECT_TRUE(Held(1));
  EXPECT_FALSE(Held(2, 2));
}

TEST_F(CoordinatorEngineTest, GuaranteedLaneIsClearedTheWayAheadOfItsTime) {
  TwoJobs();
  Attach(2, 2, "vip", "guaranteed");
  Lane(2, 2, 2, Address("h3"));
  Demand(1, 1, true);
  wire::AgentMessage message;
  wire::LaneDemand* demand = message.mutable_demand_update()->add_lanes();
  demand->set_lane(2);
  demand->set_next_known(true);
  demand->set_next_in_ns(50 * kMillisecond);
  Say(2, message);
  Step();
  EXPECT_FALSE(Held(1));
  EXPECT_LE(engine_.next_step(), now_ + 50 * kMillisecond);
  Step(engine_.next_step() - now_);
  EXPECT_TRUE(Held(1));
  EXPECT_FALSE(Held(2, 2));
  Step(100 * kMillisecond);
  EXPECT_FALSE(Held(1)) << "it did not come";
}

TEST_F(CoordinatorEngineTest, ForetoldTimesBeyondReasonAreSurvived) {
  TwoJobs();
  Attach(2, 2, "vip", "guaranteed");
  Lane(2, 2, 2, Address("h3"));
  Demand(1, 1, true);
  for (const std::int64_t in : {INT64_MIN, INT64_MAX}) {
    for (const std::uint64_t deviation : {std::uint64_t{0}, UINT64_MAX}) {
      wire::AgentMessage message;
      wire::LaneDemand* demand = message.mutable_demand_update()->add_lanes();
      demand->set_lane(2);
      demand->set_next_known(true);
      demand->set_next_in_ns(in);
      demand->set_next_deviation_ns(deviation);
      Say(2, message);
      Step(kMillisecond);
      EXPECT_FALSE(Held(1));
    }
  }
}

TEST_F(CoordinatorEngineTest, RanksOfOneJobAreOneJob) {
  Connect(1);
  Connect(2);
  Hello(1, "h0");
  Hello(2, "h2");
  Attach(1, 1, "a");
  Attach(2, 1, "a");
  Step();
  ASSERT_EQ(engine_.jobs().size(), 1u);
  EXPECT_EQ(engine_.jobs()[0].processes.size(), 2u);
}

TEST_F(CoordinatorEngineTest, ProfilesGiveTheLoadOfALink) {
  TwoJobs();
  wire::AgentMessage message;
  wire::ProfileUpdate* profile = message.mutable_profile_update();
  profile->set_process(1);
  profile->set_confidence(1);
  profile->set_alone_ns(kSecond);
  profile->set_now_ns(2);
  profile->set_iteration_started_ns(1);
  wire::LaneBytes* bytes = profile->add_lanes();
  bytes->set_lane(1);
  bytes->set_bytes(static_cast<std::uint64_t>(kWan * 0.95 / 2));
  Say(1, message);
  Step();
  const std::string status = StatusJson(engine_, now_);
  EXPECT_NE(status.find("\"name\":\"site0-site1\""), std::string::npos);
  EXPECT_NE(status.find("\"load\":5E-1"), std::string::npos) << status;
  for (const char* key :
       {"\"epoch\":7", "\"policy\":\"turns\"", "\"jobs\":", "\"agents\":", "\"counters\":", "\"holder\":"}) {
    EXPECT_NE(status.find(key), std::string::npos) << key;
  }
}

TEST_F(CoordinatorEngineTest, TimelineNamesJobAndLink) {
  TwoJobs();
  Demand(1, 1, true);
  Step(kMillisecond);
  const std::string timeline = TimelineJson(engine_);
  EXPECT_NE(timeline.find("\"job\":\"a\",\"link\":\"site0-site1\",\"granted\":true"), std::string::npos) << timeline;
}

}  // namespace
}  // namespace weir::scheduler
