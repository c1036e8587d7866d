#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "coflow/status.h"
#include "scheduler/rate/flow_group.h"

namespace weir::scheduler {

/// A coflow, or its pilots, at its place in the order.
struct RankedGroup {
  FlowGroup* group = nullptr;
  double weight = 1;        ///< Of each of its flows, against others of the same level.
  std::uint32_t level = 0;  ///< Never falls along the order. Groups of one level share; lower levels go first.
  bool sizes_known = true;  ///< The allocator may look at bytes left.
};

/// Who shares with whom: how the simulator turns an order into levels.
enum class Sharing {
  kOrder,     ///< Every coflow has a level of its own.
  kQueues,    ///< One level for each queue of the order.
  kWeighted,  ///< One level for all, weighted by queue.
  kAll,       ///< One level for all.
};

/// Gives every flow a rate. Pure: a function of groups, order and capacities; keeps scratch memory, so one object
/// serves one thread. What is given never exceeds a link's capacity.
class RateAllocator {
 public:
  virtual ~RateAllocator() = default;
  /// Sets the rates of all groups (settled to the present), most urgent first. `capacity` by link, 0 allowed. Returns
  /// how many flows have another rate than before.
  virtual std::size_t Allocate(std::span<const RankedGroup> order, std::span<const double> capacity) = 0;
  virtual Sharing sharing() const { return Sharing::kOrder; }
  /// Rates depend on the bytes that flows have left.
  virtual bool needs_sizes() const { return false; }
};

struct RateOptions {
  std::string name = "matching";
  bool backfill = true;  ///< MADD: what is left over goes to the flows in order.
};

/// The name that stands for the matching simulator, which has no allocator.
inline constexpr std::string_view kMatching = "matching";

/// One line of `weir-sim policies`.
struct RateInfo {
  std::string_view name;
  std::string_view what;
  std::string_view paper;
};

std::span<const RateInfo> Rates();
/// NotFound with the list of names when there is no such allocator; null for kMatching.
Result<std::unique_ptr<RateAllocator>> MakeRate(const RateOptions& options);

// Makers of each family, for the registry. Null: not of this family.
std::unique_ptr<RateAllocator> MakeMaxMinRate(const RateOptions& options);
std::unique_ptr<RateAllocator> MakeMaddRate(const RateOptions& options);
std::unique_ptr<RateAllocator> MakeGreedyRate(const RateOptions& options);
std::unique_ptr<RateAllocator> MakeCorrelatedRate(const RateOptions& options);

}  // namespace weir::scheduler
