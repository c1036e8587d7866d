#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/sim/options.h"
#include "tools/weir-sim/recorder.h"
#include "tools/weir-sim/report.h"

namespace weir::tools {

/// Pictures of runs as SVG text. Colours are variables of the page's style, so that they follow light and dark. A run
/// without a recorder has no utilisation and no timeline.
struct ChartRun {
  const PolicyRun& run;
  const RunRecorder& recorder;
};

/// The colour of the i-th policy, and how its line is broken, so that more of them than colours can be told apart.
std::string PolicyColour(std::size_t index);

/// Share of the coflows that took no longer, over time on a logarithmic axis.
std::string CctChart(std::span<const ChartRun> runs, const scheduler::TimeScale& scale);
/// How much of the ports' links all runs used over time.
std::string UtilisationChart(std::span<const ChartRun> runs, const scheduler::TimeScale& scale);
/// The busiest links of one run over time, the darker the fuller.
std::string LinkMap(const ChartRun& run, std::span<const std::string> link_names, const scheduler::TimeScale& scale);
/// From arrival to end of these coflows (places in the trace), darker from when they were first served.
std::string Timeline(const ChartRun& run, std::span<const std::size_t> coflows, std::size_t index,
                     const scheduler::TimeScale& scale);

}  // namespace weir::tools
