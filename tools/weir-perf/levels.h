#pragma once

#include <vector>

#include "tools/weir-perf/coflows.h"
#include "tools/weir-perf/sheet.h"

/// What weir-perf shows with several coflows at once.
namespace weir::tools {

/// One start and end of the coflow of the highest level.
struct LevelsResult {
  double link_bits = 0;          ///< What the low ones had together in the 300 ms before, the measure of the rest.
  double high_percent = 0;       ///< Of that: the high one, from 20 ms after its start to its end.
  double high_after_ms = 0;      ///< Until the first 10 ms in which it had 95 %; below 0: never.
  double recovered_percent = 0;  ///< The low ones, from 20 ms after its end on, for 200 ms.
  double recovered_after_ms = 0;
  double away_ms = 0;  ///< The longest time meanwhile that either end was not let run.
};

struct PacingResult {
  double cap_bits_per_second = 0;
  double bits_per_second = 0;  ///< What arrived in a second that begins 0.3 s after the start.
  double change_ms = 0;        ///< How long the old cap went on after it was halved, from what came too much.
};

/// `low` coflows of level 7 send all the time, one of level 0 does for half a second of each, `runs` times. Error
/// kUnavailable when nothing of the low ones came before a start.
Result<std::vector<LevelsResult>> MeasureLevels(std::uint32_t low, std::uint32_t runs, Rendezvous* rendezvous,
                                                transport::Transport* transport, Sheet* sheet);
Result<PacingResult> MeasurePacing(double cap_bits, Rendezvous* rendezvous, transport::Transport* transport);
/// Who had what over time, in steps of `step_ms`.
Result<Sheet> MeasureCoflows(std::string_view text, double seconds, std::uint32_t step_ms, Rendezvous* rendezvous,
                             transport::Transport* transport);

Sheet LevelsSheet(const std::vector<LevelsResult>& results);
Sheet PacingSheet(const std::vector<PacingResult>& results);

}  // namespace weir::tools
