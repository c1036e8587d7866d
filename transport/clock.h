#pragma once

#include "coflow/units.h"

namespace weir::transport {

/// Where the data path gets the time from, so that tests can pass their own. Monotonic nanoseconds. Any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds Now() const noexcept = 0;
};

/// CLOCK_MONOTONIC, about 25 ns a call. Lives as long as the program.
const Clock& SteadyClock();

}  // namespace weir::transport
