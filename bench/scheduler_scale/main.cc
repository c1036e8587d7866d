// What decisions cost on a large cluster: microseconds of one event, and of computing everything anew. Operations:
//
//   full        every key, the whole order, all rates, from nothing but flows and capacities
//   arrival     a new coflow, its place in the order as its size has it
//   departure   a coflow that is served leaves with all its flows
//   flow_end    a flow that is served ends
//   capacity    a link falls to half of its capacity, or comes back
//   progress    time passes until a flow ends: bytes moved, keys and order refreshed, the flow (and coflow) gone
//
// Between two measured events the state is filled up again, unmeasured. The stated case is 1,000 hosts, 10,000 coflows
// and 100,000 flows; the curves vary one of the three. The rival of every event is `full`, which does the same without
// what was known before.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/scheduler_scale/workload.h"
#include "coflow/check.h"

namespace weir::bench {
namespace {

using scheduler::CoflowSlot;
using scheduler::FlowIndex;
using scheduler::LinkIndex;
using scheduler::LiveFabric;
using scheduler::LiveRates;
using scheduler::LiveScheduler;

constexpr int kEvents = 1000;
constexpr int kWarmUp = 200;

/// Announces one event, unmeasured preparation included, and returns the measured part.
using Event = std::function<std::function<void()>(Workload&)>;

double MicrosecondsOf(const std::function<void()>& measured) {
  const auto start = std::chrono::steady_clock::now();
  measured();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double Quantile(const std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

void MeasureEvents(benchmark::State& state, const Scale& scale, const Event& event) {
  Workload workload(scale, 1);
  std::vector<double> spent;
  double visits = 0;
  const auto one = [&] {
    const double us = MicrosecondsOf(event(workload));
    visits += static_cast<double>(workload.live().work().visits);
    workload.Refill();
    workload.live().Update();
    return us;
  };
  for (int i = 0; i < kWarmUp; ++i) {
    one();
  }
  visits = 0;
  for (auto _ : state) {
    spent.push_back(one());
    state.SetIterationTime(spent.back() * 1e-6);
  }
  std::ranges::sort(spent);
  state.counters["p50_us"] = Quantile(spent, 0.5);
  state.counters["p99_us"] = Quantile(spent, 0.99);
  state.counters["max_us"] = spent.back();
  state.counters["visits"] = visits / static_cast<double>(spent.size());
}

void MeasureFull(benchmark::State& state, const Scale& scale) {
  Workload workload(scale, 1);
  for (auto _ : state) {
    workload.live().Recompute();
  }
  state.counters["flows"] = workload.live().fabric().flow_count;
}

std::function<void()> Arrival(Workload& workload) {
  LiveScheduler& live = workload.live();
  WEIR_CHECK(live.RemoveCoflow(workload.AnyCoflow()).ok());
  live.Update();
  return [&live, coflow = workload.NewCoflow()] {
    WEIR_CHECK(live.AddCoflow(coflow).has_value());
    live.Update();
  };
}

std::function<void()> Departure(Workload& workload) {
  LiveScheduler& live = workload.live();
  return [&live, slot = live.fabric().coflow_of[workload.ServedFlow()]] {
    WEIR_CHECK(live.RemoveCoflow(slot).ok());
    live.Update();
  };
}

void End(LiveScheduler& live, FlowIndex flow) {
  const CoflowSlot slot = live.fabric().coflow_of[flow];
  WEIR_CHECK(live.EndFlow(flow).ok());
  if (live.fabric().Flows(slot).empty()) {
    WEIR_CHECK(live.RemoveCoflow(slot).ok());
  }
  live.Update();
}

std::function<void()> FlowEnd(Workload& workload) {
  return [&live = workload.live(), flow = workload.ServedFlow()] { End(live, flow); };
}

std::function<void()> Progress(Workload& workload) {
  const auto [duration, flow] = workload.NextEnd();
  return [&live = workload.live(), duration = duration, flow = flow] {
    live.Advance(duration);
    End(live, flow);
  };
}

/// Alternately a link that is whole falls to half, and it comes back.
Event CapacityEvents() {
  return [link = LinkIndex{0}, whole = scheduler::WholeRate{0}](Workload& workload) mutable -> std::function<void()> {
    scheduler::WholeRate next = whole;
    if (whole == 0) {
      link = workload.AnyLink();
      whole = workload.live().fabric().capacity[link];
      next = whole / 2;
    } else {
      whole = 0;
    }
    return [&live = workload.live(), link = link, next] {
      WEIR_CHECK(live.SetCapacity(link, next).ok());
      live.Update();
    };
  };
}

std::string Name(const std::string& operation, const Scale& scale) {
  const std::string shape = scale.leaf > 0 ? "leaf-spine" : scale.shape == Shape::kEven ? "even" : "skewed";
  return operation + "/" + shape + "/" + (scale.rates == LiveRates::kMaxMin ? "max-min" : "greedy") +
         "/hosts:" + std::to_string(scale.hosts) + "/coflows:" + std::to_string(scale.coflows) +
         "/flows:" + std::to_string(scale.flows);
}

void RegisterAll(const Scale& scale) {
  benchmark::RegisterBenchmark(Name("full", scale).c_str(), [scale](benchmark::State& state) {
    MeasureFull(state, scale);
  })->Unit(benchmark::kMicrosecond);
  const std::pair<const char*, std::function<Event()>> events[] = {
      {"arrival", [] { return Arrival; }},   {"departure", [] { return Departure; }},
      {"flow_end", [] { return FlowEnd; }},  {"capacity", CapacityEvents},
      {"progress", [] { return Progress; }},
  };
  for (const auto& [name, make] : events) {
    benchmark::RegisterBenchmark(Name(name, scale).c_str(),
                                 [scale, make = make](benchmark::State& state) { MeasureEvents(state, scale, make()); })
        ->Unit(benchmark::kMicrosecond)
        ->UseManualTime()
        ->Iterations(kEvents);
  }
}

void RegisterScales() {
  for (const LiveRates rates : {LiveRates::kMaxMin, LiveRates::kGreedy}) {
    RegisterAll({.rates = rates});
    RegisterAll({.shape = Shape::kSkewed, .rates = rates});
    RegisterAll({.shape = Shape::kSkewed, .leaf = 40, .rates = rates});
  }
  for (const std::uint32_t hosts : {100u, 200u, 500u, 2000u}) {
    RegisterAll({.hosts = hosts, .shape = Shape::kSkewed});
  }
  for (const std::uint32_t coflows : {100u, 1000u, 3000u}) {
    RegisterAll({.coflows = coflows, .shape = Shape::kSkewed});
  }
  for (const std::uint32_t flows : {1000u, 10'000u, 30'000u}) {
    RegisterAll({.coflows = flows / 10, .flows = flows, .shape = Shape::kSkewed});
  }
}

}  // namespace
}  // namespace weir::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  weir::bench::RegisterScales();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
