// What the agent makes of memory that a process writes, honest or not.
#include "agents/host/segment_host.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace weir::agents {
namespace {

using client::Segment;

/// Both ends: the agent's SegmentHost, and the memory as the process maps it.
class SegmentHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto created = SegmentHost::Create(1234);
    ASSERT_TRUE(created) << created.error().message();
    host_ = std::move(*created);
    void* memory = mmap(nullptr, sizeof(Segment), PROT_READ | PROT_WRITE, MAP_SHARED, host_->memfd(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    process_ = static_cast<Segment*>(memory);
  }
  void TearDown() override {
    if (process_ != nullptr) munmap(process_, sizeof(Segment));
  }

  void OpenLane(std::uint32_t index, const char* address = "10.0.0.2") {
    client::LaneSlot& slot = process_->lanes[index];
    slot.family = AF_INET;
    inet_pton(AF_INET, address, slot.peer_address);
    slot.state.store(1);
    process_->header.lanes_used.store(std::max(process_->header.lanes_used.load(), index + 1));
  }
  void OpenSocket(std::uint32_t index, std::uint32_t lane) {
    client::SocketSlot& slot = process_->sockets[index];
    slot.lane.store(lane);
    slot.family = AF_INET;
    slot.local_port = 1000;
    slot.peer_port = 2000;
    slot.state.store(1);
    process_->header.sockets_used.store(std::max(process_->header.sockets_used.load(), index + 1));
  }
  void Begin(std::uint64_t number, std::uint32_t socket, std::uint64_t bytes) {
    client::MessageEntry& entry = process_->messages[number % client::kMessageRingSize];
    entry.time.store(static_cast<std::int64_t>(number));
    entry.bytes.store(bytes);
    entry.socket.store(socket);
    entry.ticket.store(number + 1);
    process_->header.messages_begun.store(number + 1);
  }
  const SegmentHost::News& Look() {
    news_.Clear();
    host_->Look(&news_);
    return news_;
  }

  std::unique_ptr<SegmentHost> host_;
  Segment* process_ = nullptr;
  SegmentHost::News news_;
};

TEST_F(SegmentHostTest, NewSegmentIsReadableAndSealed) {
  EXPECT_EQ(process_->header.magic, client::kSegmentMagic);
  EXPECT_EQ(process_->header.version_major, client::kSegmentVersionMajor);
  EXPECT_EQ(process_->header.size, sizeof(Segment));
  EXPECT_EQ(process_->header.heartbeat.load(), 1234);
  EXPECT_NE(ftruncate(host_->memfd(), 1), 0);
  EXPECT_NE(ftruncate(host_->memfd(), 2 * sizeof(Segment)), 0);
}

TEST_F(SegmentHostTest, LaneIsNewsOnce) {
  OpenLane(0);
  ASSERT_EQ(Look().lanes.size(), 1u);
  EXPECT_EQ(news_.lanes[0].second, "10.0.0.2");
  EXPECT_TRUE(Look().lanes.empty());
  EXPECT_TRUE(news_.samples.empty());
}

TEST_F(SegmentHostTest, RestsOfALanesSocketsAddUp) {
  OpenLane(0);
  OpenLane(1);
  OpenSocket(0, 0);
  OpenSocket(1, 0);
  OpenSocket(2, 1);
  process_->sockets[0].rest.store(100);
  process_->sockets[1].rest.store(20);
  process_->sockets[2].rest.store(3);
  ASSERT_EQ(Look().samples.size(), 2u);
  EXPECT_EQ(news_.samples[0].second.rest, 120u);
  EXPECT_EQ(news_.samples[0].second.sockets, 2u);
  EXPECT_EQ(news_.samples[1].second.rest, 3u);
}

TEST_F(SegmentHostTest, HowSendsAreKnownIsNewsWhenItChanges) {
  OpenLane(1);
  Look();
  process_->stalls[1].sends_by_profiler.store(3);
  process_->stalls[1].sends_by_attributes.store(2);
  process_->stalls[1].sends_by_idle_gap.store(1);
  ASSERT_EQ(Look().samples.size(), 1u);
  EXPECT_EQ(news_.samples[0].second.sends, (LaneSends{3, 2, 1}));
  EXPECT_TRUE(Look().samples.empty());
}

TEST_F(SegmentHostTest, StallsAreNewsWhenTheyChange) {
  OpenLane(1);
  Look();
  process_->stalls[1].gpu_ns.store(1);
  process_->stalls[1].credit_ns.store(2);
  process_->stalls[1].network_ns.store(3);
  process_->stalls[1].held_ns.store(4);
  ASSERT_EQ(Look().samples.size(), 1u);
  EXPECT_EQ(news_.samples[0].second.stalls, (LaneStalls{1, 2, 3, 4}));
  EXPECT_TRUE(Look().samples.empty());
}

TEST_F(SegmentHostTest, RingTakenIsReportedOnce) {
  OpenLane(0);
  Look();
  host_->Arm(0, true, true);
  EXPECT_EQ(process_->lanes[0].want_start.load(), 1u);
  EXPECT_TRUE(Look().samples.empty());
  process_->lanes[0].want_start.store(0);
  ASSERT_EQ(Look().samples.size(), 1u);
  EXPECT_TRUE(news_.samples[0].second.start_taken);
  EXPECT_FALSE(news_.samples[0].second.drain_taken);
  EXPECT_TRUE(Look().samples.empty());
}

TEST_F(SegmentHostTest, MessagesComeInOrderAndOnce) {
  OpenLane(2);
  OpenSocket(5, 2);
  Begin(0, 5, 100);
  Begin(1, 5, 200);
  ASSERT_EQ(Look().messages.size(), 2u);
  EXPECT_EQ(news_.messages[0].lane, 2u);
  EXPECT_EQ(news_.messages[1].bytes, 200u);
  EXPECT_TRUE(Look().messages.empty());
}

TEST_F(SegmentHostTest, AMessageSaysHowItsCoflowWasKnown) {
  OpenLane(0);
  OpenSocket(0, 0);
  process_->messages[0].known_by.store(3);
  process_->messages[1].known_by.store(4);  // Of a later version, or a lie.
  for (std::uint64_t i = 0; i < 3; ++i) Begin(i, 0, 100);
  ASSERT_EQ(Look().messages.size(), 3u);
  EXPECT_EQ(news_.messages[0].known_by, client::KnownBy::kIdleGap);
  EXPECT_EQ(news_.messages[1].known_by, client::KnownBy::kWrites);
  EXPECT_EQ(news_.messages[2].known_by, client::KnownBy::kWrites);
}

TEST_F(SegmentHostTest, MessageStillBeingWrittenWaits) {
  OpenLane(0);
  OpenSocket(0, 0);
  process_->header.messages_begun.store(1);
  EXPECT_TRUE(Look().messages.empty());
  Begin(0, 0, 100);
  EXPECT_EQ(Look().messages.size(), 1u);
  EXPECT_EQ(news_.messages_lost, 0u);
}

TEST_F(SegmentHostTest, LappedRingIsCounted) {
  OpenLane(0);
  OpenSocket(0, 0);
  for (std::uint64_t i = 0; i < client::kMessageRingSize + 10; ++i) Begin(i, 0, 100);
  EXPECT_EQ(Look().messages.size(), client::kMessageRingSize);
  EXPECT_EQ(news_.messages_lost, 10u);
}

TEST_F(SegmentHostTest, CounterThatJumpsCostsAtMostOneRing) {
  OpenLane(0);
  process_->header.messages_begun.store(~std::uint64_t{0});
  Look();
  EXPECT_TRUE(news_.messages.empty());
  process_->header.messages_begun.store(3);  // And backwards.
  Look();
  EXPECT_TRUE(news_.messages.empty());
}

TEST_F(SegmentHostTest, WildIndicesAreNotFollowed) {
  OpenLane(0);
  OpenSocket(0, 4'000'000'000u);
  process_->sockets[0].rest.store(100);
  Begin(0, 4'000'000'000u, 100);
  Begin(1, 0, 100);
  process_->header.lanes_used.store(~0u);
  process_->header.sockets_used.store(~0u);
  Look();
  EXPECT_TRUE(news_.messages.empty());
  EXPECT_EQ(news_.messages_lost, 2u);
  EXPECT_TRUE(host_->Sockets(0).empty());
  host_->Arm(4'000'000'000u, true, true);
  host_->Write(4'000'000'000u, LaneControl());
  host_->Wake({4'000'000'000u});
  EXPECT_EQ(host_->Sample(4'000'000'000u).rest, 0u);
}

TEST_F(SegmentHostTest, AbsurdSizesAreDroppedOrBounded) {
  OpenLane(0);
  OpenSocket(0, 0);
  Begin(0, 0, 0);
  Begin(1, 0, ~std::uint64_t{0});
  process_->sockets[0].rest.store(~std::uint64_t{0});
  Look();
  EXPECT_TRUE(news_.messages.empty());
  EXPECT_EQ(news_.messages_lost, 2u);
  ASSERT_EQ(news_.samples.size(), 1u);
  EXPECT_LE(news_.samples[0].second.rest, Bytes{1} << 40);
}

TEST_F(SegmentHostTest, LaneOfUnknownFamilyStaysUnmanaged) {
  OpenLane(0);
  process_->lanes[0].family = 77;
  EXPECT_TRUE(Look().lanes.empty());
}

TEST_F(SegmentHostTest, ControlsArriveWhole) {
  OpenLane(0);
  Look();
  LaneControl control;
  control.hold = true;
  control.hold_until = 5000;
  control.pacing_rate = 1'000'000;
  control.notsent_lowat = 16'384;
  control.marks = 7;
  host_->Write(0, control);
  const client::LaneSlot& slot = process_->lanes[0];
  EXPECT_EQ(slot.sequence.load() % 2, 0u);
  EXPECT_EQ(slot.gate.load(), 1u);
  EXPECT_EQ(slot.hold_until.load(), 5000);
  EXPECT_EQ(slot.directive.pacing_rate.load(), 1'000'000u);
  EXPECT_EQ(slot.directive.notsent_lowat.load(), 16'384u);
  EXPECT_EQ(slot.directive.marks.load(), 7u);
  const std::uint32_t generation = process_->header.generation.load();
  host_->Wake({0});
  EXPECT_EQ(process_->header.generation.load(), generation + 1);
}

TEST_F(SegmentHostTest, ReleaseOpensEverything) {
  OpenLane(0);
  Look();
  LaneControl control;
  control.hold = true;
  control.pacing_rate = 1'000'000;
  host_->Write(0, control);
  host_->Release();
  EXPECT_EQ(process_->lanes[0].gate.load(), 0u);
  EXPECT_EQ(process_->lanes[0].directive.pacing_rate.load(), 0u);
  EXPECT_EQ(process_->header.heartbeat.load(), 0);
}

TEST_F(SegmentHostTest, DetachedProcessIsNoticed) {
  EXPECT_FALSE(Look().detached);
  process_->header.detached.store(1);
  EXPECT_TRUE(Look().detached);
}

}  // namespace
}  // namespace weir::agents
