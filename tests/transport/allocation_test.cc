// Nothing on the path of a message allocates: this program counts every call of operator new.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/allocation_counter.h"
#include "transport/dpdk/packet_transport.h"
#include "transport/fake/manual_clock.h"
#include "transport/fake/scripted_directives.h"
#include "transport/pacer/pacer.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::transport {
namespace {

TEST(Allocation, TheCounterCounts) {
  const auto before = Allocations();
  ::operator delete(::operator new(3));  // A new expression may be optimised away.
  EXPECT_EQ(Allocations(), before + 1);
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
  const auto before = Allocations();
  for (int i = 0; i < 10'000; ++i) {
    lane.Return(lane.Admit(1000, clock.Now()) / 2);
    clock.Advance(10 * kMicrosecond);
  }
  EXPECT_EQ(Allocations(), before);
}

/// A channel of `slots`, and messages of several sizes over it, of which none may allocate.
void MoveWithoutAllocation(Transport* from, Transport* to, std::uint32_t slots, ManualClock* clock) {
  const auto listener = std::move(to->Listen(0, slots).value());
  Pacer pacer;
  Lane lane(&pacer, nullptr);
  const auto connector = std::move(from->Connect(0, listener->handle(), &lane).value());
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  while (sender == nullptr || receiver == nullptr) {
    if (receiver == nullptr) receiver = std::move(listener->Accept().value());
    if (sender == nullptr) sender = std::move(connector->Poll().value());
    clock->Advance(kMillisecond);
  }
  std::vector<std::byte> data(1 << 20);
  std::vector<std::byte> room(1 << 20);
  const auto before = Allocations();
  for (const Bytes size : {Bytes{0}, Bytes{1}, Bytes{5000}, Bytes{1} << 20}) {
    const Part part{data.data(), size, {}};
    const Slot slot{room.data(), room.size(), 0, {}};
    Request* send = nullptr;
    Request* receive = nullptr;
    ASSERT_EQ(receiver->Irecv(std::span(&slot, 1), &receive), Outcome::kDone);
    while (sender->Isend(std::span(&part, 1), 0, &send) != Outcome::kDone) clock->Advance(kMillisecond);
    bool sent = false;
    bool received = false;
    while (!sent || !received) {
      sent = sent || sender->Test(send, {}) == Outcome::kDone;
      received = received || receiver->Test(receive, {}) == Outcome::kDone;
      clock->Advance(kMillisecond);
    }
  }
  EXPECT_EQ(Allocations(), before) << slots;
}

/// Two ports that hand each other frames in memory that they have from the start; what does not fit is lost.
class Cable {
 public:
  Cable() : ports_{Port(this, 0), Port(this, 1)} {}
  dpdk::PacketPort* port(std::size_t end) { return &ports_[end]; }

 private:
  static constexpr std::size_t kFrames = 128;

  struct Port final : dpdk::PacketPort {
    Port(Cable* owner, std::size_t number) : cable(*owner), end(number), frames(kFrames + 1, Frame(1514)) {}
    dpdk::MacAddress mac() const noexcept override { return {}; }
    std::size_t frame_bytes() const noexcept override { return 1514; }
    std::byte* Reserve() noexcept override { return frames[sent].data(); }
    void Commit(std::size_t size) noexcept override {
      if (sent < kFrames) sizes[sent++] = size;
    }
    void Flush() noexcept override {}
    std::size_t Receive(std::span<std::span<const std::byte>> out) noexcept override {
      Port& from = cable.ports_[1 - end];
      std::swap(from.frames, received);
      const std::size_t count = std::min(from.sent, out.size());
      for (std::size_t i = 0; i < count; ++i) out[i] = std::span(received[i]).first(from.sizes[i]);
      from.sent = 0;
      return count;
    }

    using Frame = std::vector<std::byte>;
    Cable& cable;
    std::size_t end;
    std::vector<Frame> frames;
    std::vector<Frame> received = std::vector<Frame>(kFrames + 1, Frame(1514));
    std::array<std::size_t, kFrames> sizes{};
    std::size_t sent = 0;
  };

  std::array<Port, 2> ports_;
};

TEST(Allocation, AMessageOverPacketsNeedsNone) {
  ManualClock clock;
  Cable cable;
  std::uint64_t number = 1;
  const auto make = [&](std::size_t end) {
    dpdk::EndpointOptions options;
    options.identity = "end";
    options.address = IpAddress::Parse(end == 0 ? "10.9.0.1" : "10.9.0.2").value();
    return std::move(MakePacketTransport(options, "cable", cable.port(end), &clock, [&] { return number++; }).value());
  };
  const auto left = make(0);
  const auto right = make(1);
  for (const std::uint32_t slots : {1u, 2u}) MoveWithoutAllocation(left.get(), right.get(), slots, &clock);
}

TEST(Allocation, AMessageOverTcpNeedsNone) {
  ManualClock clock;
  TcpOptions options;
  options.interfaces = "=lo";
  const auto transport = std::move(MakeTcpTransport(options, clock).value());
  for (const std::uint32_t slots : {1u, 2u}) MoveWithoutAllocation(transport.get(), transport.get(), slots, &clock);
}

}  // namespace
}  // namespace weir::transport
