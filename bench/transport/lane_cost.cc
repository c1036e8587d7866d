// What a piece of a message pays to the pacer, without system calls. Budget: 50 ns, no allocation.
//
//   BM_AdmitFree     no directive at all
//   BM_AdmitCapped   a cap that never binds
//   BM_RefuseRate    a cap that binds
//   BM_RefuseHold    a lane that is held
//   BM_RefuseLevel   a lane of the last level, and the one above has something to send
//   BM_Clock         reading the clock, which a channel does once for each piece besides
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "transport/clock.h"
#include "transport/pacer/pacer.h"

namespace {

using weir::transport::Lane;
using weir::transport::LaneDirective;
using weir::transport::Pacer;

/// One directive for good.
class Fixed final : public weir::transport::DirectiveSource {
 public:
  explicit Fixed(const LaneDirective& directive) : directive_(directive) {}
  std::uint64_t Version() const noexcept override { return 1; }
  LaneDirective Read() const noexcept override { return directive_; }

 private:
  LaneDirective directive_;
};

void Ask(benchmark::State& state, const LaneDirective& directive, weir::Nanoseconds step) {
  Pacer pacer;
  Fixed source(directive);
  Lane lane(&pacer, &source);
  weir::Nanoseconds now = 1;
  for (auto _ : state) benchmark::DoNotOptimize(lane.Admit(4096, now += step));
}

void BM_AdmitFree(benchmark::State& state) {
  Pacer pacer;
  Lane lane(&pacer, nullptr);
  weir::Nanoseconds now = 1;
  for (auto _ : state) benchmark::DoNotOptimize(lane.Admit(4096, ++now));
}
BENCHMARK(BM_AdmitFree);

void BM_AdmitCapped(benchmark::State& state) {
  Ask(state, {0, 1e9, {}, 0}, 5000);
}
BENCHMARK(BM_AdmitCapped);

void BM_RefuseRate(benchmark::State& state) {
  Ask(state, {0, 1, {}, 0}, 1);
}
BENCHMARK(BM_RefuseRate);

void BM_RefuseHold(benchmark::State& state) {
  Ask(state, {0, 0, {}, weir::kSecond}, 0);
}
BENCHMARK(BM_RefuseHold);

void BM_RefuseLevel(benchmark::State& state) {
  Pacer pacer;
  std::vector<std::unique_ptr<Fixed>> sources;
  std::vector<std::unique_ptr<Lane>> lanes;
  for (std::uint8_t level = 0; level < weir::kQueueLevels; ++level) {
    // All but the one just above are idle: the whole way down is looked at.
    sources.push_back(std::make_unique<Fixed>(LaneDirective{level, 0, {}, 0}));
    lanes.push_back(std::make_unique<Lane>(&pacer, sources.back().get()));
  }
  lanes[weir::kQueueLevels - 2]->Admit(1, 1);
  for (auto _ : state) benchmark::DoNotOptimize(lanes.back()->Admit(4096, 2));
}
BENCHMARK(BM_RefuseLevel);

void BM_Clock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(weir::transport::SteadyClock().Now());
}
BENCHMARK(BM_Clock);

}  // namespace
