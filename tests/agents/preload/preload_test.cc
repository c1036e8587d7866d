// What the preload library does to a program that is held, paced and let go, and to programs that it must not break.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "agents/client/attachment.h"
#include "tests/agents/preload/fake_agent.h"

namespace weir::testing {
namespace {

using client::GateState;
using client::NowNs;

constexpr std::size_t kMegabyte = 1'000'000;

/// The checksum that Sink gives for the driver's pattern of `bytes`.
std::uint64_t PatternChecksum(std::size_t bytes) {
  std::uint64_t hash = 14695981039346656037u;
  unsigned state = 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    hash = (hash ^ static_cast<unsigned char>(state >> 24)) * 1099511628211u;
  }
  return hash;
}

class PreloadTest : public ::testing::Test {
 protected:
  std::vector<std::string> Environment(const std::string& agent) const {
    return {std::string("LD_PRELOAD=") + WEIR_PRELOAD_LIBRARY,
            "WEIR_AGENT_SOCKET=" + agent,
            "WEIR_JOB=test",
            "WEIR_TENANT=tests",
            "WEIR_CLASS=guaranteed",
            "WEIR_MANAGE_LOOPBACK=1",
            "ASAN_OPTIONS=verify_asan_link_order=0",  // Built with it, its runtime comes after us.
            "TSAN_OPTIONS=die_after_fork=0",          // Built with it, children would not be let start a thread.
            "WEIR_LOG=off"};
  }
  std::vector<std::string> Command(const std::string& mode, std::size_t bytes) const {
    return {WEIR_PRELOAD_DRIVER, mode, std::to_string(sink_.port()), std::to_string(bytes)};
  }
  /// Runs `mode` with nobody touching the gates; the program must end well and everything must arrive.
  void RunFreely(const std::string& mode, std::size_t bytes, std::size_t times, double seconds = 30) {
    Child child(Command(mode, bytes), Environment(agent_.socket_path()));
    EXPECT_EQ(child.Wait(seconds), 0) << child.output();
    EXPECT_TRUE(WaitFor([&] { return sink_.bytes() == times * bytes; })) << sink_.bytes();
  }
  /// Starts `mode` with its first data write held, and waits for that.
  void StartHeld(Child* child) {
    ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1 && agent_.segment()->lanes[0].writes_held > 0; }))
        << child->output();
  }
  /// Runs `mode`, held from its first data write on and let go after `hold_ms`.
  std::string RunHeld(const std::string& mode, std::size_t bytes, int hold_ms) {
    agent_.SetFirstGate(GateState::kHold);
    Child child(Command(mode, bytes), Environment(agent_.socket_path()));
    StartHeld(&child);
    const client::LaneSlot& lane = agent_.segment()->lanes[0];
    const std::int64_t until = NowNs() + std::int64_t{hold_ms} * 1'000'000;
    EXPECT_TRUE(WaitFor([&] { return NowNs() > until; }));
    EXPECT_EQ(lane.bytes_accepted, 0u) << "bytes left while held";
    EXPECT_TRUE(child.Running());
    agent_.SetGate(0, 0, GateState::kGo);
    EXPECT_EQ(child.Wait(), 0) << child.output();
    EXPECT_TRUE(WaitFor([&] { return sink_.bytes() == bytes; })) << sink_.bytes();
    EXPECT_TRUE(WaitFor([&] { return sink_.connections_closed() == 1; }));
    EXPECT_EQ(sink_.checksum(), PatternChecksum(bytes));
    EXPECT_GT(lane.held_ns, std::int64_t{hold_ms} * 900'000);
    return child.output();
  }
  static long Value(const std::string& output, const std::string& key) {
    const std::size_t at = output.find(key + "=");
    return at == std::string::npos ? -1 : std::atol(output.c_str() + at + key.size() + 1);
  }

  FakeAgent agent_;
  Sink sink_;
};

// 400 ms of hold in a loop that is told "writable" all the time would be hundreds of thousands of tries.
constexpr long kTriesOfALoopThatWaits = 3000;

TEST_F(PreloadTest, LevelTriggeredEpollIsHeldWithoutSpinningAndGoesOn) {
  EXPECT_LT(Value(RunHeld("epoll", 8 * kMegabyte, 400), "waits"), kTriesOfALoopThatWaits);
}
TEST_F(PreloadTest, EdgeTriggeredEpollIsHeldAndGoesOn) {
  RunHeld("epoll-edge", 8 * kMegabyte, 200);
}
TEST_F(PreloadTest, OneShotEpollIsHeldAndSlowedDownInsteadOfSpinning) {
  RunHeld("epoll-oneshot", 8 * kMegabyte, 200);
}
TEST_F(PreloadTest, MappedIpv4IsHeldAndGoesOn) {
  RunHeld("epoll-mapped", 8 * kMegabyte, 200);
}
TEST_F(PreloadTest, PollIsHeldAndGoesOn) {
  RunHeld("poll", 8 * kMegabyte, 200);
}
TEST_F(PreloadTest, SelectIsHeldAndGoesOn) {
  RunHeld("select", 8 * kMegabyte, 200);
}
TEST_F(PreloadTest, LoopThatDoesNotWaitIsSlowedDown) {
  RunHeld("spin", 8 * kMegabyte, 200);
  EXPECT_LT(agent_.segment()->lanes[0].writes_held, 2000u);
}

