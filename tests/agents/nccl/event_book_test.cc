#include "agents/nccl/event_book.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <vector>

namespace weir::nccl {
namespace {

constexpr std::uint64_t kComm = 0xabc;

CoflowKey AllReduce(std::uint64_t sequence) {
  return {kComm, sequence, 0, Function::kAllReduce, Attribution::kProfiler};
}

struct EventBookTest : testing::Test {
  void* Op(const void* collective, pid_t pid = getpid()) { return book->NewOp(collective, pid, 1, 2, 3); }
  bool Knows(const void* step) {
    TransferIdentity found;
    return book->Identify(step, &found);
  }

  std::unique_ptr<EventBook> book = std::make_unique<EventBook>(1000);
};

TEST_F(EventBookTest, AStepLeadsToItsCollective) {
  void* const op = Op(book->NewCollective(AllReduce(7)));
  TransferIdentity found;
  ASSERT_TRUE(book->Identify(book->NewStep(op), &found));
  EXPECT_TRUE(found.known);
  EXPECT_EQ(found.key, AllReduce(7));
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.peer, 2);
  EXPECT_EQ(found.channel, 3);
}

TEST_F(EventBookTest, AfterTheOperationItsStepsAreUnknown) {
  void* const op = Op(book->NewCollective(AllReduce(7)));
  void* const step = book->NewStep(op);
  book->EndOp(op);
  EXPECT_FALSE(Knows(step));
  EXPECT_EQ(book->NewStep(op), nullptr);
  // The same record, used again.
  for (std::size_t i = 0; i < EventBook::kOps; ++i) book->EndOp(Op(book->NewCollective(AllReduce(i))));
  EXPECT_FALSE(Knows(step));
}

TEST_F(EventBookTest, ACollectiveWhoseRecordWasUsedAgainIsUnknown) {
  void* const old = book->NewCollective(AllReduce(7));
  for (std::size_t i = 0; i < EventBook::kCollectives; ++i) book->NewCollective(AllReduce(8 + i));
  EXPECT_EQ(Op(old), nullptr);
}

TEST_F(EventBookTest, WhatAnotherProcessMadeIsUnknown) {
  void* const collective = book->NewCollective(AllReduce(7));
  EXPECT_EQ(Op(collective, getpid() + 1), nullptr);
  // Containers may give both processes one number.
  EventBook other(1'000'000);
  void* const op = other.NewOp(other.NewCollective(AllReduce(9)), getpid(), 1, 2, 3);
  EXPECT_EQ(Op(other.NewCollective(AllReduce(8))), nullptr);
  EXPECT_EQ(book->NewStep(op), nullptr);
  EXPECT_FALSE(Knows(other.NewStep(op)));
}

TEST_F(EventBookTest, WhatIsNoHandleIsUnknown) {
  for (const std::uintptr_t bits : {0u, 1u, 2u, 3u, 4u, 0x7fffu, 0xfffffffcu}) {
    const void* const handle = reinterpret_cast<const void*>(bits);
    EXPECT_EQ(Op(handle), nullptr) << bits;
    EXPECT_EQ(book->NewStep(handle), nullptr) << bits;
    EXPECT_FALSE(Knows(handle)) << bits;
    EXPECT_FALSE(book->IsOp(handle)) << bits;
    book->EndOp(handle);
  }
}

TEST_F(EventBookTest, MoreOperationsThanRecordsAreUnknownUntilOneEnds) {
  void* const collective = book->NewCollective(AllReduce(7));
  std::vector<void*> ops;
  for (std::size_t i = 0; i < EventBook::kOps; ++i) ops.push_back(Op(collective));
  EXPECT_NE(ops.back(), nullptr);
  EXPECT_EQ(Op(collective), nullptr);
  for (void* op : ops) book->EndOp(op);
  EXPECT_NE(Op(collective), nullptr);
}

TEST(ProfiledComm, ANumberThatComesAgainIsAReplay) {
  ProfiledComm comm(kComm);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 0).replay, 0u);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 1).replay, 0u);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 1).replay, 1u);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 1).replay, 2u);
  EXPECT_EQ(comm.Collective(0, Function::kAllGather, 1).replay, 0u);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 2).replay, 0u);
}

TEST(ProfiledComm, TheEventsCommunicatorGoesBeforeItsOwn) {
  ProfiledComm comm(kComm);
  EXPECT_EQ(comm.Collective(0, Function::kAllReduce, 0).comm_id, kComm);
  EXPECT_EQ(comm.Collective(5, Function::kAllReduce, 1).comm_id, 5u);
}

TEST(ProfiledComm, SendsAndReceivesOfOneGroupAreOneCoflow) {
  ProfiledComm comm(kComm);
  const int groups[2] = {};
  const CoflowKey first = comm.PointToPoint(0, &groups[0]);
  EXPECT_EQ(comm.PointToPoint(0, &groups[0]), first);
  EXPECT_EQ(comm.PointToPoint(0, &groups[1]).sequence, first.sequence + 1);
}

}  // namespace
}  // namespace weir::nccl
