#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"
#include "tools/weir-perf/rendezvous.h"
#include "transport/transport.h"

/// Several coflows at once between the two ends, each with a lane of its own, and what of them arrives when.
namespace weir::tools {

struct Span {
  double from_s = 0;
  double until_s = 0;
};

/// One coflow of a run: when it has something to send, and what its directive says.
struct CoflowPlan {
  std::vector<Span> spans;      ///< In order; outside of them it has nothing to send.
  std::uint8_t level = 0;       ///< 0 goes first.
  double cap_bits = 0;          ///< 0: none.
  double change_s = 0;          ///< When the cap changes,
  double changed_cap_bits = 0;  ///< and to what.
};

struct CoflowsPlan {
  std::vector<CoflowPlan> coflows;
  double seconds = 0;  ///< At most kRunMax_s.
  Bytes message = 8 * 1024;
};

inline constexpr std::size_t kCoflowsMax = 64;
inline constexpr double kRunMax_s = 60;
inline constexpr Nanoseconds kArrivalStep = kMillisecond;
inline constexpr Nanoseconds kAwayMin = kMillisecond;

/// What arrived, counted where it arrived, on the clock of the one who asked: step i is that from i milliseconds on.
struct Arrivals {
  std::vector<std::vector<Bytes>> bytes;     ///< Of each coflow, in each step. All of the same length.
  std::vector<std::vector<double>> ended_s;  ///< Of each coflow and span: when its last send was done.
  /// In the step in which it ended: for how long either end had not been let run, when that was above kAwayMin. What
  /// was measured meanwhile says something about the host, not about the transport.
  std::vector<Nanoseconds> away;

  /// Bytes of coflows [first, last) in a span of time, the steps at its ends in part.
  double Between(std::size_t first, std::size_t last, Span span) const;
  Nanoseconds LongestAway(Span span) const;
};

/// The side that sends. Errors: why a channel failed, what the other end said.
Result<Arrivals> RunCoflows(const CoflowsPlan& plan, Rendezvous* rendezvous, transport::Transport* transport);

/// The other side: opens the channels but for the first, which is given, counts until each has ended, and sends the
/// counts over `back`.
Status CountArrivals(std::uint32_t coflows, Bytes message, Rendezvous* rendezvous, transport::Transport* transport,
                     std::unique_ptr<transport::Receiver> first, transport::Sender* back);

/// "8x7,0@0.5-1/2G": how many, "x", level, "@" from and until in seconds, "/" cap in bits a second. Only the level is
/// needed. Error kInvalidArgument with what is allowed. Each entry yields as many coflows as it says.
struct CoflowEntry {
  std::string text;
  std::uint32_t count = 1;
  CoflowPlan plan;
};
Result<std::vector<CoflowEntry>> ParseCoflows(std::string_view text, double seconds);

}  // namespace weir::tools
