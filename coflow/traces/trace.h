#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"

namespace weir::traces {

/// Limits that hold for every reader. A file that needs more is refused with the limit's name.
inline constexpr std::uint32_t kPortsMax = 65'536;      ///< Ports of a trace's fabric.
inline constexpr Bytes kFlowBytesMax = Bytes{1} << 50;  ///< One flow: 1 PiB. Sums of 8,192 such flows still fit.
inline constexpr Nanoseconds kTimeMax = kSecond * 315'360'000;  ///< Ten years.
inline constexpr std::size_t kFlowsPerCoflowMax = 16'777'216;
inline constexpr std::size_t kLineBytesMax = std::size_t{1} << 30;

struct TraceFlow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  Bytes bytes = 0;

  friend bool operator==(const TraceFlow&, const TraceFlow&) = default;
};

/// One coflow as a trace states it. Flows keep the order of the file; a pair may occur more than once.
struct TraceCoflow {
  std::uint64_t id = 0;
  std::uint64_t job = 0;  ///< 0: it is a job of its own.
  Nanoseconds arrival = 0;
  Nanoseconds deadline = 0;  ///< Relative to the arrival; 0: none.
  double weight = 1.0;
  bool size_known = true;                 ///< False: a policy must not look at the bytes.
  std::uint32_t mappers = 0;              ///< Distinct sources.
  std::uint32_t reducers = 0;             ///< Distinct destinations.
  std::vector<std::uint64_t> after = {};  ///< Ids of coflows that must end before this one starts.
  std::vector<TraceFlow> flows = {};

  friend bool operator==(const TraceCoflow&, const TraceCoflow&) = default;
};

/// A whole trace in memory, in order of arrival. A plain value.
struct Trace {
  std::string name;
  std::uint32_t ports = 0;
  std::vector<TraceCoflow> coflows;

  std::size_t FlowCount() const;
  Bytes TotalBytes() const;
};

/// Sorts `ports` and drops repeats. Takes time and memory in proportion to them, and to the largest one where that is
/// not much larger than there are of them.
void SortDistinct(std::vector<std::uint32_t>* ports);

/// Counts the distinct sources and destinations of `coflow` and stores them in it.
void CountEnds(TraceCoflow* coflow);

/// What holds for every trace whatever its format: unique ids, known and acyclic dependencies. Sorts by arrival, then
/// id. `origin` names the file in messages; `lines`, if not empty, are the lines of the coflows as they stand now.
Status Finish(Trace* trace, const std::string& origin, const std::vector<std::size_t>& lines = {});

}  // namespace weir::traces
