#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coflow/units.h"

namespace weir::transport {

/// A place in a ring of such places, held by pointers, so that it can be taken out without knowing which ring it is in.
/// The ring owns nothing; what is destroyed takes itself out.
class Link {
 public:
  Link() noexcept : before_(this), after_(this) {}
  ~Link() { Unlink(); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool linked() const noexcept { return after_ != this; }
  /// Of a ring's head: the first in it, or null.
  Link* first() noexcept { return linked() ? after_ : nullptr; }
  void Unlink() noexcept {
    before_->after_ = after_;
    after_->before_ = before_;
    before_ = after_ = this;
  }
  /// Of a ring's head: `one` becomes its last. It is in no other ring.
  void Append(Link* one) noexcept {
    one->before_ = before_;
    one->after_ = this;
    before_->after_ = one;
    before_ = one;
  }
  /// Of a ring's head: it has what `from` had, in that order, and had nothing.
  void TakeAll(Link* from) noexcept {
    if (!from->linked()) return;
    after_ = from->after_;
    before_ = from->before_;
    after_->before_ = this;
    before_->after_ = this;
    from->before_ = from->after_ = from;
  }

 private:
  Link* before_;
  Link* after_;
};

/// Who is to be woken when: thousands of lanes that wait for their rate, and only those whose time has come are looked
/// at. Setting, cancelling and waking are O(1) each whatever the number of timers, and nothing allocates; a timer is
/// moved to a finer ring kLevels - 1 times at most on its way.
///
/// Rings of 64 slots, each as long as the one below it in all: 66 us in steps of 1 us, 4 ms, 0.3 s, 17 s; what is later
/// than that waits beside them. One word says for each ring which slots have timers, so an empty stretch of time costs
/// nothing (after Varghese and Lauck, 1987, scheme 7, hierarchical wheels).
///
/// Not a clock: time is passed in and only goes forward. Owns no timer, and outlives those that are set. One thread.
class TimingWheel {
 public:
  /// The step of time. A timer wakes never too early, and too late by at most this.
  static constexpr Nanoseconds kTick = 1024;

  class Timer : public Link {
   public:
    /// When it was last set to.
    Nanoseconds at() const noexcept { return at_; }

   private:
    friend class TimingWheel;
    Nanoseconds at_ = 0;
    std::uint64_t tick_ = 0;
  };

  explicit TimingWheel(Nanoseconds now) noexcept : tick_(Floor(now)), until_(tick_) {}

  /// Wakes `timer` at `at`, and at no other time that was set before; of a time that has passed, with the next tick.
  /// To cancel one, Unlink it.
  void Set(Timer* timer, Nanoseconds at) noexcept;
  /// One whose time has come by `now`, taken out; null: there is none more. To be called until then.
  Timer* Expire(Nanoseconds now) noexcept;

 private:
  static constexpr unsigned kBits = 6;
  static constexpr std::size_t kSlots = std::size_t{1} << kBits;
  static constexpr std::size_t kLevels = 4;

  static std::uint64_t Floor(Nanoseconds at) noexcept {
    return at <= 0 ? 0 : static_cast<std::uint64_t>(at) / static_cast<std::uint64_t>(kTick);
  }
  void Place(Timer* timer) noexcept;
  bool Step() noexcept;
  void Spread(Link* slot) noexcept;

  std::array<std::array<Link, kSlots>, kLevels> slots_;
  std::array<std::uint64_t, kLevels> used_{};  ///< A bit for each slot that may have timers.
  Link later_;                                 ///< What differs from tick_ above the last level.
  Link due_;                                   ///< Of tick_, not told yet.
  std::uint64_t tick_;                         ///< All before it have been told.
  std::uint64_t until_;                        ///< Expire goes up to here.
};

}  // namespace weir::transport
