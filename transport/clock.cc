#include "transport/clock.h"

#include <chrono>

namespace weir::transport {
namespace {

class Steady final : public Clock {
 public:
  Nanoseconds Now() const noexcept override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

const Clock& SteadyClock() {
  static const Steady clock;
  return clock;
}

}  // namespace weir::transport
