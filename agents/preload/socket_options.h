#pragma once

#include "agents/preload/process.h"

/// What is set on data sockets: pacing rate, how much may wait unsent, and marks. All under Process::slots.
namespace weir::preload {

/// Remembers what the program had set, before we touch it.
void ReadOptions(SocketInfo* info) noexcept;
/// Makes the socket what its lane's directive says, if it is not yet. The descriptor must still be that socket.
void ApplyDirective(const client::Segment* segment, SocketInfo* info) noexcept;
/// Back to what the program had set; marks stay, since changing them on a live connection reorders packets.
void RestoreOptions(SocketInfo* info) noexcept;

}  // namespace weir::preload
