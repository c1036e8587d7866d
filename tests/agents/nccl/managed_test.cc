// The network plugin under an agent whose gates the test turns by hand. Ranks are those of weir-perf nccl-emulate.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "agents/client/attachment.h"
#include "agents/host/foreign_process.h"
#include "agents/nccl/marks.h"
#include "tests/agents/preload/fake_agent.h"

namespace weir::testing {
namespace {

using client::GateState;
using client::NowNs;

constexpr std::int64_t kMinute_ns = 60'000'000'000;
/// How fast the ranks are differs from build to build and with what else runs: a test that needs traffic while it looks
/// ends the job itself, with Child::Finish.
constexpr int kUntilFinished = 1'000'000;

class NcclManaged : public ::testing::Test {
 protected:
  /// Two ranks, one collective a round.
  Child Start(int rounds, const std::vector<std::string>& flags = {},
              const std::vector<std::string>& environment = {}) const {
    std::vector<std::string> command = {WEIR_PERF_PROGRAM,
                                        "nccl-emulate",
                                        std::string("--plugin=") + WEIR_NCCL_LIBRARY,
                                        "--ranks=2",
                                        "--collectives=all-reduce",
                                        "--output=json",
                                        "--compute_ms=1",
                                        "--idle_us=50",
                                        "--rounds=" + std::to_string(rounds)};
    command.insert(command.end(), flags.begin(), flags.end());
    std::vector<std::string> all = {"NCCL_SOCKET_IFNAME=lo",  "WEIR_JOB=test",
                                    "WEIR_TENANT=tests",      "WEIR_CLASS=guaranteed",
                                    "WEIR_MANAGE_LOOPBACK=1", "WEIR_AGENT_SOCKET=" + agent_.socket_path()};
    all.insert(all.begin(), environment.begin(), environment.end());
    return {command, all};
  }
  client::LaneSlot& lane(std::size_t process) const { return agent_.segment(process)->lanes[0]; }
  std::uint64_t Sent() const { return lane(0).bytes_accepted + lane(1).bytes_accepted; }
  /// Both ranks are attached and send.
  void WaitForTraffic(Child* child) const {
    ASSERT_TRUE(WaitFor([&] {
      return agent_.attached() >= 2 && lane(0).bytes_accepted > 0 && lane(1).bytes_accepted > 0;
    })) << child->output();
  }
  void SetGates(GateState gate) {
    for (const std::size_t process : {0u, 1u}) agent_.SetGate(process, 0, gate, kMinute_ns);
  }
  /// Closes the gates when a transfer is about to begin: those under way are only interrupted, and none may follow.
  bool HoldATransfer() {
    return WaitFor([&] {
      SetGates(GateState::kHold);
      Pause(50'000'000);
      if (lane(0).writes_held + lane(1).writes_held > 0) return true;
      SetGates(GateState::kGo);
      Pause(5'000'000);
      return false;
    });
  }
  void SetPacing(std::uint64_t rate) {
    for (const std::size_t process : {0u, 1u}) agent_.SetPacing(process, 0, rate, 0);
  }
  static void Pause(std::int64_t ns) {
    const std::int64_t until = NowNs() + ns;
    WaitFor([&] { return NowNs() > until; });
  }
  /// Traffic classes of the connected sockets of the ranks.
  static std::vector<int> TrafficClasses(pid_t parent) {
    std::vector<int> found;
    const std::string number = std::to_string(parent);
    std::ifstream children("/proc/" + number + "/task/" + number + "/children");
    for (pid_t rank = 0; children >> rank;) {
      const auto process = agents::ForeignProcess::Open(rank);
      if (!process) continue;
      for (const agents::ForeignSocket& socket : process->Sockets()) {
        const auto borrowed = process->Borrow(socket);
        agents::SocketKey key;
        int value = 0;
        socklen_t length = sizeof value;
        if (!borrowed || !agents::DescribeTcp(borrowed->get(), &key)) continue;
        if (getsockopt(borrowed->get(), IPPROTO_IP, IP_TOS, &value, &length) == 0) found.push_back(value);
      }
    }
    return found;
  }
  static bool AnyIs(int traffic_class, pid_t parent) {
    for (const int found : TrafficClasses(parent)) {
      if (found == traffic_class) return true;
    }
    return false;
  }

