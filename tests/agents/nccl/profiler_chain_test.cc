#include "agents/nccl/profiler_chain.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::nccl {
namespace {

int names[3];  // Whose addresses stand for handles.

TEST(ChainBook, ANameLeadsToBothHandlesUntilItIsReleased) {
  ChainBook book;
  const ChainedEvent event{&names[0], &names[1], &names[2]};
  void* const handle = book.Keep(false, event);
  ASSERT_NE(handle, nullptr);
  EXPECT_TRUE(ChainBook::IsChained(handle));
  ChainedEvent found;
  ASSERT_TRUE(book.Find(handle, &found));
  EXPECT_EQ(found.own, event.own);
  EXPECT_EQ(found.theirs, event.theirs);
  EXPECT_EQ(found.context, event.context);
  book.Release(handle);
  EXPECT_FALSE(book.Find(handle, &found));
  book.Release(handle);  // A second end changes nothing.
  void* const next = book.Keep(false, event);
  book.Release(handle);
  EXPECT_TRUE(book.Find(next, &found));
}

TEST(ChainBook, WhatLastsIsFoundAfterItsEndAndUntilManyLaterOnes) {
  ChainBook book;
  void* const first = book.Keep(true, {&names[0], &names[1], nullptr});
  book.Release(first);
  ChainedEvent found;
  for (std::size_t i = 1; i < ChainBook::kLasting; ++i) book.Keep(true, {nullptr, &names[2], nullptr});
  EXPECT_TRUE(book.Find(first, &found));
  book.Keep(true, {nullptr, &names[2], nullptr});
  EXPECT_FALSE(book.Find(first, &found));
}

TEST(ChainBook, WithoutAFreeRecordThereIsNoName) {
  ChainBook book;
  std::vector<void*> kept;
  for (std::size_t i = 0; i < ChainBook::kOpen; ++i) kept.push_back(book.Keep(false, {nullptr, &names[0], nullptr}));
  EXPECT_EQ(book.Keep(false, {nullptr, &names[0], nullptr}), nullptr);
  for (void* const handle : kept) {
    ASSERT_NE(handle, nullptr);
    book.Release(handle);
  }
  EXPECT_NE(book.Keep(false, {nullptr, &names[0], nullptr}), nullptr);
}

TEST(ChainBook, WhatIsNoNameOfItsOwnIsNotFound) {
  const ChainBook book;
  ChainedEvent found;
  for (const std::uintptr_t handle : {0ul, 1ul, 2ul, 3ul, 4ul, 5ul, 6ul, ~0ul, (1ul << 17) + 5, (1ul << 17) + 6}) {
    EXPECT_FALSE(book.Find(reinterpret_cast<void*>(handle), &found)) << handle;
  }
}

TEST(ProfilerChain, WhatIsAboveAnEventIsMadeToo) {
  EXPECT_EQ(WithParents(0), 0u);
  EXPECT_EQ(WithParents(abi::kEventGroupApi), abi::kEventGroupApi);
  EXPECT_EQ(WithParents(abi::kEventProxyControl), abi::kEventProxyControl);
  constexpr std::uint64_t kCalls = 0x707;
  EXPECT_EQ(WithParents(abi::kEventCollective), kCalls & ~abi::kEventP2p);
  EXPECT_EQ(WithParents(abi::kEventProxyStep), kCalls | abi::kEventProxyOp | abi::kEventProxyStep);
  EXPECT_EQ(WithParents(abi::kEventCopySync), 0x3700u);
}

TEST(ProfilerChain, ItIsLookedForAsNcclDoes) {
  EXPECT_EQ(OtherProfilerNames("example"), (std::array<std::string, 2>{"example", "libnccl-profiler-example.so"}));
  EXPECT_EQ(OtherProfilerNames("/opt/p.so"), (std::array<std::string, 2>{"/opt/p.so", ""}));
  EXPECT_EQ(OtherProfilerNames("libp.so"), (std::array<std::string, 2>{"libp.so", ""}));
}

}  // namespace
}  // namespace weir::nccl