TEST_F(PreloadTest, LevelTriggeredLoopIsRefusedOnlyOnceAHold) {
  RunHeld("epoll", 8 * kMegabyte, 400);
  EXPECT_LE(agent_.segment()->lanes[0].writes_held, 3u);
}

TEST_F(PreloadTest, BlockingWriterWaitsForItsTurn) {
  Child child(Command("small", kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1 && sink_.bytes() == kMegabyte; }));
  agent_.SetGate(0, 0, GateState::kHold);
  EXPECT_EQ(child.Wait(), 0) << child.output();  // 100 small writes pass a closed gate.
  EXPECT_EQ(Value(child.output(), "small"), 100);
  EXPECT_TRUE(WaitFor([&] { return sink_.bytes() == kMegabyte + 100 * 500; }));
}

TEST_F(PreloadTest, SendTimeoutOfABlockingWriterIsKept) {
  Child child(Command("timeout", kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1 && sink_.bytes() == kMegabyte; }));
  agent_.SetGate(0, 0, GateState::kHold);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(Value(child.output(), "again"), 1) << child.output();
}

TEST_F(PreloadTest, SignalLetsAHeldBlockingWriterThrough) {
  Child child(Command("signal", kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1 && sink_.bytes() == kMegabyte; }));
  agent_.SetGate(0, 0, GateState::kHold, std::int64_t{20} * 1'000'000'000);
  EXPECT_EQ(child.Wait(10), 0);
  EXPECT_EQ(Value(child.output(), "sent"), 2) << child.output();
}

