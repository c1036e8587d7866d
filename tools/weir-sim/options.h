#pragma once

#include <cstdint>
#include <string>

#include "coflow/status.h"
#include "coflow/traces/trace.h"
#include "scheduler/sim/options.h"

namespace weir::tools {

class Attendant;

/// What the flags of weir-sim say, each under the flag's name; docs/simulator.md has their meaning. main.cc fills it.
/// A plain value.
struct Options {
  std::string trace, policy, policies, output, units, cct_csv, capacity_changes, arrivals, bounds, format, out, pattern;
  std::string compat, compat_arrivals, coflow, report, command_line, progress;
  std::string fabric = "big-switch";
  std::uint32_t leaves = 0;
  std::uint32_t spines = 1;
  double oversubscription = 1;
  double compat_zero_bps = 1;
  double port_mib = 128;
  double delay_ms = 0;
  double reporting_interval_ms = 0;
  std::int32_t levels = 0;
  std::uint64_t seed = 1;
  double scale_bytes = 1;
  double scale_arrivals = 1;
  double skew_sigma = 0;
  std::uint64_t skew_seed = 1;
  std::uint64_t shuffle_seed = 0;
  double batch_ms = 0;
  double deadline_factor = -1;
  std::uint64_t deadline_seed = 1;
  std::uint32_t ports = 150;
  std::uint32_t coflows = 526;
  double span_s = 3600;
  double load = 0.52;
  double width = 1;
  double skew = 0.5;
  std::uint32_t jobs = 10;
  std::uint32_t ranks = 8;
  std::uint32_t iterations = 10;
  std::uint32_t micro_batches = 4;
  Bytes bytes = 104'857'600;
  double period_s = 1;
  Attendant* attendant = nullptr;  ///< Is told how far the program is; not owned.
};

/// What the simulators need. InvalidArgument names the flag that is out of range.
Result<scheduler::SimOptions> SimOptionsOf(const Options& options);

/// The trace of --trace, changed as the flags say. Protocol if it is not well formed, NotFound if it cannot be opened,
/// InvalidArgument for a flag that is out of range, Unsupported for a change that the trace does not allow.
Result<traces::Trace> LoadTrace(const Options& options, const scheduler::SimOptions& sim);

std::int64_t SteadyNanoseconds();

}  // namespace weir::tools
