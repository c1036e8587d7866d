#include "transport/rdma/watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weir::transport::rdma {
namespace {

/// Of the bound: what counts at most of the time between two looks.
constexpr Nanoseconds kAwayDivisor = 8;
constexpr const char* kDead = "the link is dead: nothing came back within the bound";

}  // namespace

Watch::State Watch::Look(Nanoseconds now) noexcept {
  check_at_ = now + kEvery;
  const Nanoseconds gap = now - std::exchange(looked_at_, now);
  if (gap != now) away_ += std::max<Nanoseconds>(gap - dead_after_ / kAwayDivisor, 0);
  if (state_ != State::kOpen) return state_;
  if (now >= events_at_) {
    events_at_ = now + kEventsEvery;
    port_.TakeEvents();
    alive_at_ = std::max(alive_at_, Watched(now) - side_.Silence());
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
  return Overdue(alive_at_, now) ? kDead : nullptr;
}

Watch::State Watch::Break(const char* why) noexcept {
  why_ = why;
  return state_ = State::kBroken;
}

}  // namespace weir::transport::rdma
