// What a message costs on real verbs once its memory is registered: no allocation.
#include <sys/mman.h>

#include <cstring>

#include "tests/allocation_counter.h"
#include "tests/transport/rdma/vm_ends.h"

namespace weir::transport::rdma {
namespace {

TEST(RdmaAllocation, AMessageInRegisteredMemoryNeedsNone) {
  VmEnd left("=rxe0", "left/1");
  VmEnd right("=rxe1", "right/2");
  for (const std::uint32_t slots : {1u, 4u}) {
    const auto listener = right.Listen(slots);
    auto [sender, receiver] = Join(listener.get(), left.Connect(listener->handle()).get());
    std::vector<std::byte> data(1 << 20);
    std::vector<std::byte> room(1 << 20);
    const MemoryId from = sender->Register(data.data(), data.size(), MemoryKind::kHost).value();
    const MemoryId to = receiver->Register(room.data(), room.size(), MemoryKind::kHost).value();
    const auto before = Allocations();
    for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{5000}, Bytes{1} << 20}) {
      const Part part{data.data(), size, from};
      const Slot slot{room.data(), room.size(), 0, to};
      Request* send = nullptr;
      Request* receive = nullptr;
      ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
      while (sender->Isend(std::span(&part, 1), 0, &send) == Outcome::kAgain) {
      }
      ASSERT_NE(send, nullptr);
      bool sent = false;
      bool received = false;
      while (!sent || !received) {
        sent = sent || sender->Test(send, {}) == Outcome::kDone;
        received = received || receiver->Test(receive, {}) == Outcome::kDone;
        ASSERT_TRUE(sender->failure().ok() && receiver->failure().ok());
      }
    }
    EXPECT_EQ(Allocations(), before) << slots;
  }
}

TEST(RdmaMemory, AllThatWasRegisteredIsGivenBackWhateverWasUnderWay) {
  VmEnd left("=rxe0", "left/1");
  VmEnd right("=rxe1", "right/2");
  std::vector<std::byte> data(4 << 20);
  std::vector<std::byte> room(4 << 20);
  {
    const auto listener = right.Listen();
    auto [sender, receiver] = Join(listener.get(), left.Connect(listener->handle()).get());
    ASSERT_TRUE(sender->Register(data.data(), 100, MemoryKind::kHost).has_value());
    const Part part{data.data(), data.size(), {}};
    const Slot slot{room.data(), room.size(), 0, {}};
    Request* request = nullptr;
    ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &request), Outcome::kDone);
    ASSERT_EQ(sender->Isend(std::span(&part, 1), 0, &request), Outcome::kDone);
    EXPECT_GE(left.port->registrations().ranges(), 3u) << "the ring, what was registered, and what the message needs";
  }
  EXPECT_EQ(left.port->registrations().ranges(), 0u);
  EXPECT_EQ(right.port->registrations().ranges(), 0u);
}

TEST(RdmaMemory, WhatIsMappedAnewIsNotTakenForRegistered) {
  constexpr Bytes kPage = 4096;
  constexpr Bytes kSize = 16 * kPage;
  VmEnd left("=rxe0", "left/1");
  VmEnd right("=rxe1", "right/2");
  const auto listener = right.Listen();
  auto [sender, receiver] = Join(listener.get(), left.Connect(listener->handle()).get());
  const auto map = [](void* at) {
    return mmap(at, kSize - (at == nullptr ? 0 : kPage), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | (at == nullptr ? 0 : MAP_FIXED), -1, 0);
  };
  auto* const room = static_cast<std::byte*>(map(nullptr));
  ASSERT_NE(room, MAP_FAILED);
  MemoryId neighbour;
  for (const std::byte content : {std::byte{1}, std::byte{2}}) {
    const std::vector<std::byte> data(kSize, content);
    const Part part{data.data(), data.size(), {}};
    const Slot slot{room, kSize, 0, {}};
    Request* send = nullptr;
    Request* receive = nullptr;
    ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
    // Held on while the memory behind the first page goes and other memory comes in its place.
    if (content == std::byte{1}) neighbour = receiver->Register(room, 100, MemoryKind::kHost).value();
    ASSERT_TRUE(Within(20 * kSecond, [&] { return sender->Isend(std::span(&part, 1), 0, &send) != Outcome::kAgain; }));
    EXPECT_TRUE(Within(20 * kSecond, [&] {
      return sender->Look() == Outcome::kDone && receiver->Test(receive, {}) == Outcome::kDone;
    }));
    EXPECT_TRUE(Within(20 * kSecond, [&] { return sender->Test(send, {}) == Outcome::kDone; }));
    EXPECT_EQ(std::memcmp(room, data.data(), kSize), 0) << static_cast<int>(content);
    ASSERT_TRUE(content != std::byte{1} || map(room + kPage) == room + kPage);
  }
  EXPECT_TRUE(receiver->Deregister(neighbour).ok());
  munmap(room, kSize);
}

TEST(RdmaMemory, WhatCameCanBeFlushed) {
  VmEnd left("=rxe0", "left/1");
  VmEnd right("=rxe1", "right/2");
  const auto listener = right.Listen();
  auto [sender, receiver] = Join(listener.get(), left.Connect(listener->handle()).get());
  std::vector<std::byte> room(64 * 4096);
  const MemoryId memory = receiver->Register(room.data(), 4096, MemoryKind::kHost).value();
  const Slot nothing{room.data(), 0, 0, memory};
  EXPECT_EQ(receiver->Flush(std::span(&nothing, 1)).value(), nullptr);
  const Slot outside{room.data() + 4 * 4096, 4096, 0, memory};
  EXPECT_EQ(receiver->Flush(std::span(&outside, 1)).error().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(receiver->failure().ok());

  const Slot slot{room.data(), 4096, 0, memory};
  std::vector<Request*> flushes;
  for (int i = 0; i < 300; ++i) {
    const auto flush = receiver->Flush(std::span(&slot, 1));
    if (!flush) {
      EXPECT_EQ(flush.error().code(), StatusCode::kResourceExhausted);
      break;
    }
    flushes.push_back(*flush);
  }
  EXPECT_EQ(flushes.size(), right.options.requests);
  for (int again = 0; again < 2; ++again) {
    for (Request* flush : flushes) {
      EXPECT_TRUE(Within(20 * kSecond, [&, flush = flush] { return receiver->Test(flush, {}) == Outcome::kDone; }));
    }
    flushes.assign(1, receiver->Flush(std::span(&slot, 1)).value());
  }
}

TEST(RdmaMemory, APartOutsideOfTheMemoryThatItNamesBreaksTheChannel) {
  VmEnd left("=rxe0", "left/1");
  VmEnd right("=rxe1", "right/2");
  const auto listener = right.Listen();
  auto [sender, receiver] = Join(listener.get(), left.Connect(listener->handle()).get());
  std::vector<std::byte> data(64 * 4096);
  const MemoryId memory = sender->Register(data.data(), 4096, MemoryKind::kHost).value();
  const Part part{data.data() + 8192, 4096, memory};
  Request* request = nullptr;
  EXPECT_EQ(sender->Isend(std::span(&part, 1), 0, &request), Outcome::kFailed);
  EXPECT_EQ(sender->failure().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(sender->failure().message().find("not within the memory that it names"), std::string::npos);
}

}  // namespace
}  // namespace weir::transport::rdma
