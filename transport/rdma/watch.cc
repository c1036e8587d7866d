#include "transport/rdma/watch.h"

#include <cerrno>
#include <cstring>

namespace weir::transport::rdma {

Watch::State Watch::Look(Nanoseconds now) noexcept {
  check_at_ = now + kEvery;
  if (state_ != State::kOpen) return state_;
  if (now >= events_at_) {
    events_at_ = now + kEventsEvery;
    port_.TakeEvents();
  }
  if (!port_.alive()) return Break("the device is gone: its driver reported a fatal error");
  const auto side = side_.Poll(now, [](const tcp::Control&) { return false; });
  if (side == tcp::ControlLink::State::kOpen) return state_;
  if (side == tcp::ControlLink::State::kClosed) return state_ = State::kClosed;
  const int problem = side_.problem();
  return Break(problem == 0           ? "what came on the side connection is no frame"
               : problem == ETIMEDOUT ? "the link is dead: nothing came back within the bound"
                                      : strerrordesc_np(problem));
}

Watch::State Watch::Break(const char* why) noexcept {
  why_ = why;
  return state_ = State::kBroken;
}

}  // namespace weir::transport::rdma
