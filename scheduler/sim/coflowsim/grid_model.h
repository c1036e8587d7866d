#pragma once

#include <memory>
#include <span>
#include <vector>

#include "scheduler/sim/coflowsim/flow_grid.h"
#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {

/// A coflow that runs, with what the policies note about it.
struct Active {
  Active(const Coflow& coflow, std::int64_t start, bool counts_stated) : grid(coflow, counts_stated), start_ms(start) {}

  FlowGrid grid;
  std::int64_t start_ms;
  int queue = 0;            ///< DARK
  std::int64_t quiet = 0;   ///< Steps that it can do without an end, or 1.
  std::int64_t behind = 0;  ///< Steps that it has not done yet.
};

/// Bits per second of a port.
inline constexpr double kPortBits = kPortBytes * 8;

/// What CoflowSim calls a rate, in bits per second, is 1,024 times the bytes of a step: the factor is a power of two,
/// so converting loses nothing.
inline constexpr double kBitsPerStepByte = 1'024;

/// Free capacity of every port, bits per second.
struct Capacity {
  explicit Capacity(std::uint32_t ports) : up(ports), down(ports) {}
  void Fill(double value);
  /// `*this` less `used`, port by port.
  void Subtract(const Capacity& used);
  /// What each of so many flows has of `free`.
  void SetShares(const Capacity& free, std::span<const std::uint32_t> flows_up,
                 std::span<const std::uint32_t> flows_down);

  std::vector<double> up, down;
};

/// What models have in common that set rates when a coflow starts or ends, and not in between.
class GridModel : public Model {
 public:
  /// `counts_stated`: FlowGrid::stated_left() is needed.
  explicit GridModel(bool counts_stated) : counts_stated_(counts_stated) {}
  void Start(const Coflow& coflow, std::int64_t now) override;
  std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) override;

 protected:
  /// To be called when all moves are set.
  void OnAllocation();
  /// `active` has started, and lives until OnEnd has returned.
  virtual void OnStart(Active* active) = 0;
  virtual void OnEnd(Active* active) = 0;

 private:
  std::int64_t NextSteps(std::int64_t steps) const;
  static void Look(Active* active);

  bool counts_stated_;
  std::vector<std::unique_ptr<Active>> actives_;  ///< In order of start.
};

}  // namespace weir::scheduler::coflowsim
