#pragma once

#include "coflow/traces/trace.h"
#include "scheduler/sim/coflowsim/options.h"
#include "scheduler/sim/outcome.h"

namespace weir::scheduler::coflowsim {

/// What a run returns beside what every simulator here does.
struct Outcome {
  SimOutcome sim;  ///< Only coflows that were admitted and ended; arrival is the epoch at which they started.
  std::uint64_t refused = 0;  ///< Deadlines only.
  /// Deadlines only: admitted, then stopped by a refusal that no admission or end came after.
  std::uint64_t stuck = 0;
  /// Deadlines only, counted as CoflowSim does: with 100 ms or 3 % to spare, and what is stuck is met.
  std::uint64_t met = 0;
  traces::Trace ended =
      {};  ///< The problem that was solved: the coflows of `sim`, sizes and arrivals as they were run.
};

/// Runs `trace` as CoflowSim would, on ports of 128 MiB/s, its milliseconds taken as CoflowSim's. The same doubles are
/// rounded in the same order, so results are equal and not only close. Coflows that arrive at the same time are taken
/// in order of their ids. Deterministic. InvalidArgument for options out of range; Unsupported for a trace that
/// CoflowSim cannot express (ReadCoflows), or, without deadlines, of which something has not ended after its day.
/// Memory: the trace twice and 16 bytes for each flow that runs; with FAIR 40, and 20 for each change of the share of a
/// port since nothing ran. Thread: the caller's.
Result<Outcome> RunCoflowSim(const traces::Trace& trace, const Options& options);

/// The problem that such a run is given, for other schedulers: every coflow arrives at the epoch at which it would
/// start, in whole milliseconds, sizes are rounded up, and deadlines are those that were drawn if `options` keep them,
/// but with 1,024 milliseconds to a second: with CoflowSim's 1,000 a coflow alone could miss one by 2.4 %, which its
/// tolerance hides. Errors as above. Thread: the caller's.
Result<traces::Trace> ProblemOfCoflowSim(const traces::Trace& trace, const Options& options);

}  // namespace weir::scheduler::coflowsim