TEST_F(PreloadTest, FrozenAgentOpensTheGateWithinHalfASecond) {
  agent_.SetFirstGate(GateState::kHold);
  Child child(Command("epoll", 8 * kMegabyte), Environment(agent_.socket_path()));
  StartHeld(&child);
  agent_.Freeze();
  const std::int64_t frozen = NowNs();
  ASSERT_TRUE(WaitFor([&] { return sink_.bytes() > kMegabyte; }));
  EXPECT_LT(NowNs() - frozen, std::int64_t{1'000'000'000});  // 500 ms promised; the rest is a loaded machine's.
  EXPECT_EQ(child.Wait(), 0);
}

TEST_F(PreloadTest, ReleasedSegmentOpensTheGateAndTheProcessAttachesAgain) {
  agent_.SetFirstGate(GateState::kHold);
  Child child(Command("epoll", 8 * kMegabyte), Environment(agent_.socket_path()));
  StartHeld(&child);
  agent_.Release(0);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(agent_.segment()->header.detached, 1u);
}

TEST_F(PreloadTest, HoldEndsByItselfWhenItIsNotRenewed) {
  agent_.SetFirstGate(GateState::kHold);
  Child child(Command("epoll", 8 * kMegabyte), Environment(agent_.socket_path()));
  StartHeld(&child);
  agent_.SetGate(0, 0, GateState::kHold, 300'000'000);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_GT(agent_.segment()->lanes[0].writes_held, 0u);
}

TEST_F(PreloadTest, CapIsSetAndTakenOffAgain) {
  Child child(Command("options", kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1 && sink_.bytes() == kMegabyte; }));
  agent_.SetPacing(0, 0, 5'000'000, 65536);
  const std::int64_t later = NowNs() + 1'400'000'000;
  WaitFor([&] { return NowNs() > later; });
  agent_.Release(0);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(Value(child.output(), "rate1"), 5'000'000) << child.output();
  EXPECT_NE(Value(child.output(), "rate2"), 5'000'000) << child.output();
}

TEST_F(PreloadTest, MarksAreSetOnEveryKindOfSocket) {
  constexpr std::uint32_t kAf41 = 34u << 2;
  std::size_t runs = 0;
  for (const char* mode : {"marks", "marks-mapped", "marks-v6"}) {
    Child child(Command(mode, 100'000), Environment(agent_.socket_path()));
    ASSERT_TRUE(WaitFor([&] { return agent_.attached() == runs + 1; })) << mode << child.output();
    agent_.SetMarks(runs++, 0, 1u << 31 | 5u << 8 | kAf41);
    EXPECT_EQ(child.Wait(), 0) << mode << child.output();
    EXPECT_EQ(Value(child.output(), "tos"), kAf41) << mode;
    EXPECT_EQ(Value(child.output(), "class"), std::string(mode) == "marks" ? -1 : long{kAf41}) << mode;
    EXPECT_EQ(Value(child.output(), "priority"), 5) << mode;
  }
}

TEST_F(PreloadTest, RefusedProcessSaysWhyAndGoesOn) {
  const std::string why = "the agent refused this process, which runs unmanaged: WEIR_CLASS 'royal' is not a class";
  const std::string other = "the agent speaks another version";
  for (const std::uint16_t version : {client::kSegmentVersionMajor, std::uint16_t{9}}) {
    agent_.RefuseAll(version, "WEIR_CLASS 'royal' is not a class");
    auto environment = Environment(agent_.socket_path());
    std::erase(environment, "WEIR_LOG=off");
    Child child(Command("blocking", kMegabyte), environment);
    EXPECT_EQ(child.Wait(), 0) << child.output();
    const bool spoken = version == client::kSegmentVersionMajor;
    EXPECT_EQ(child.output().find(why) != std::string::npos, spoken) << child.output();
    EXPECT_EQ(child.output().find(other) != std::string::npos, !spoken) << child.output();
  }
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(PreloadTest, AttachTellsWhoseProcessItIs) {
  RunFreely("blocking", 3 * kMegabyte, 1);
  ASSERT_EQ(agent_.attached(), 1u);
  EXPECT_STREQ(agent_.request().job, "test");
  EXPECT_STREQ(agent_.request().tenant, "tests");
  EXPECT_STREQ(agent_.request().job_class, "guaranteed");
}

TEST_F(PreloadTest, CountersAndMessagesAddUp) {
  RunFreely("blocking", 3 * kMegabyte, 1);
  const client::Segment* segment = agent_.segment();
  EXPECT_EQ(segment->header.lanes_used, 1u);
  EXPECT_EQ(segment->lanes[0].bytes_accepted, 3 * kMegabyte);
  EXPECT_EQ(segment->lanes[0].sockets_with_rest, 0u);
  EXPECT_EQ(segment->header.messages_begun, segment->lanes[0].messages);
  EXPECT_EQ(segment->messages[0].bytes, 3 * kMegabyte);
  EXPECT_GT(segment->messages[0].accepted, 0);
  EXPECT_EQ(segment->lanes[0].want_start, 0u) << "the first write did not take the ring";
}

TEST_F(PreloadTest, FlippingGatesNeverLoseOrReorderBytes) {
  Child child(Command("epoll", 64 * kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1; }));
  for (int i = 0; child.Running() && i < 20000; ++i) {
    agent_.SetGate(0, 0, i % 2 == 0 ? GateState::kHold : GateState::kGo);
    std::this_thread::sleep_for(std::chrono::microseconds(i % 7 * 100));
  }
  agent_.SetGate(0, 0, GateState::kGo);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  ASSERT_TRUE(WaitFor([&] { return sink_.connections_closed() == 1; }));
  EXPECT_EQ(sink_.bytes(), 64 * kMegabyte);
  EXPECT_EQ(sink_.checksum(), PatternChecksum(64 * kMegabyte));
}

TEST_F(PreloadTest, WithoutAnAgentNothingChanges) {
  for (const char* mode : {"epoll", "poll", "select", "blocking"}) {
    Sink sink;
    Child child({WEIR_PRELOAD_DRIVER, mode, std::to_string(sink.port()), "3000000"}, Environment("/nonexistent/agent"));
    EXPECT_EQ(child.Wait(), 0) << mode << child.output();
    EXPECT_TRUE(WaitFor([&] { return sink.bytes() == 3'000'000; })) << mode;
  }
}

TEST_F(PreloadTest, DisabledMeansNeverAttached) {
  auto environment = Environment(agent_.socket_path());
  environment.push_back("WEIR_DISABLE=1");
  Child child(Command("blocking", kMegabyte), environment);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(PreloadTest, ControlTrafficNeverAttaches) {
  RunFreely("short", 100, 10000, 60);
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(PreloadTest, DescriptorReusedByDup2IsAnotherSocket) {
  RunFreely("reuse-dup2", kMegabyte, 2);
}
TEST_F(PreloadTest, DescriptorReusedAfterARawCloseIsAnotherSocket) {
  RunFreely("reuse-raw", kMegabyte, 2);
}
TEST_F(PreloadTest, DescriptorReusedAfterCloseRangeIsAnotherSocket) {
  RunFreely("reuse-range", kMegabyte, 2);
}

TEST_F(PreloadTest, ForkedChildAttachesByItself) {
  RunFreely("fork", kMegabyte, 3);
  EXPECT_EQ(agent_.attached(), 2u);
  EXPECT_EQ(agent_.segment(0)->lanes[0].bytes_accepted, 2 * kMegabyte);
  EXPECT_EQ(agent_.segment(1)->lanes[0].bytes_accepted, kMegabyte);
}

TEST_F(PreloadTest, HundredForksAllSend) {
  RunFreely("forkbomb", 100'000, 100, 60);
  EXPECT_GE(agent_.attached(), 100u);  // More if the machine was so busy that one had to ask twice.
}

TEST_F(PreloadTest, ProgramThatClosesEveryDescriptorGoesOn) {
  RunFreely("closeall", kMegabyte, 3);
}
TEST_F(PreloadTest, EightThreadsSendAtOnce) {
  RunFreely("threads", 10 * kMegabyte, 8);
}
TEST_F(PreloadTest, SocketHandedToAnotherProcessIsKnownThere) {
  RunFreely("handed", kMegabyte, 2);
  EXPECT_EQ(agent_.attached(), 2u);
}

TEST_F(PreloadTest, WhatAVforkChildClosesIsNotForgotten) {
  Child child(Command("vfork-closes", kMegabyte), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1; }));
  agent_.SetGate(0, 0, GateState::kHold, std::int64_t{20} * 1'000'000'000);
  ASSERT_TRUE(WaitFor([&] { return agent_.segment()->lanes[0].writes_held > 0; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(child.Running());
  agent_.SetGate(0, 0, GateState::kGo);
  EXPECT_EQ(child.Wait(5), 0) << child.output();
  EXPECT_EQ(Value(child.output(), "let_go"), 1) << child.output();
}

TEST_F(PreloadTest, ChildOfARawCloneIsNotHeldByItsParentsGate) {
  Child child(Command("clone-waits", 100'000), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1; }));
  agent_.SetGate(0, 0, GateState::kHold, std::int64_t{20} * 1'000'000'000);
  EXPECT_EQ(child.Wait(5), 0) << child.output();
  EXPECT_EQ(Value(child.output(), "child"), 0) << child.output();
}

TEST_F(PreloadTest, ThreadsCancelledInAWriteDoNoHarm) {
  Child child(Command("cancel", 4 * kMegabyte), Environment(agent_.socket_path()));
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_EQ(Value(child.output(), "cancelled"), 20);
}

TEST_F(PreloadTest, SignalHandlersThatWriteNeverDeadlock) {
  Child child(Command("signal-storm", 100'000), Environment(agent_.socket_path()));
  ASSERT_TRUE(WaitFor([&] { return agent_.attached() == 1; }));
  for (int i = 0; child.Running() && i < 10000; ++i) {
    agent_.SetGate(0, 0, i % 2 == 0 ? GateState::kHold : GateState::kGo);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  agent_.SetGate(0, 0, GateState::kGo);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_EQ(Value(child.output(), "rounds"), 200);
}

TEST_F(PreloadTest, WordsOfOursNeverEndUpInASocket) {
  auto environment = Environment(agent_.socket_path());
  environment.push_back("WEIR_LOG=debug");
  Child child(Command("socket-as-stderr", kMegabyte), environment);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_TRUE(WaitFor([&] { return sink_.connections_closed() == 1; }));
  EXPECT_EQ(sink_.checksum(), PatternChecksum(kMegabyte));
}

TEST_F(PreloadTest, JobNamedByTheProgramItselfIsFound) {
  auto environment = Environment(agent_.socket_path());
  std::erase(environment, "WEIR_JOB=test");
  Child child(Command("late-job", kMegabyte), environment);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  ASSERT_EQ(agent_.attached(), 1u);
  EXPECT_STREQ(agent_.request().job, "10.0.0.1:29500");
}

TEST_F(PreloadTest, ProgramWithoutAJobIsLeftAlone) {
  auto environment = Environment(agent_.socket_path());
  std::erase(environment, "WEIR_JOB=test");
  Child child(Command("blocking", kMegabyte), environment);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(PreloadTest, LoopbackIsLeftAloneUnlessAskedFor) {
  auto environment = Environment(agent_.socket_path());
  std::erase(environment, "WEIR_MANAGE_LOOPBACK=1");
  Child child(Command("blocking", kMegabyte), environment);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(PreloadTest, EndOfAFileLeavesNoRest) {
  RunFreely("sendfile", 3 * kMegabyte, 1);
  ASSERT_EQ(agent_.attached(), 1u);
  EXPECT_EQ(agent_.segment()->lanes[0].sockets_with_rest, 0u);
  EXPECT_EQ(agent_.segment()->lanes[0].bytes_accepted, 3 * kMegabyte);
}

}  // namespace
}  // namespace weir::testing
