#include "transport/pacer/timing_wheel.h"

#include <algorithm>
#include <bit>

namespace weir::transport {

void TimingWheel::Set(Timer* timer, Nanoseconds at) noexcept {
  timer->Unlink();
  timer->at_ = at;
  // Rounded up, so that it is never early; and after what Expire is going through, which so comes to an end.
  timer->tick_ = std::max(Floor(at + kTick - 1), until_ + 1);
  Place(timer);
}

/// A timer's level is that of the highest digit (base 64) in which its tick differs from the present one: so all of a
/// level's timers are in the present turn of its ring, and later than all of the levels below.
void TimingWheel::Place(Timer* timer) noexcept {
  const auto differs = static_cast<unsigned>(std::bit_width(timer->tick_ ^ tick_));
  const std::size_t level = differs == 0 ? 0 : (differs - 1) / kBits;
  if (level >= kLevels) return later_.Append(timer);
  const std::size_t slot = timer->tick_ >> (kBits * level) & (kSlots - 1);
  slots_[level][slot].Append(timer);
  used_[level] |= std::uint64_t{1} << slot;
}

TimingWheel::Timer* TimingWheel::Expire(Nanoseconds now) noexcept {
  until_ = std::max(until_, Floor(now));
  while (true) {
    if (Link* first = due_.first(); first != nullptr) {
      first->Unlink();
      return static_cast<Timer*>(first);
    }
    if (!Step()) return nullptr;
  }
}

/// To the next slot in use, whose timers are due, or go to lower levels. False: there is none up to until_.
bool TimingWheel::Step() noexcept {
  for (std::size_t level = 0; level < kLevels; ++level) {
    const unsigned shift = kBits * static_cast<unsigned>(level);
    const std::uint64_t digit = tick_ >> shift & (kSlots - 1);
    const std::uint64_t ahead = digit + 1 == kSlots ? 0 : used_[level] & ~std::uint64_t{0} << (digit + 1);
    if (ahead == 0) continue;
    const auto slot = static_cast<std::size_t>(std::countr_zero(ahead));
    const std::uint64_t tick = ((tick_ >> shift & ~std::uint64_t{kSlots - 1}) | slot) << shift;
    if (tick > until_) break;
    tick_ = tick;
    used_[level] &= ~(std::uint64_t{1} << slot);
    if (level == 0) {
      due_.TakeAll(&slots_[level][slot]);
    } else {
      Spread(&slots_[level][slot]);
    }
    return true;
  }
  constexpr unsigned kTop = kBits * kLevels;
  if (later_.linked() && tick_ >> kTop != until_ >> kTop) {
    tick_ = ((tick_ >> kTop) + 1) << kTop;
    Spread(&later_);
    return true;
  }
  tick_ = until_;
  return false;
}

void TimingWheel::Spread(Link* slot) noexcept {
  Link timers;
  timers.TakeAll(slot);
  while (Link* first = timers.first()) {
    first->Unlink();
    Timer* timer = static_cast<Timer*>(first);
    if (timer->tick_ == tick_) {
      due_.Append(timer);
    } else {
      Place(timer);
    }
  }
}

}  // namespace weir::transport
