// Hostile agents: frames of two connections reach a coordinator. Whatever they say, directives name lanes of their own
// agent with values in range. The frames' reserved bytes choose the connection (lowest bit) and move the clock (ms).
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "coflow/check.h"
#include "coflow/wire/frame.h"
#include "coflow/wire/weir.pb.h"
#include "scheduler/coordinator/engine.h"

namespace {

using weir::Nanoseconds;
using weir::scheduler::ConnectionId;
using weir::scheduler::CoordinatorEngine;

void CheckStep(CoordinatorEngine& engine, Nanoseconds now) {
  for (const auto& action : engine.Step(now)) {
    if (action.kind != weir::scheduler::Action::Kind::kSend) continue;
    WEIR_CHECK(action.message->ByteSizeLong() <= weir::wire::kMaxFrameBytes);
    if (!action.message->has_schedule()) continue;
    const auto& agent = *engine.agents().at(action.connection);
    for (const auto& directive : action.message->schedule().directives()) {
      WEIR_CHECK(agent.lanes.contains(weir::LaneId(directive.lane())));
      WEIR_CHECK(std::isfinite(directive.rate()) && directive.rate() >= 0 && directive.level() < 8);
    }
  }
  WEIR_CHECK(engine.state().lanes.size() <= 2 * weir::scheduler::kMaxLanesPerAgent);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const weir::Topology topology = weir::Topology::MultiSite(2, 2, 1e9, 1e7);
  CoordinatorEngine engine(topology, weir::scheduler::MakePolicy("turns").value(), 1);
  Nanoseconds now = weir::kSecond;
  for (const std::uint64_t id : {1u, 2u}) engine.OnConnect(now, ConnectionId(id), "127.0.0.1");
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (true) {
    const auto frame = weir::wire::NextFrame(rest);
    if (!frame || !frame->complete) break;
    const ConnectionId connection(1 + (static_cast<std::uint8_t>(rest[6]) & 1u));
    now += static_cast<std::uint8_t>(rest[7]) * weir::kMillisecond;
    weir::wire::AgentMessage message;
    if (message.ParseFromArray(frame->payload.data(), static_cast<int>(frame->payload.size()))) {
      engine.OnMessage(now, connection, message);
    }
    CheckStep(engine, now);
    rest.remove_prefix(frame->size);
  }
  CheckStep(engine, now + weir::kSecond);  // Beyond the lease.
  WEIR_CHECK(engine.agents().empty() && engine.state().lanes.empty() && engine.state().jobs.empty());
  return 0;
}
