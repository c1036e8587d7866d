// A hostile coordinator: its frames reach an agent whose lanes want to send. Whatever it says, no hold may outlive its
// bound and no cap may starve a process. The frames' reserved bytes move the clock: low byte ms, high byte 10 ms.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "agents/client/segment.h"
#include "agents/host/engine.h"
#include "coflow/check.h"
#include "coflow/wire/frame.h"

namespace {

using weir::Nanoseconds;
using weir::agents::AgentEngine;
using weir::agents::LaneRef;

void CheckActions(AgentEngine& engine, Nanoseconds now) {
  const auto actions = engine.Take(now);
  for (const auto& write : actions.writes) {
    const auto& control = write.control;
    WEIR_CHECK(!control.hold || control.hold_until <= now + weir::client::kHoldMax_ns);
    WEIR_CHECK(control.pacing_rate == 0 || static_cast<double>(control.pacing_rate) >= AgentEngine::kRateFloor);
  }
  for (const auto& message : actions.messages) WEIR_CHECK(message.size() <= weir::wire::kMaxFrameBytes);
}

std::unique_ptr<AgentEngine> AgentWithTwoLanes(Nanoseconds now) {
  auto engine = std::make_unique<AgentEngine>(
      weir::agents::EngineOptions{.host = "h0", .instance = 1, .addresses = {}, .marks = true});
  weir::agents::ProcessInfo info;
  info.job.name = "job";
  const weir::ProcessId process = engine->OnProcessAttached(now, info).value();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const LaneRef lane{process, i};
    engine->OnLaneAppeared(now, lane, "10.0.0.2");
    weir::agents::LaneSample sample;
    sample.messages = 1;
    sample.rest = 1'000'000;
    sample.sockets = 1;
    sample.start_taken = true;
    engine->OnSample(now, lane, sample);
  }
  return engine;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Nanoseconds now = weir::kSecond;
  const auto engine = AgentWithTwoLanes(now);
  engine->OnConnected(now);
  CheckActions(*engine, now);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (true) {
    const auto frame = weir::wire::NextFrame(rest);
    if (!frame || !frame->complete) break;
    now += static_cast<std::uint8_t>(rest[6]) * weir::kMillisecond;
    now += static_cast<std::uint8_t>(rest[7]) * 10 * weir::kMillisecond;
    engine->OnTime(now);
    CheckActions(*engine, now);
    engine->OnCoordinatorMessage(now, frame->payload);
    CheckActions(*engine, now);
    rest.remove_prefix(frame->size);
  }
  engine->OnDisconnected(now);
  now += weir::kSecond * 61;  // Longer than any time to live: everything must be open now.
  engine->OnTime(now);
  CheckActions(*engine, now);
  WEIR_CHECK(engine->in_fallback());
  for (const auto& [id, process] : engine->processes()) {
    for (const auto& lane : process.lanes) {
      const auto& written = engine->FindLane(lane)->written;
      WEIR_CHECK(!written.hold && written.pacing_rate == 0);
    }
  }
  return 0;
}
