#pragma once

#include <string>

#include "scheduler/coordinator/engine.h"

namespace weir::scheduler {

/// GET /v1/status: what the coordinator knows now. docs/coordinator.md describes every key.
std::string StatusJson(const CoordinatorEngine& engine, Nanoseconds now);
/// GET /v1/timeline: the last grants, oldest first.
std::string TimelineJson(const CoordinatorEngine& engine);

}  // namespace weir::scheduler
