#pragma once

#include "agents/client/segment.h"

/// What the environment says about this process. Read when the library is loaded, and once more at the first data
/// socket if no job was named by then: programs name the rendezvous for themselves before they open it.
namespace weir::preload {

/// False once it is certain that this process is not to be managed.
bool EnvironmentAllows() noexcept;
/// Decides: true if a job is known, and then `Request` says which.
bool EnvironmentNamesJob() noexcept;
const client::AttachRequest& Request() noexcept;
const char* AgentSocket() noexcept;
/// WEIR_MANAGE_LOOPBACK is set: also sockets to this host itself are managed. For trying things on one machine.
bool ManagesLoopback() noexcept;
/// One line on standard error if WEIR_LOG allows, `text` and then `more`: level 1 warn, 2 debug.
void Say(int level, const char* text, const char* more = "") noexcept;

}  // namespace weir::preload
