#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agents/host/engine.h"
#include "coflow/wire/weir.pb.h"

namespace weir::agents {

/// An engine under a clock of our own, with the words of a coordinator spoken by hand.
class EngineTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kEpoch = 7;
  static constexpr BytesPerSecond kRate = 12.5e6;

  EngineTest() : EngineTest(LocalPolicy::kNone) {}
  explicit EngineTest(LocalPolicy policy) : engine_(Options(policy)) {}

  static EngineOptions Options(LocalPolicy policy) {
    EngineOptions options;
    options.host = "node1";
    options.instance = 99;
    options.addresses = {"10.0.0.1"};
    options.local_policy = policy;
    return options;
  }

  /// Takes the actions, and files the messages to the coordinator in `sent_`.
  Actions Take() {
    Actions actions = engine_.Take(now_);
    for (const std::string& bytes : actions.messages) {
      wire::AgentMessage message;
      EXPECT_TRUE(message.ParseFromString(bytes));
      sent_.push_back(message);
    }
    return actions;
  }

  void Say(const wire::CoordinatorMessage& message) { engine_.OnCoordinatorMessage(now_, message.SerializeAsString()); }

  void Welcome(std::uint64_t epoch = kEpoch) {
    wire::CoordinatorMessage message;
    message.mutable_welcome()->set_epoch(epoch);
    message.mutable_welcome()->set_ttl_ms(2000);
    Say(message);
  }

  /// Connects, is welcomed, and forgets what was said on the way.
  void Connect() {
    engine_.OnConnected(now_);
    Welcome();
    Take();
    sent_.clear();
  }

  wire::CoordinatorMessage Directive(std::uint64_t lane, wire::Gate gate, double rate = 0) {
    wire::CoordinatorMessage message;
    wire::Schedule* schedule = message.mutable_schedule();
    schedule->set_epoch(kEpoch);
    schedule->set_sequence(++sequence_);
    wire::Directive* directive = schedule->add_directives();
    directive->set_lane(lane);
    directive->set_gate(gate);
    directive->set_rate(rate);
    directive->set_level(3);
    return message;
  }

  ProcessId Attach(const std::string& job = "llama", bool adopted = false) {
    return *engine_.OnProcessAttached(now_, {{job, "blue", "", 1, 8}, 4711, adopted});
  }

  /// A process with one idle lane, announced.
  LaneRef Lane(const std::string& job = "llama", const std::string& peer = "10.0.0.2") {
    const LaneRef ref{Attach(job), 0};
    engine_.OnLaneAppeared(now_, ref, peer);
    Take();
    sent_.clear();
    return ref;
  }

  /// The process writes a message of which the kernel has not taken `rest`.
  void Write(LaneRef ref, Bytes rest) {
    ++messages_;
    engine_.OnSample(now_, ref, {messages_ * 1000, messages_, rest, rest > 0 ? 1u : 0u, true, false});
  }
  void Taken(LaneRef ref) { engine_.OnSample(now_, ref, {messages_ * 1000, messages_, 0, 0, false, true}); }
  void Measured(LaneRef ref, Bytes queued, Bytes unsent = 0, Nanoseconds rtt = 0) {
    engine_.OnQueueMeasured(now_, ref, {queued, unsent, rtt, true});
  }
  /// One whole message: written, taken, gone.
  void Send(LaneRef ref) {
    Write(ref, 1000);
    Take();
    Taken(ref);
    Take();
    Measured(ref, 0);
  }

  const AgentEngine::Lane& At(LaneRef ref) const { return *engine_.FindLane(ref); }
  std::vector<wire::LaneDemand> Demands() const {
    std::vector<wire::LaneDemand> demands;
    for (const wire::AgentMessage& message : sent_) {
      for (const wire::LaneDemand& demand : message.demand_update().lanes()) demands.push_back(demand);
    }
    return demands;
  }

  Nanoseconds now_ = 1000 * kSecond;
  std::uint64_t sequence_ = 0;
  std::uint64_t messages_ = 0;
  AgentEngine engine_;
  std::vector<wire::AgentMessage> sent_;
};

}  // namespace weir::agents
