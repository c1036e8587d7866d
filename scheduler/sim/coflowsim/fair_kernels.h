#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::scheduler::coflowsim {

/// One step of FAIR for eight receivers of a coflow that do not depend on each other, and all their senders.
struct FairStep {
  static constexpr std::size_t kLanes = 8;
  struct Row {
    std::uint32_t sender = 0;  ///< Index of the coflow's senders.
    std::uint32_t alive = 0;   ///< A bit for each lane.
  };
  std::span<const Row> rows;
  const std::uint32_t* senders = nullptr;  ///< Port of each of the coflow's senders.
  const double* up = nullptr;              ///< Bytes that a flow may move, by the sender's port.
  double* remaining = nullptr;             ///< By sender, kLanes each.
  double down[kLanes] = {};                ///< Bytes that a flow may move, by lane.
  double left[kLanes] = {};                ///< Of the receiver.
  double ending[kLanes] = {};              ///< Grows above zero where a flow ends.
};

/// Every flow moves the smaller of what its ports and its own bytes allow. Only minima and differences, in the order of
/// the rows, so that all kernels leave the same bits.
using FairKernel = void (*)(FairStep* step);

/// Those that this processor can run, the widest vectors first; never empty.
std::span<const FairKernel> FairKernels();

}  // namespace weir::scheduler::coflowsim
