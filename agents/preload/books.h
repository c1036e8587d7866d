#pragma once

#include "agents/preload/gate.h"
#include "agents/preload/process.h"

/// What the agent is told about data writes: bytes, messages, rests, and the bell when it asked for it. A message is a
/// write that does not continue the one before it; a write continues if it asks for exactly what was left.
/// All for the thread that holds the entry's `busy`.
namespace weir::preload {

/// A write of `bytes` meets a hold.
void RecordRefusal(FdEntry* entry, client::Segment* segment, std::size_t bytes, std::int64_t now) noexcept;
/// A write goes ahead: whatever hold there was is over.
void RecordOpening(FdEntry* entry, client::Segment* segment) noexcept;
/// The kernel answered `write` with `result`, where -1 stands for EAGAIN.
void RecordWrite(FdEntry* entry, client::Segment* segment, const Write& write, ssize_t result,
                 std::int64_t now) noexcept;

}  // namespace weir::preload