  FakeAgent agent_;
};

#ifdef WEIR_HAS_ETHDEV
/// The ranks are on a wire of DPDK's, memif, of which the kernel knows nothing.
class NcclManagedDpdk : public NcclManaged {
 protected:
  ~NcclManagedDpdk() override { std::filesystem::remove_all(folder_); }
  /// `path`: what the wire does to frames, as WEIR_DPDK has it.
  Child StartOnWire(const std::vector<std::string>& flags, const std::string& path = "") const {
    std::string ports = "--per_rank=WEIR_DPDK=";
    for (const int number : {1, 2}) {
      ports += std::string(number == 1 ? "" : "|") + "device=net_memif0;role=" + (number == 1 ? "server" : "client") +
               ";socket=" + folder_ + "/memif.sock;socket-abstract=no,address=10.9.0." + std::to_string(number) + path;
    }
    std::vector<std::string> all = flags;
    all.push_back(ports);
    return Start(kUntilFinished, all, {"WEIR_TRANSPORT=dpdk", "WEIR_NCCL_HOLD_MAX_MS=60000", "WEIR_MANAGE_LOOPBACK=0"});
  }

 private:
  static std::string NewFolder() {
    std::string name = ::testing::TempDir() + "weir-nccl-XXXXXX";
    return mkdtemp(name.data());
  }
  const std::string folder_ = NewFolder();
};

TEST_F(NcclManagedDpdk, TheAgentIsToldOfLanesAndOfWhatEachCoflowSends) {
  Child child = StartOnWire({"--sizes=256K", "--channels=2", "--slice_kb=16"});
  WaitForTraffic(&child);
  EXPECT_TRUE(WaitFor([&] { return lane(0).messages > 5 && lane(1).messages > 5; }));
  EXPECT_EQ(child.Finish(), 0) << child.output();
  for (const std::size_t process : {0u, 1u}) {
    const client::Segment& segment = *agent_.segment(process);
    EXPECT_EQ(segment.header.lanes_used, 1u);
    EXPECT_EQ(lane(process).family, AF_INET);
    const int peer = lane(process).peer_address[3];
    EXPECT_TRUE(peer == 1 || peer == 2) << peer;
    EXPECT_EQ(std::memcmp(lane(process).peer_address, "\x0a\x09\0", 3), 0);
    EXPECT_EQ(lane(process).messages, segment.header.messages_begun);
    EXPECT_GE(lane(process).bytes_accepted, (lane(process).messages - 1) * 256 * 1024);
    EXPECT_EQ(lane(process).sockets_with_rest, 0u);
    EXPECT_GT(segment.stalls[0].network_ns, 0);
    EXPECT_EQ(segment.header.sockets_used, 2u) << "one of each connection";
    EXPECT_EQ(segment.sockets[0].family, 0u) << "there is no socket to ask the kernel about";
  }
  EXPECT_NE(lane(0).peer_address[3], lane(1).peer_address[3]);
}

TEST_F(NcclManagedDpdk, NothingLeavesWhileHeldAndEverythingArrivesAfterwards) {
  Child child = StartOnWire({"--sizes=1M", "--slice_kb=16"});
  WaitForTraffic(&child);
  ASSERT_TRUE(HoldATransfer());
  std::uint64_t before = 0;
  EXPECT_TRUE(WaitFor([&] {
    before = Sent();
    Pause(100'000'000);
    return Sent() == before;
  }));
  Pause(300'000'000);
  EXPECT_EQ(Sent(), before);
  EXPECT_TRUE(child.Running());
  EXPECT_GT(lane(0).sockets_with_rest + lane(1).sockets_with_rest, 0u);
  SetGates(GateState::kGo);
  EXPECT_EQ(child.Finish(), 0) << child.output();
  EXPECT_GT(agent_.segment(0)->stalls[0].held_ns + agent_.segment(1)->stalls[0].held_ns, 250'000'000);
}

TEST_F(NcclManagedDpdk, ACapIsKept) {
  constexpr std::uint64_t kRate = 2'000'000;  // Of each of two connections of two ranks.
  Child child = StartOnWire({"--sizes=4M", "--channels=2"});
  WaitForTraffic(&child);
  SetPacing(kRate);
  Pause(50'000'000);
  const std::uint64_t before = Sent();
  const std::int64_t begin = NowNs();
  Pause(500'000'000);
  const double most = 4 * (static_cast<double>(kRate) * static_cast<double>(NowNs() - begin) / 1e9 + 300'000);
  EXPECT_LE(static_cast<double>(Sent() - before), most);
  EXPECT_GT(Sent(), before);
  SetPacing(0);
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

/// What is lost and sent again is not told twice: the agent would take the lane for empty while it is not, and never be
/// rung when it is.
TEST_F(NcclManagedDpdk, WhatIsLostAndSentAgainCountsOnce) {
  Child child = StartOnWire({"--sizes=256K", "--channels=1", "--slice_kb=64", "--compute_ms=20"}, ",lose_permille=50");
  WaitForTraffic(&child);
  const std::uint64_t first = lane(0).messages;
  EXPECT_TRUE(WaitFor([&] { return lane(0).messages > first + 5; }));
  // Armed while something is under way, and rung when all of it has left.
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(WaitFor([&] { return lane(0).sockets_with_rest > 0; }));
    lane(0).want_drain = 1;
    EXPECT_TRUE(WaitFor([&] { return lane(0).want_drain == 0; })) << i;
  }
  EXPECT_EQ(child.Finish(), 0) << child.output();
  // All that was begun before the agent came may be missing; nothing is there twice.
  EXPECT_LE(lane(0).bytes_accepted, (lane(0).messages + 1) * 256 * 1024);
}
#endif

TEST_F(NcclManaged, TheAgentIsToldOfLanesAndOfWhatEachCoflowSends) {
  constexpr int kRounds = 100;
  Child child = Start(kRounds, {"--sizes=256K", "--channels=2", "--slice_kb=16"});
  WaitForTraffic(&child);
  EXPECT_STREQ(agent_.request().job, "test");
  EXPECT_STREQ(agent_.request().tenant, "tests");
  EXPECT_STREQ(agent_.request().job_class, "guaranteed");
  EXPECT_EQ(child.Wait(), 0) << child.output();
  for (const std::size_t process : {0u, 1u}) {
    const client::Segment& segment = *agent_.segment(process);
    EXPECT_EQ(segment.header.lanes_used, 1u);
    EXPECT_EQ(lane(process).family, AF_INET);
    EXPECT_EQ(std::memcmp(lane(process).peer_address, "\x7f\0\0\x01", 4), 0);
    // 32 sends over two connections each, and one message.
    EXPECT_GT(lane(process).messages, 0u);
    EXPECT_LE(lane(process).messages, unsigned{kRounds});
    EXPECT_EQ(lane(process).messages, segment.header.messages_begun);
    // The first may have begun before the agent was there.
    EXPECT_GE(lane(process).bytes_accepted, (lane(process).messages - 1) * 256 * 1024);
    EXPECT_EQ(lane(process).sockets_with_rest, 0u);
    // The size is known when a coflow begins: twice half of it goes around a ring of two.
    const std::uint64_t last = segment.header.messages_begun - 1;
    const client::MessageEntry& message = segment.messages[last % client::kMessageRingSize];
    EXPECT_EQ(message.ticket, last + 1);
    EXPECT_EQ(message.bytes, 256u * 1024);
    EXPECT_EQ(message.known_by, static_cast<std::uint16_t>(client::KnownBy::kProfiler));
    EXPECT_GE(message.accepted, message.time);
    EXPECT_GT(segment.stalls[0].network_ns, 0);
    EXPECT_GT(segment.stalls[0].gpu_ns, 0);
    EXPECT_EQ(segment.stalls[0].held_ns, 0);
    EXPECT_GT(segment.stalls[0].sends_by_profiler, 0u);
    EXPECT_EQ(segment.stalls[0].sends_by_attributes + segment.stalls[0].sends_by_idle_gap, 0u);
    EXPECT_GT(segment.header.sockets_used, 0u);
    for (std::uint32_t i = 0; i < segment.header.sockets_used; ++i) {
      EXPECT_EQ(segment.sockets[i].rest, 0u);
      EXPECT_EQ(segment.sockets[i].state, 0u) << "closed";
    }
  }
}

TEST_F(NcclManaged, NothingLeavesWhileHeldAndEverythingArrivesAfterwards) {
  Child child = Start(kUntilFinished, {"--sizes=1M"}, {"WEIR_NCCL_HOLD_MAX_MS=60000"});
  WaitForTraffic(&child);
  ASSERT_TRUE(HoldATransfer());
  std::uint64_t before = 0;
  EXPECT_TRUE(WaitFor([&] {  // What looked before the hold was there is through.
    before = Sent();
    Pause(100'000'000);
    return Sent() == before;
  }));
  Pause(300'000'000);
  EXPECT_EQ(Sent(), before);
  EXPECT_TRUE(child.Running());
  EXPECT_GT(lane(0).sockets_with_rest + lane(1).sockets_with_rest, 0u);
  SetGates(GateState::kGo);
  EXPECT_EQ(child.Finish(), 0) << child.output();
  EXPECT_GT(lane(0).writes_held + lane(1).writes_held, 0u);
  EXPECT_GT(lane(0).held_ns + lane(1).held_ns, 0);
  EXPECT_GT(agent_.segment(0)->stalls[0].held_ns + agent_.segment(1)->stalls[0].held_ns, 250'000'000);
}

TEST_F(NcclManaged, WithoutAProfilerTheSizeIsWhatTheOnesBeforeHad) {
  Child child = Start(100, {"--sizes=256K", "--channels=2", "--slice_kb=16", "--profiler=none"});
  WaitForTraffic(&child);
  EXPECT_EQ(child.Wait(), 0) << child.output();
  const client::Segment& segment = *agent_.segment();
  // A transfer has 16 KiB at most: a message of more was expected by what came before. Not each: what is slow, as with
  // a sanitizer, pauses for longer than a coflow may.
  Bytes most = 0;
  for (const client::MessageEntry& message : segment.messages) most = std::max<Bytes>(most, message.bytes);
  EXPECT_GT(most, 16u * 1024);
  EXPECT_EQ(segment.messages[0].known_by, static_cast<std::uint16_t>(client::KnownBy::kAttributes));
}

TEST_F(NcclManaged, AHoldThatNobodyEndsIsVoidAfterItsBound) {
  Child child = Start(kUntilFinished, {"--sizes=64K"}, {"WEIR_NCCL_HOLD_MAX_MS=100"});
  WaitForTraffic(&child);
  SetGates(GateState::kHold);
  EXPECT_TRUE(WaitFor([&] { return lane(0).writes_held + lane(1).writes_held > 0; }));
  const std::uint64_t before = Sent();
  EXPECT_TRUE(WaitFor([&] { return Sent() > before + 1'000'000; }));
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, AFrozenAgentIsLeftAndFoundAgain) {
  Child child = Start(kUntilFinished, {"--sizes=64K"}, {"WEIR_NCCL_HOLD_MAX_MS=60000"});
  WaitForTraffic(&child);
  SetGates(GateState::kHold);
  agent_.Freeze();
  EXPECT_TRUE(WaitFor([&] { return agent_.attached() >= 4; }));
  EXPECT_EQ(agent_.segment(0)->header.detached, 1u);
  EXPECT_EQ(agent_.segment(1)->header.detached, 1u);
  agent_.Thaw();
  EXPECT_TRUE(WaitFor([&] {
    const std::size_t last = agent_.attached() - 1;
    return lane(last).bytes_accepted > 0 && lane(last).messages > 0;
  }));
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, AnAgentThatEndsInOrderIsLeftAtOnce) {
  Child child = Start(kUntilFinished, {"--sizes=64K"}, {"WEIR_NCCL_HOLD_MAX_MS=60000"});
  WaitForTraffic(&child);
  SetGates(GateState::kHold);
  agent_.Release(0);
  agent_.Release(1);
  EXPECT_TRUE(
      WaitFor([&] { return agent_.segment(0)->header.detached == 1 && agent_.segment(1)->header.detached == 1; }));
  agent_.Thaw();
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, ACapIsKept) {
  constexpr std::uint64_t kRate = 2'000'000;  // Of each of two connections of two ranks.
  Child child = Start(kUntilFinished, {"--sizes=4M", "--channels=2"});
  WaitForTraffic(&child);
  SetPacing(kRate);
  Pause(50'000'000);
  const std::uint64_t before = Sent();
  const std::int64_t begin = NowNs();
  Pause(500'000'000);
  const double most = 4 * (static_cast<double>(kRate) * static_cast<double>(NowNs() - begin) / 1e9 + 300'000);
  EXPECT_LE(static_cast<double>(Sent() - before), most);
  EXPECT_TRUE(child.Running());
  SetPacing(0);
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, NoCapIsBelowTheFloor) {
  Child child = Start(kUntilFinished, {"--sizes=4M", "--channels=1"});
  WaitForTraffic(&child);
  SetPacing(1);
  Pause(50'000'000);
  const std::uint64_t before = Sent();
  EXPECT_TRUE(WaitFor([&] { return Sent() > before + 50'000; }));
  SetPacing(0);
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, ADirectivesMarksAreOnThePackets) {
  Child child = Start(kUntilFinished, {"--sizes=64K", "--compute_ms=5"}, {"WEIR_NCCL_TRAFFIC_CLASS=32"});
  WaitForTraffic(&child);
  EXPECT_TRUE(AnyIs(32, child.pid()));
  for (const std::size_t process : {0u, 1u}) agent_.SetMarks(process, 0, 1u << 31 | 5u << 8 | 0x88u);
  EXPECT_TRUE(WaitFor([&] { return AnyIs(0x88, child.pid()); }));
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, TheEnvironmentGoesFirstIfItIsToldSo) {
  Child child = Start(kUntilFinished, {"--sizes=64K", "--compute_ms=5"},
                      {"WEIR_NCCL_TRAFFIC_CLASS=32", "WEIR_NCCL_CLASS_FROM=environment"});
  WaitForTraffic(&child);
  for (const std::size_t process : {0u, 1u}) agent_.SetMarks(process, 0, 1u << 31 | 5u << 8 | 0x88u);
  Pause(200'000'000);
  EXPECT_FALSE(AnyIs(0x88, child.pid()));
  EXPECT_TRUE(AnyIs(32, child.pid()));
  EXPECT_EQ(child.Finish(), 0) << child.output();
}

TEST_F(NcclManaged, APeerThatIsKilledIsNoticedWhileHeld) {
  agent_.SetFirstGate(GateState::kHold);
  Child child = Start(1, {"--sizes=4M", "--fault=kill", "--fault_ms=1500"}, {"WEIR_NCCL_HOLD_MAX_MS=60000"});
  EXPECT_TRUE(WaitFor([&] { return agent_.attached() == 2 && lane(0).writes_held + lane(1).writes_held > 0; }));
  EXPECT_EQ(child.Wait(), 0) << child.output();
}

TEST_F(NcclManaged, ARefusalLeavesTheJobUnmanaged) {
  agent_.RefuseAll(client::kSegmentVersionMajor, "too many");
  Child child = Start(20, {"--sizes=64K"});
  EXPECT_EQ(child.Wait(), 0) << child.output();
  EXPECT_EQ(agent_.attached(), 0u);
}

TEST_F(NcclManaged, WithoutAJobOrWithinTheHostNothingIsManaged) {
  for (const char* variable : {"WEIR_JOB=", "WEIR_MANAGE_LOOPBACK=0"}) {
    Child child = Start(20, {"--sizes=64K"}, {variable, "MASTER_ADDR=", "SLURM_JOB_ID="});
    EXPECT_EQ(child.Wait(), 0) << child.output();
    EXPECT_EQ(agent_.attached(), 0u) << variable;
  }
}

}  // namespace
}  // namespace weir::testing

namespace weir::nccl {
namespace {

TEST(NcclMarking, TheDirectiveMayChangeWhatApplicationAndEnvironmentSay) {
  EXPECT_EQ(ChooseMarking(ClassFrom::kDirective, -1, -1).traffic_class, -1);
  EXPECT_EQ(ChooseMarking(ClassFrom::kDirective, -1, 32).traffic_class, 32);
  EXPECT_EQ(ChooseMarking(ClassFrom::kDirective, 64, 32).traffic_class, 64);
  EXPECT_TRUE(ChooseMarking(ClassFrom::kDirective, 64, 32).directive_may);
}

TEST(NcclMarking, WhoGoesFirstDecidesIfItSaysSomething) {
  EXPECT_EQ(ChooseMarking(ClassFrom::kApplication, 64, 32).traffic_class, 64);
  EXPECT_FALSE(ChooseMarking(ClassFrom::kApplication, 64, 32).directive_may);
  EXPECT_EQ(ChooseMarking(ClassFrom::kApplication, -1, 32).traffic_class, 32);
  EXPECT_TRUE(ChooseMarking(ClassFrom::kApplication, -1, 32).directive_may);
  EXPECT_EQ(ChooseMarking(ClassFrom::kEnvironment, 64, 32).traffic_class, 32);
  EXPECT_FALSE(ChooseMarking(ClassFrom::kEnvironment, 64, 32).directive_may);
  EXPECT_EQ(ChooseMarking(ClassFrom::kEnvironment, 64, -1).traffic_class, 64);
  EXPECT_TRUE(ChooseMarking(ClassFrom::kEnvironment, 64, -1).directive_may);
}

TEST(NcclMarking, WhatIsNoTrafficClassSaysNothing) {
  EXPECT_EQ(ChooseMarking(ClassFrom::kApplication, 256, 32).traffic_class, 32);
  EXPECT_TRUE(ChooseMarking(ClassFrom::kApplication, 256, 32).directive_may);
}

}  // namespace
}  // namespace weir::nccl
