#include "transport/rdma/watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::transport::rdma {
namespace {

constexpr const char* kDead = "the link is dead: nothing came back within the bound";

}  // namespace

Watch::State Watch::Look(Nanoseconds now) noexcept {
  check_at_ = now + kEvery;
  if (state_ != State::kOpen) return state_;
  if (now >= events_at_) {
    events_at_ = now + kEventsEvery;
    port_.TakeEvents();
    alive_at_ = std::max(alive_at_, now - side_.Silence());
  }
  if (!port_.alive()) return Break("the device is gone: its driver reported a fatal error");
  const auto side = side_.Poll(now, [](const tcp::Control&) { return false; });
  if (side == tcp::ControlLink::State::kOpen) return state_;
  if (side == tcp::ControlLink::State::kClosed) return state_ = State::kClosed;
  const int problem = side_.problem();
  return Break(problem == 0           ? "what came on the side connection is no frame"
               : problem == ETIMEDOUT ? kDead
                                      : strerrordesc_np(problem));
}

const char* Watch::Dead(Nanoseconds now) const noexcept {
  return now - alive_at_ > dead_after_ ? kDead : nullptr;
}

Watch::State Watch::Break(const char* why) noexcept {
  why_ = why;
  return state_ = State::kBroken;
}

}  // namespace weir::transport::rdma
