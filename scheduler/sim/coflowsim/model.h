#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/options.h"

namespace weir::scheduler::coflowsim {

/// How one policy of CoflowSim shares the ports. The loop in simulator.h calls it: coflows start, then AfterAdmission;
/// steps; AfterDeparture when some have ended. Times in CoflowSim's milliseconds. Not thread safe.
class Model {
 public:
  virtual ~Model() = default;

  /// Whether a coflow may start now; only deadlines refuse one.
  virtual bool Admits(const Coflow& /*coflow*/) { return true; }
  /// `coflow` must outlive the model.
  virtual void Start(const Coflow& coflow, std::int64_t now) = 0;
  /// Something has started at `now`.
  virtual void AfterAdmission(std::int64_t now) = 0;
  /// Something has ended in the step that began at `step_begin`.
  virtual void AfterDeparture(std::int64_t step_begin) = 0;
  /// Goes on for `steps`, or until the step in which coflows end, which are added to `ended` (by Coflow::index).
  /// Returns the steps done. Where nothing can move, that is all of them at no cost.
  virtual std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) = 0;

  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t flows_set() const { return flows_set_; }

 protected:
  std::uint64_t allocations_ = 0;  ///< Times at which rates were set.
  std::uint64_t flows_set_ = 0;    ///< Flows that got a rate then, the same one or another.
};

/// `ports` of the fabric.
std::unique_ptr<Model> MakeMaddModel(const Options& options, std::uint32_t ports);  ///< FIFO, SCF, NCF, LCF, SEBF
std::unique_ptr<Model> MakeDarkModel(std::uint32_t ports);
/// `doubt`: FairCoflow.
std::unique_ptr<Model> MakeFairModel(std::uint32_t ports, double doubt = 1);
std::unique_ptr<Model> MakePfpModel(std::uint32_t ports);

}  // namespace weir::scheduler::coflowsim
