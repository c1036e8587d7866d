#pragma once

#include <memory>
#include <string_view>

#include "coflow/status.h"
#include "scheduler/turns/state.h"

namespace weir::scheduler {

/// Decides for every lane whether it may send and how fast. The result depends on the state and `now` only; what a
/// policy must remember from one decision to the next is in the state too (LinkState::holder, JobState::turn), so equal
/// states give equal decisions whoever asks. Implementations own scratch space. Thread: one at a time.
class Policy {
 public:
  Policy() = default;
  Policy(const Policy&) = delete;
  Policy& operator=(const Policy&) = delete;
  virtual ~Policy() = default;
  virtual std::string_view name() const = 0;
  /// `now` never decreases between calls on one state. Reuses the space of `decision`.
  virtual void Decide(FabricState& state, Nanoseconds now, Decision& decision) = 0;
};

/// "turns", "fifo", "max-min" or "none"; docs/policies.md says what each does.
Result<std::unique_ptr<Policy>> MakePolicy(std::string_view name);

}  // namespace weir::scheduler
