#pragma once

#include "transport/clock.h"

namespace weir::transport {

/// Time that stands still until it is moved on. For tests and simulators. One thread.
class ManualClock final : public Clock {
 public:
  Nanoseconds Now() const noexcept override { return now_; }
  void Advance(Nanoseconds by) noexcept { now_ += by; }

 private:
  Nanoseconds now_ = 1;  // 0 means "never" in places.
};

}  // namespace weir::transport
