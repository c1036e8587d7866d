#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::scheduler {

/// What a coflow moves over a link while nothing changes.
struct LinkUse {
  std::size_t coflow = 0;  ///< Its place in the trace.
  std::uint32_t link = 0;
  double rate = 0;  ///< Bytes per tick, above 0.
};

/// Watches a simulation: who starts, who ends, and who uses which link in between. The outcome is the same with and
/// without it. Without one, simulators pay one comparison an event; with one, they list all uses of every interval.
///
/// Called by the simulator's thread, in order of time. Must not call back.
class SimObserver {
 public:
  virtual ~SimObserver() = default;

  /// Whether OnInterval() and OnCapacity() are to be called at all.
  virtual bool sees_links() const { return true; }
  virtual void OnStart(std::size_t coflow, std::int64_t now) = 0;
  virtual void OnEnd(std::size_t coflow, std::int64_t now) = 0;
  /// From `begin` to `end` > `begin`, in ticks, the links were used like this. A coflow may have two entries for one
  /// link, that of its pilots and that of its other flows. `uses` holds until the call returns.
  virtual void OnInterval(std::int64_t /*begin*/, std::int64_t /*end*/, std::span<const LinkUse> /*uses*/) {}
  /// From now on the link has this capacity, bytes per tick. Not called for what it has at the start.
  virtual void OnCapacity(std::uint32_t /*link*/, double /*capacity*/) {}
};

}  // namespace weir::scheduler
