// Nothing on the path of a message allocates: this program counts every call of operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "transport/fake/manual_clock.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"
#include "transport/tcp/tcp_transport.h"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* Count(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) {
  return Count(size);
}
void* operator new[](std::size_t size) {
  return Count(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace weir::transport {
namespace {

TEST(Allocation, TheCounterCounts) {
  const auto before = allocations.load();
  delete new int(3);
  EXPECT_EQ(allocations.load(), before + 1);
}

TEST(Allocation, APieceThroughTheLaneNeedsNone) {
  ManualClock clock;
  std::vector<ScriptedDirectives::Step> steps;
  steps.reserve(100);
  for (int i = 0; i < 100; ++i) {
    steps.push_back({i * kMillisecond, LaneDirective{static_cast<std::uint8_t>(i % 8), i * 1e6, {}, 0}});
  }
  ScriptedDirectives source(&clock, std::move(steps));
  Pacer pacer;
  Lane lane(&pacer, &source);
  const auto before = allocations.load();
  for (int i = 0; i < 10'000; ++i) {
    lane.Return(lane.Admit(1000, clock.Now()) / 2);
    clock.Advance(10 * kMicrosecond);
  }
  EXPECT_EQ(allocations.load(), before);
}

TEST(Allocation, AMessageOverTcpNeedsNone) {
  ManualClock clock;
  TcpOptions options;
  options.interfaces = "=lo";
  const auto transport = std::move(MakeTcpTransport(options, clock).value());
  for (const std::uint32_t slots : {1u, 2u}) {
    const auto listener = std::move(transport->Listen(0, slots).value());
    Pacer pacer;
    Lane lane(&pacer, nullptr);
    const auto connector = std::move(transport->Connect(0, listener->handle(), &lane).value());
    std::unique_ptr<Sender> sender;
    std::unique_ptr<Receiver> receiver;
    while (sender == nullptr || receiver == nullptr) {
      if (receiver == nullptr) receiver = std::move(listener->Accept().value());
      if (sender == nullptr) sender = std::move(connector->Poll().value());
    }
    std::vector<std::byte> data(1 << 20);
    std::vector<std::byte> room(1 << 20);
    const auto before = allocations.load();
    for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{5000}, Bytes{1} << 20}) {
      const Part part{data.data(), size, {}};
      const Slot slot{room.data(), room.size(), 0, {}};
      Request* send = nullptr;
      Request* receive = nullptr;
      ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
      while (sender->Isend(std::span(&part, 1), 0, &send) != Outcome::kDone) clock.Advance(kMillisecond);
      bool sent = false;
      bool received = false;
      while (!sent || !received) {
        sent = sent || sender->Test(send, {}) == Outcome::kDone;
        received = received || receiver->Test(receive, {}) == Outcome::kDone;
        clock.Advance(kMillisecond);
      }
    }
    EXPECT_EQ(allocations.load(), before) << slots;
  }
}

}  // namespace
}  // namespace weir::transport
