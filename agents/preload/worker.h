#pragma once

namespace weir::preload {

/// Starts this process's one helper thread, unless it runs: it carries out what the agent writes into the segment,
/// opens everything when the agent is gone, and attaches again when there is one. All signals are blocked in it.
void StartWorker() noexcept;

}  // namespace weir::preload
