#pragma once

#include <span>
#include <string>

#include "scheduler/bounds/bounds.h"
#include "tools/weir-sim/charts.h"

namespace weir::tools {

/// What the page says besides its pictures.
struct ReportContext {
  std::string trace;    ///< Its file.
  std::string fabric;   ///< As --fabric names it.
  std::string command;  ///< What repeats the runs.
  std::span<const std::string> link_names;
  const scheduler::Bounds& bounds;
  const scheduler::TimeScale& scale;
};

/// One self-contained page: no script, nothing from elsewhere. Its size is bounded by policies, not by coflows. Pure.
std::string HtmlReport(std::span<const ChartRun> runs, const ReportContext& context);

}  // namespace weir::tools
