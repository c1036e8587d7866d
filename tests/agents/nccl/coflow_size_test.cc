#include "agents/nccl/coflow_size.h"

#include <gtest/gtest.h>

namespace weir::nccl {
namespace {

TEST(CoflowSize, DatatypesHaveTheirWidths) {
  for (const char* one : {"ncclInt8", "ncclUint8", "ncclFloat8e4m3", "ncclFloat8e5m2"})
    EXPECT_EQ(BytesOfDatatype(one), 1u) << one;
  for (const char* two : {"ncclFloat16", "ncclBfloat16"}) EXPECT_EQ(BytesOfDatatype(two), 2u) << two;
  for (const char* four : {"ncclInt32", "ncclUint32", "ncclFloat32"}) EXPECT_EQ(BytesOfDatatype(four), 4u) << four;
  for (const char* eight : {"ncclInt64", "ncclUint64", "ncclFloat64"}) EXPECT_EQ(BytesOfDatatype(eight), 8u) << eight;
  EXPECT_EQ(BytesOfDatatype("?"), 1u);
  EXPECT_EQ(BytesOfDatatype(nullptr), 1u);
}

TEST(CoflowSize, ARingPassesOnWhatItMust) {
  EXPECT_EQ(BytesToPeer(Function::kAllReduce, "RING", 4000, 4), 6000u);
  EXPECT_EQ(BytesToPeer(Function::kAllReduce, "RING", 4000, 2), 4000u);
  EXPECT_EQ(BytesToPeer(Function::kAllGather, "RING", 1000, 4), 3000u);
  EXPECT_EQ(BytesToPeer(Function::kReduceScatter, "RING", 1000, 4), 3000u);
  EXPECT_EQ(BytesToPeer(Function::kBroadcast, "RING", 1000, 4), 1000u);
  EXPECT_EQ(BytesToPeer(Function::kReduce, "RING", 1000, 4), 1000u);
}

TEST(CoflowSize, EverythingElseIsAtMostAllOfIt) {
  EXPECT_EQ(BytesToPeer(Function::kAllReduce, "TREE", 4000, 4), 4000u);
  EXPECT_EQ(BytesToPeer(Function::kAllReduce, nullptr, 4000, 4), 4000u);
  EXPECT_EQ(BytesToPeer(Function::kSendReceive, nullptr, 4000, 4), 4000u);
}

TEST(CoflowSize, AnUnknownNumberOfRanksIsTwo) {
  EXPECT_EQ(BytesToPeer(Function::kAllReduce, "RING", 4000, 0), 4000u);
  EXPECT_EQ(BytesToPeer(Function::kAllGather, "RING", 4000, 0), 4000u);
}

}  // namespace
}  // namespace weir::nccl
