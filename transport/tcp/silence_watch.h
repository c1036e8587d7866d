#pragma once

#include <algorithm>

#include "coflow/units.h"

namespace weir::transport::tcp {

/// Decides that a link is dead, early enough for it to be told within the bound `dead_after`, wherever in a heartbeat
/// the link went:
///
///   cut ... next heartbeat leaves ......... nothing came back since ........ told
///       <= 1/16 of the bound                13/16 of it                     + 1/128, when the kernel is asked
///
/// which leaves an eighth of the bound for a thread that is late and for the ticks in which the kernel counts. An
/// interruption that is shorter than 13/16 of the bound, with the time that the kernel takes until it sends again,
/// passes.
///
/// The kernel's own bound (TCP_USER_TIMEOUT) is not used: it counts from the first time that something is sent again,
/// which is a fifth of a second after it was sent for the first time, and longer on a long path.
///
/// Pure arithmetic on times that it is given; owned by a ControlLink, on its thread. The bound is kBoundMin at least: a
/// kernel may answer 40 ms late, or a round trip if that is longer.
class SilenceWatch {
 public:
  static constexpr Nanoseconds kBoundMin = 200 * kMillisecond;

  explicit SilenceWatch(Nanoseconds dead_after) : bound_(dead_after) {}

  /// How often something must be sent that wants an answer.
  Nanoseconds heartbeat_every() const { return bound_ / 16; }
  /// The kernel is to be asked, before anything else is sent.
  bool Due(Nanoseconds now) const { return now >= ask_at_; }
  /// It said at `now` for how long nothing had come while something of ours waited for an answer; 0: nothing waits.
  void OnAsked(Nanoseconds now, Nanoseconds silence) noexcept {
    ask_at_ = now + std::max(bound_ / 128, kMillisecond);
    OnSign(now - silence);
  }
  /// Something came from the other end at `at`.
  void OnSign(Nanoseconds at) noexcept { alive_at_ = std::max(alive_at_, at); }
  /// To be asked after OnAsked.
  bool Dead(Nanoseconds now) const { return now - alive_at_ >= bound_ / 16 * 13; }

 private:
  Nanoseconds bound_;
  Nanoseconds ask_at_ = 0;
  Nanoseconds alive_at_ = 0;  ///< When something last came back, or nothing was waited for.
};

}  // namespace weir::transport::tcp
