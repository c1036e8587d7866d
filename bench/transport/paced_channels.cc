// What the sending end of many channels costs, in memory, without a card: CPU time for each question of their owner,
// and for each frame that went. One thread, which asks one channel after the other; of the time that the protocol sees,
// 50 ns pass with each question, so the runs of two builds do the same.
//
//   BM_Capped/N    N channels share 1 Gbit/s by their caps, and always have a message under way
//   BM_Idle/N      one channel without a cap, and N that have nothing to send
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "transport/dpdk/packet_transport.h"
#include "transport/fake/manual_clock.h"
#include "transport/pacer/pacer.h"

namespace {

using namespace weir;             // NOLINT(google-build-using-namespace)
using namespace weir::transport;  // NOLINT(google-build-using-namespace)

constexpr Bytes kMessage = 64 * 1024;
constexpr Nanoseconds kQuestion = 50;

/// Two ends and a ring of frames towards each; what does not fit is lost.
class Cable {
 public:
  struct Port final : dpdk::PacketPort {
    Cable* cable = nullptr;
    std::size_t end = 0;
    std::vector<std::vector<std::byte>> frames = std::vector(4096, std::vector<std::byte>(1514));
    std::vector<std::size_t> sizes = std::vector<std::size_t>(4096);
    std::size_t came = 0;
    std::size_t taken = 0;

    dpdk::MacAddress mac() const noexcept override {
      return {std::byte{2}, {}, {}, {}, {}, static_cast<std::byte>(end + 1)};
    }
    std::size_t frame_bytes() const noexcept override { return 1514; }
    std::byte* Reserve() noexcept override {
      Port& other = cable->ports[1 - end];
      return other.came - other.taken == other.frames.size() ? nullptr : other.frames[other.came % 4096].data();
    }
    void Commit(std::size_t size) noexcept override {
      Port& other = cable->ports[1 - end];
      other.sizes[other.came++ % 4096] = size;
    }
    void Flush() noexcept override {}
    std::size_t Receive(std::span<std::span<const std::byte>> out) noexcept override {
      taken = told;
      std::size_t count = 0;
      while (count < out.size() && told < came) {
        out[count++] = std::span(frames[told % 4096]).first(sizes[told % 4096]);
        told++;
      }
      return count;
    }
    std::size_t told = 0;
  };

  Cable() {
    for (std::size_t end = 0; end < 2; ++end) {
      ports[end].cable = this;
      ports[end].end = end;
    }
  }
  std::array<Port, 2> ports;
};

/// One directive for good.
class Fixed final : public DirectiveSource {
 public:
  explicit Fixed(double rate) { directive_.rate = rate; }
  std::uint64_t Version() const noexcept override { return 1; }
  LaneDirective Read() const noexcept override { return directive_; }

 private:
  LaneDirective directive_;
};

struct Path {
  std::unique_ptr<Fixed> directive;
  std::unique_ptr<Lane> lane;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  Request* send = nullptr;
  Request* receive = nullptr;
};

struct Bench {
  ManualClock clock;
  Cable cable;
  Pacer pacer;
  std::mt19937_64 random{1};
  std::array<std::unique_ptr<PacketTransport>, 2> transports;
  std::vector<std::byte> memory = std::vector<std::byte>(kMessage);
  std::vector<Path> paths;

  Bench() {
    for (std::size_t end = 0; end < 2; ++end) {
      dpdk::EndpointOptions options;
      options.identity = end == 0 ? "left" : "right";
      options.address = IpAddress::Parse(end == 0 ? "10.9.0.1" : "10.9.0.2").value();
      transports[end] = std::move(
          MakePacketTransport(options, "cable", &cable.ports[end], &clock, [this] { return random(); }).value());
    }
  }

  /// `rate` in bytes a second; 0: no cap.
  void Connect(double rate) {
    Path path;
    path.directive = std::make_unique<Fixed>(rate);
    path.lane = std::make_unique<Lane>(&pacer, path.directive.get());
    auto listener = std::move(transports[1]->Listen(0, 1).value());
    auto connector = std::move(transports[0]->Connect(0, listener->handle(), path.lane.get()).value());
    while (path.sender == nullptr || path.receiver == nullptr) {
      if (path.sender == nullptr) path.sender = std::move(connector->Poll().value());
      if (path.receiver == nullptr) path.receiver = std::move(listener->Accept().value());
      clock.Advance(kMicrosecond);
    }
    paths.push_back(std::move(path));
  }

  /// Asks for the message under way, and begins the next when it is done.
  void Ask(Path* path) {
    clock.Advance(kQuestion);
    if (path->send != nullptr) {
      if (path->sender->Test(path->send, {}) != Outcome::kDone) return;
      while (path->receiver->Test(path->receive, {}) == Outcome::kAgain) {
      }
    }
    const Slot slot{memory.data(), kMessage, 0, {}};
    const Part part{memory.data(), kMessage, {}};
    static_cast<void>(path->receiver->Irecv(std::span(&slot, 1), &path->receive));
    static_cast<void>(path->sender->Isend(std::span(&part, 1), 0, &path->send));
  }
};

void Report(benchmark::State* state, Bench* bench, std::uint64_t questions, std::uint64_t frames) {
  using benchmark::Counter;
  const auto went = bench->transports[0]->counters().frames_sent - frames;
  const auto each = Counter::kIsRate | Counter::kInvert;
  state->counters["s_per_question"] = Counter(static_cast<double>(questions), each);
  state->counters["s_per_frame"] = Counter(static_cast<double>(went), each);
}

void BM_Capped(benchmark::State& state) {
  Bench bench;
  for (std::int64_t i = 0; i < state.range(0); ++i) bench.Connect(125e6 / static_cast<double>(state.range(0)));
  const auto round = [&bench] {
    for (Path& path : bench.paths) bench.Ask(&path);
    bench.transports[1]->Serve();
  };
  for (int i = 0; i < 1000; ++i) round();
  const std::uint64_t frames = bench.transports[0]->counters().frames_sent;
  std::uint64_t questions = 0;
  for (auto _ : state) {
    round();
    questions += bench.paths.size();
  }
  Report(&state, &bench, questions, frames);
}
BENCHMARK(BM_Capped)->Arg(1)->Arg(16)->Arg(256)->Arg(1024);

void BM_Idle(benchmark::State& state) {
  Bench bench;
  for (std::int64_t i = 0; i <= state.range(0); ++i) bench.Connect(0);
  std::uint64_t questions = 0;
  const std::uint64_t frames = bench.transports[0]->counters().frames_sent;
  for (auto _ : state) {
    bench.Ask(&bench.paths[0]);
    bench.transports[1]->Serve();
    questions++;
  }
  Report(&state, &bench, questions, frames);
}
BENCHMARK(BM_Idle)->Arg(0)->Arg(256)->Arg(1024);

}  // namespace
