#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "coflow/status.h"

/// CoflowSim, the simulator that comes with the papers on Varys (SIGCOMM 2014) and Aalo (SIGCOMM 2015), as it behaves
/// and not as it should: rounding, early admission, shares that are lost. For comparing with its figures only; what
/// Weir decides and measures itself is in the folder above. docs/simulator.md lists what is peculiar.
namespace weir::scheduler::coflowsim {

inline constexpr std::int64_t kStepMs = 8;            ///< Its time step, in its milliseconds: a port's time for 1 MB.
inline constexpr double kStepBytes = 1'048'576;       ///< 1 MB: what a port moves in a step.
inline constexpr double kPortBytes = 134'217'728;     ///< Of a port, in 1,024 of its milliseconds.
inline constexpr std::int64_t kEpochMs = 10'240;      ///< Between admissions, as it is delivered.
inline constexpr std::int64_t kEndMs = 88'473'600;    ///< No admission from here on: a day of 86,400 x 1,024.
inline constexpr double kZero = 1e-3;                 ///< Bytes, or bits per second, that are taken for none.
inline constexpr double kFreeZero = 1;                ///< Bits per second: more than rounding leaves over of a port.
inline constexpr std::int64_t kTicksPerMs = 131'072;  ///< Ticks of scheduler/sim/outcome.h.

enum class Policy { kFair, kPfp, kFifo, kScf, kNcf, kLcf, kSebf, kDark };

/// As CoflowSim writes it, in capitals.
std::string_view PolicyName(Policy policy);
/// In capitals or not. InvalidArgument names what is allowed.
Result<Policy> PolicyFromName(std::string_view name);

struct Options {
  Policy policy = Policy::kSebf;
  std::int64_t epoch_ms = kEpochMs;  ///< Between admissions; a positive multiple of kStepMs.
  /// Deadlines are kept by admission control, each bottleneck time x (1 + U(0, 1) x this). None: not kept. Only with
  /// kFifo. Allowed: 0 to 1000.
  std::optional<double> deadline_factor = std::nullopt;
  /// Free capacity of a port, bits per second, that FIFO to SEBF take for none. Allowed: kZero, as in CoflowSim's
  /// source, to 1e6. At kZero what rounding leaves over of a port that is used up counts as free, so that a coflow is
  /// not skipped but served at next to nothing.
  double free_zero = kFreeZero;
};

}  // namespace weir::scheduler::coflowsim
