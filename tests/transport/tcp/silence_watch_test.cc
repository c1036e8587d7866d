#include "transport/tcp/silence_watch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>

namespace weir::transport::tcp {
namespace {

constexpr Nanoseconds kForever = INT64_MAX / 2;

/// A control connection in virtual time: heartbeats of ours that the peer's kernel answers after `round_trip` and a
/// delay, a link that is cut now and then, and a kernel that counts in ticks of 4 ms. The owner looks each `every`.
class Link {
 public:
  explicit Link(Nanoseconds bound, Nanoseconds answers_after, Nanoseconds begin)
      : watch_(bound), answers_after_(answers_after), now_(begin), came_at_(begin) {}

  /// Time at which the watch says that the link is dead; -1: not until `until`.
  Nanoseconds Run(Nanoseconds until, Nanoseconds every) {
    for (; now_ < until; now_ += every) {
      Deliver();
      if (watch_.Due(now_)) watch_.OnAsked(now_, unanswered_.empty() ? 0 : Ticks(now_) - Ticks(came_at_));
      if (now_ >= heartbeat_at_) {
        heartbeat_at_ = now_ + watch_.heartbeat_every();
        unanswered_.push_back(now_);
      }
      if (watch_.Dead(now_)) return now_;
    }
    return -1;
  }

  void Cut(Nanoseconds from, Nanoseconds until) {
    cut_from_ = from;
    cut_until_ = until;
  }

 private:
  static Nanoseconds Ticks(Nanoseconds at) { return at / (4 * kMillisecond) * (4 * kMillisecond); }
  bool Gone(Nanoseconds at) const { return at >= cut_from_ && at < cut_until_; }

  /// What was lost is sent again when the link is back, at the worst an eighth of a second later.
  void Deliver() {
    while (!unanswered_.empty()) {
      Nanoseconds answer = unanswered_.front() + answers_after_;
      if (Gone(answer) || Gone(unanswered_.front())) answer = cut_until_ + kSecond / 8;
      if (answer > now_) return;
      came_at_ = std::max(came_at_, answer);
      unanswered_.pop_front();
    }
  }

  SilenceWatch watch_;
  Nanoseconds answers_after_;
  Nanoseconds now_;
  Nanoseconds came_at_;
  Nanoseconds heartbeat_at_ = 0;
  Nanoseconds cut_from_ = kForever;
  Nanoseconds cut_until_ = kForever;
  std::deque<Nanoseconds> unanswered_;
};

constexpr Nanoseconds kBounds[] = {SilenceWatch::kBoundMin, 500 * kMillisecond, 2 * kSecond, 10 * kSecond,
                                   60 * kSecond};

TEST(SilenceWatch, ACutIsToldWithinTheBoundWheneverItComes) {
  std::mt19937_64 random(4);
  for (const Nanoseconds bound : kBounds) {
    for (int i = 0; i < 200; ++i) {
      const Nanoseconds begin = static_cast<Nanoseconds>(random() % 1'000'000'000'000);
      const Nanoseconds cut = begin + bound + static_cast<Nanoseconds>(random() % static_cast<std::uint64_t>(bound));
      const Nanoseconds answers_after =
          static_cast<Nanoseconds>(random() % 40'000'000);  // A late answer of the kernel's.
      Link link(bound, answers_after, begin);
      link.Cut(cut, kForever);
      const Nanoseconds told = link.Run(cut + 2 * bound, kMillisecond);
      ASSERT_GT(told, cut) << "bound " << bound << ", cut " << cut - begin << " after " << begin;
      EXPECT_LE(told - cut, bound) << "cut " << cut - begin << " after " << begin;
      EXPECT_GE(told - cut, bound / 4 * 3 - answers_after) << "cut " << cut - begin << " after " << begin;
    }
  }
}

TEST(SilenceWatch, ALinkThatAnswersLateIsNotDead) {
  for (const Nanoseconds bound : kBounds) {
    EXPECT_EQ(Link(bound, 40 * kMillisecond, kSecond).Run(kSecond + 30 * bound, kMillisecond), -1) << bound;
    // The owner looks only now and then, less often than heartbeats are due.
    EXPECT_EQ(Link(bound, 40 * kMillisecond, kSecond).Run(kSecond + 30 * bound, bound / 3), -1) << bound;
  }
}

TEST(SilenceWatch, AnInterruptionOfHalfTheBoundPasses) {
  for (const Nanoseconds bound : {kSecond, 2 * kSecond, 10 * kSecond}) {
    for (Nanoseconds cut = bound; cut < bound + bound / 4; cut += bound / 61) {
      Link link(bound, kMillisecond, kSecond);
      link.Cut(kSecond + cut, kSecond + cut + bound / 2);
      EXPECT_EQ(link.Run(kSecond + 6 * bound, kMillisecond), -1) << bound << " at " << cut;
    }
  }
}

TEST(SilenceWatch, AnOwnerThatWasAwayFindsTheLinkAlive) {
  SilenceWatch watch(kSecond);
  watch.OnAsked(kSecond, 0);
  EXPECT_FALSE(watch.Dead(kSecond));
  const Nanoseconds later = 100 * kSecond;
  ASSERT_TRUE(watch.Due(later));
  watch.OnAsked(later, 0);  // Its last heartbeat was answered long ago.
  EXPECT_FALSE(watch.Dead(later));
  // It sends another, and what the kernel says is now how old that answer is.
  watch.OnAsked(later + 10 * kMillisecond, 99 * kSecond);
  EXPECT_FALSE(watch.Dead(later + 10 * kMillisecond));
}

TEST(SilenceWatch, WhatCameOnAnotherConnectionCounts) {
  SilenceWatch watch(kSecond);
  watch.OnAsked(kSecond, 0);
  watch.OnAsked(2 * kSecond, kSecond);
  EXPECT_TRUE(watch.Dead(2 * kSecond));
  watch.OnSign(2 * kSecond - 700 * kMillisecond);
  EXPECT_FALSE(watch.Dead(2 * kSecond));
  EXPECT_TRUE(watch.Dead(2 * kSecond + 200 * kMillisecond));
}

}  // namespace
}  // namespace weir::transport::tcp
