#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "transport/clock.h"
#include "transport/directive_source.h"

namespace weir::transport {

/// A directive source that follows a script: at each time of it, the directive becomes the one beside it. For tests and
/// for measuring; an agent's directives come from shared memory. Before the first entry: the default directive.
/// Threads: as the lane that reads it.
class ScriptedDirectives final : public DirectiveSource {
 public:
  struct Step {
    Nanoseconds at;
    LaneDirective directive;
  };

  /// `steps` in the order of time. The clock outlives this.
  ScriptedDirectives(const Clock* clock, std::vector<Step> steps) : clock_(*clock), steps_(std::move(steps)) {}

  /// How many steps have begun.
  std::uint64_t Version() const noexcept override {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), clock_.Now(),
                                        [](Nanoseconds now, const Step& step) { return now < step.at; });
    return static_cast<std::uint64_t>(after - steps_.begin());
  }

  LaneDirective Read() const noexcept override {
    const std::uint64_t begun = Version();
    return begun == 0 ? LaneDirective{} : steps_[begun - 1].directive;
  }

 private:
  const Clock& clock_;
  std::vector<Step> steps_;
};

}  // namespace weir::transport
