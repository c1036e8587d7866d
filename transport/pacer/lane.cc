// Setting up a lane, and what happens when its directive changes. What happens for each piece: lane_datapath.cc.
#include <algorithm>
#include <cmath>

#include "transport/pacer/pacer.h"

namespace weir::transport {
namespace {

bool GateInRange(const PhaseGate& gate) {
  return gate.period == 0 || (gate.period > 0 && gate.window > 0 && gate.window <= gate.period &&
                              gate.period - gate.window <= kGateClosedMax);
}

}  // namespace

Lane::Lane(Pacer* pacer, const DirectiveSource* source) : pacer_(*pacer), source_(source) {
  piece_ = pacer_.options_.piece_max;
}

Lane::~Lane() {
  Idle();
}

void Lane::Refresh(Nanoseconds now) noexcept {
  version_ = source_->Version();
  fresh_ = true;
  Leave();  // It may come back at another level.
  directive_ = source_->Read();
  directive_.level = std::min<std::uint8_t>(directive_.level, kQueueLevels - 1);
  if (!GateInRange(directive_.phase)) {
    directive_.phase = PhaseGate{};
    counters_.gates_ignored++;
  }
  if (directive_.phase.period != 0) directive_.phase.offset %= directive_.phase.period;
  directive_.hold_until = std::min(directive_.hold_until, now + kGateClosedMax);
  RefreshRate(now);
}

void Lane::RefreshRate(Nanoseconds now) noexcept {
  const PacerOptions& options = pacer_.options_;
  capped_ = std::isfinite(directive_.rate) && directive_.rate > 0;
  piece_ = options.piece_max;
  if (!capped_) return;
  const double rate = std::clamp(directive_.rate, 1.0, static_cast<double>(TokenBucket::kRateMax));
  const double piece = rate * ToSeconds(options.piece_time);
  piece_ = static_cast<Bytes>(
      std::clamp(piece, static_cast<double>(options.piece_min), static_cast<double>(options.piece_max)));
  const double burst = rate * ToSeconds(options.burst_time);
  bucket_.Set(static_cast<std::uint64_t>(std::llround(rate)),
              std::max(2 * piece_, static_cast<Bytes>(std::min(burst, static_cast<double>(options.burst_max)))), now,
              piece_ + static_cast<Bytes>(rate * ToSeconds(options.late_time)));
}

}  // namespace weir::transport
