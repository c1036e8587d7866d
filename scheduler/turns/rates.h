#pragma once

#include <vector>

#include "scheduler/turns/policy.h"

namespace weir::scheduler {

/// Rates only: the active lanes share the links by weighted max-min, a job's weight split evenly over its active lanes.
/// Idle lanes may start at the rate of their path. Nobody is held. Cost: that of MaxMin over the active lanes.
class MaxMinPolicy final : public Policy {
 public:
  std::string_view name() const override { return "max-min"; }
  void Decide(FabricState& state, Nanoseconds now, Decision& decision) override;

 private:
  MaxMin max_min_;
  std::vector<ShareFlow> flows_;
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
