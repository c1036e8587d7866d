// Inside the library, without system calls: the check of a gate, and the whole path of a data write around the write
// itself. Budget for the check: 50 ns, no allocation, no system call.
//
//   BM_GateOpen        reading the gate of a lane that may send
//   BM_GateHeld        reading the gate of a lane that may not: the clock is read too
//   BM_PassOther       a write to something that is no data socket
//   BM_PassData        a write to a data socket: classify, check the gate, keep the books
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>

#include "agents/preload/gate.h"
#include "agents/preload/process.h"

namespace {

using weir::client::GateState;
using weir::client::Segment;
using weir::preload::FdEntry;
using weir::preload::FdKind;
using weir::preload::process;

constexpr int kOtherFd = 900;
constexpr int kDataFd = 901;
constexpr std::int64_t kForEver = std::int64_t{1} << 62;

/// A segment as an agent would have made it, and a data socket in slot 0, lane 0.
Segment* SetUp() {
  static const std::unique_ptr<Segment> segment(new Segment{});
  segment->header.heartbeat = kForEver / 2;
  segment->lanes[0].hold_until = kForEver;
  segment->lanes[0].gate = static_cast<std::uint32_t>(GateState::kGo);
  process.fds.Get(kOtherFd)->kind = FdKind::kOther;
  FdEntry* entry = process.fds.Get(kDataFd);
  entry->life = weir::preload::ProcessLife();
  entry->last_write = weir::client::NowNs();
  entry->kind = FdKind::kData;
  process.segment = segment.get();
  return segment.get();
}

/// A kernel that takes all it is offered.
ssize_t Taken(const void* bytes, std::size_t limit) {
  return static_cast<ssize_t>(std::min(limit, *static_cast<const std::size_t*>(bytes)));
}

void BM_GateOpen(benchmark::State& state) {
  const Segment* segment = SetUp();
  for (auto _ : state) benchmark::DoNotOptimize(weir::preload::IsHeld(segment, 0));
}
BENCHMARK(BM_GateOpen);

void BM_GateHeld(benchmark::State& state) {
  Segment* segment = SetUp();
  segment->lanes[0].gate = static_cast<std::uint32_t>(GateState::kHold);
  for (auto _ : state) benchmark::DoNotOptimize(weir::preload::IsHeld(segment, 0));
}
BENCHMARK(BM_GateHeld);

void PassTo(benchmark::State& state, int fd) {
  SetUp();
  const auto bytes = static_cast<std::size_t>(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        weir::preload::Pass({fd, bytes, false, true, weir::preload::Extent::kExact, Taken, &bytes}));
  }
}

void BM_PassOther(benchmark::State& state) {
  PassTo(state, kOtherFd);
}
BENCHMARK(BM_PassOther)->Arg(64)->Arg(65536);

void BM_PassData(benchmark::State& state) {
  PassTo(state, kDataFd);
}
BENCHMARK(BM_PassData)->Arg(64)->Arg(65536);

}  // namespace
