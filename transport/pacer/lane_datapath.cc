// What a lane does for each piece: no allocation, no lock, no system call.
#include <algorithm>

#include "transport/pacer/pacer.h"

namespace weir::transport {
Bytes Lane::Admit(Bytes wanted, Nanoseconds now) noexcept {
  if (Changed()) Refresh(now);
  if (ClosedUntil(now) > now) {
    Idle();
    refusal_ = Refusal::kGate;
    counters_.waits_for_gate++;
    return 0;
  }
  const Bytes least = std::min(wanted, piece_);
  if (capped_ && !bucket_.Has(least, now)) {
    Leave();  // The gap is for others.
    bucket_.Want();
    refusal_ = Refusal::kRate;
    refused_ = least;
    counters_.waits_for_rate++;
    return 0;
  }
  Contend(now);
  Bytes most = std::min(wanted, pacer_.options_.piece_max);
  if (HeldByLevel(now)) {
    if (!TakeFloor(now)) {
      bucket_.Rest();
      refusal_ = Refusal::kLevel;
      counters_.waits_for_level++;
      return 0;
    }
    most = std::min({most, pacer_.options_.floor_piece, piece_});
  } else {
    StopWaiting();
  }
  refusal_ = Refusal::kNone;
  const Bytes granted = capped_ ? bucket_.Take(most, std::min(most, least), now) : most;
  bucket_.Want();
  counters_.bytes += granted;
  burst_bytes_ += granted;
  pacer_.passed_.fetch_add(granted, std::memory_order_relaxed);
  return granted;
}

void Lane::Return(Bytes unsent) noexcept {
  if (unsent == 0) return;
  counters_.bytes -= unsent;
  burst_bytes_ -= std::min(unsent, burst_bytes_);
  pacer_.passed_.fetch_sub(unsent, std::memory_order_relaxed);
  if (capped_) bucket_.Return(unsent);
}

void Lane::Contend(Nanoseconds now) noexcept {
  Pacer::Level& level = pacer_.levels_[directive_.level];
  if (!contending_) {
    contending_ = true;
    level.contending.fetch_add(1, std::memory_order_relaxed);
  }
  level.asked.store(now, std::memory_order_relaxed);
}

void Lane::Waits(Nanoseconds now) noexcept {
  if (contending_) Contend(now);
}

void Lane::Drained(Nanoseconds now) noexcept {
  if (contending_) {
    const PacerOptions& options = pacer_.options_;
    const double linger = std::min(static_cast<double>(burst_bytes_) * options.linger_ns_per_byte,
                                   static_cast<double>(options.linger_max));
    std::atomic<Nanoseconds>& until = pacer_.levels_[directive_.level].lingers_until;
    until.store(std::max(until.load(std::memory_order_relaxed), now + static_cast<Nanoseconds>(linger)),
                std::memory_order_relaxed);
  }
  Idle();
  burst_bytes_ = 0;
}

void Lane::Idle() noexcept {
  bucket_.Rest();
  Leave();
}

void Lane::Leave() noexcept {
  StopWaiting();
  if (!contending_) return;
  contending_ = false;
  pacer_.levels_[directive_.level].contending.fetch_sub(1, std::memory_order_relaxed);
}

bool Lane::HeldByLevel(Nanoseconds now) const noexcept {
  for (std::uint8_t above = 0; above < directive_.level; ++above) {
    const Pacer::Level& level = pacer_.levels_[above];
    if (now < level.lingers_until.load(std::memory_order_relaxed)) return true;
    if (level.contending.load(std::memory_order_relaxed) > 0 &&
        now - level.asked.load(std::memory_order_relaxed) <= pacer_.options_.stale_after) {
      return true;
    }
  }
  return false;
}

bool Lane::TakeFloor(Nanoseconds now) noexcept {
  const PacerOptions& options = pacer_.options_;
  const Bytes passed = pacer_.passed_.load(std::memory_order_relaxed);
  if (!held_) {
    held_ = true;
    waiting_since_ = now;
    passed_then_ = passed;
    pacer_.held_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const Nanoseconds waited = now - waiting_since_;
  const Bytes price = options.floor_piece * options.floor_divisor * pacer_.held_.load(std::memory_order_relaxed);
  if (waited < options.aging_min || (waited < options.aging_max && passed - passed_then_ < price)) return false;
  waiting_since_ = now;
  passed_then_ = passed;
  counters_.floor_pieces++;
  return true;
}

void Lane::StopWaiting() noexcept {
  if (!held_) return;
  held_ = false;
  pacer_.held_.fetch_sub(1, std::memory_order_relaxed);
}

Nanoseconds Lane::ClosedUntil(Nanoseconds now) const noexcept {
  const PhaseGate& gate = directive_.phase;
  if (gate.period == 0) return directive_.hold_until;
  Nanoseconds into = (now - gate.offset) % gate.period;
  if (into < 0) into += gate.period;
  const Nanoseconds opens = into < gate.window ? now : now + (gate.period - into);
  return std::max(opens, directive_.hold_until);
}

Nanoseconds Lane::AskAgainAt(Nanoseconds now) const noexcept {
  switch (refusal_) {
    case Refusal::kGate:
      return ClosedUntil(now);
    case Refusal::kRate:
      return bucket_.ReadyAt(refused_);
    case Refusal::kLevel:
      return now + pacer_.options_.linger_max;
    case Refusal::kNone:
      break;
  }
  return now;
}

}  // namespace weir::transport
