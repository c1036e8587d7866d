#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "coflow/units.h"
#include "transport/rdma/port.h"
#include "transport/tcp/control_link.h"

namespace weir::transport::rdma {

/// Tells when peer, link or device is gone, since the completions of a device cannot be trusted to: one that waits for
/// a peer that died may say nothing for ever. Knows it by the side connection, over which the peer's kernel answers
/// heartbeats (see tcp/control_link.h), by the events of the device, and by work that the device does not get done.
///
/// A link is dead when nothing came back, neither on the side connection nor to the device, for 15/16 of the bound, the
/// rest of which is for looks that are late: it is told within the bound. On a link that flaps, TCP repeats ever more
/// rarely what the device repeats all the time: its silence alone says little.
///
/// Silence is counted only while we look: what was away for long (an owner that was busy, a virtual machine that was
/// halted with its device) counts as an eighth of the bound at most.
///
/// Owned by a channel, on its thread.
class Watch {
 public:
  enum class State : std::uint8_t { kOpen, kClosed, kBroken };

  Watch(tcp::Socket side, Port* port, Nanoseconds dead_after)
      : side_(std::move(side), dead_after), port_(*port), dead_after_(dead_after), silence_max_(dead_after / 16 * 15) {}

  /// The device got something done that the peer's had to answer, or something came from there.
  void Alive(Nanoseconds now) noexcept { alive_at_ = Watched(now); }

  /// `now` on a clock that stood still while nobody looked for long; behind it ever more, and never back. For times
  /// that Overdue is asked about, after Check was called with the same `now`.
  Nanoseconds Watched(Nanoseconds now) const noexcept { return now - away_; }

  /// Looks at most each kEvery. kClosed: the peer is gone; kBroken: why() says what is. Both are final.
  State Check(Nanoseconds now) noexcept { return now < check_at_ ? state_ : Look(now); }
  /// Looks in any case.
  State Look(Nanoseconds now) noexcept;
  /// The next two are for when everything was taken in that the device got done until `now`, and Check was called with
  /// the same: an owner that was away for long finds signs of life that are older than its question.
  /// The device has had work since `since`, a Watched time, and did not get any of it done.
  bool Overdue(Nanoseconds since, Nanoseconds now) const noexcept { return Watched(now) - since >= silence_max_; }
  /// What is wrong when nothing came back within the bound, else null.
  const char* Dead(Nanoseconds now) const noexcept;
  const char* why() const { return why_; }
  /// The side connection's socket, as Channel has it.
  std::size_t Descriptors(std::span<int> out) const noexcept {
    if (out.empty()) return 0;
    out[0] = side_.fd();
    return 1;
  }

 private:
  static constexpr Nanoseconds kEvery = kMillisecond;
  static constexpr Nanoseconds kEventsEvery = 10 * kMillisecond;  ///< And the kernel is asked for signs of life.

  State Break(const char* why) noexcept;

  tcp::ControlLink side_;
  Port& port_;
  Nanoseconds dead_after_;
  Nanoseconds silence_max_;
  Nanoseconds check_at_ = 0;
  Nanoseconds events_at_ = 0;
  Nanoseconds looked_at_ = 0;
  Nanoseconds away_ = 0;      ///< What is not counted, of all the time.
  Nanoseconds alive_at_ = 0;  ///< When something last came back, or nothing was waited for; a Watched time.
  State state_ = State::kOpen;
  const char* why_ = "";
};

}  // namespace weir::transport::rdma
