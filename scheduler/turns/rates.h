#pragma once

#include <vector>

#include "scheduler/share/strict_classes.h"
#include "scheduler/turns/policy.h"

namespace weir::scheduler {

/// Rates only: classes are strict but for floors, and inside a class the active lanes share the links by weighted
/// max-min, a job's weight split evenly over its active lanes. Idle lanes may start at the rate of their path. Nobody
/// is held. Cost: that of StrictClasses over the active lanes.
class MaxMinPolicy final : public Policy {
 public:
  std::string_view name() const override { return "max-min"; }
  void Decide(FabricState& state, Nanoseconds now, Decision& decision) override;

 private:
  StrictClasses shares_;
  std::vector<ShareFlow> flows_;
  std::vector<std::uint8_t> classes_;
  std::vector<std::uint32_t> flow_lanes_;
  std::vector<BytesPerSecond> room_, rates_;
  std::vector<double> active_lanes_;  ///< Per job.
};

/// Decides nothing: no hold, no cap. To measure what the machinery itself costs.
class NonePolicy final : public Policy {
 public:
  std::string_view name() const override { return "none"; }
  void Decide(FabricState& state, Nanoseconds now, Decision& decision) override;
};

}  // namespace weir::scheduler
