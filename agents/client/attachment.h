#pragma once

#include <cstdint>

#include "agents/client/segment.h"

/// The process's side of attaching to its host's agent. Used inside somebody else's process: no exceptions, no heap, no
/// descriptor left open, bounded time, errno preserved by the caller.
namespace weir::client {

struct Attachment {
  Segment* segment = nullptr;  ///< Mapped for the rest of the process's life; never unmapped, so no reader can fault.
  Doorbell* doorbell = nullptr;
  char reason[sizeof(AttachReply::reason)] = {};  ///< In the agent's words, if it refused; else empty.
  explicit operator bool() const { return segment != nullptr; }
};

/// kBroken: the agent is of another version, or what it sent makes no sense.
enum class AttachResult { kAttached, kNoAgent, kRefused, kBroken };

/// Connects to the agent at `socket_path`, sends `request`, maps what comes back. Takes `timeout_ms` at the most. Any
/// thread; not async-signal-safe.
AttachResult Attach(const char* socket_path, const AttachRequest& request, int timeout_ms, Attachment* out);

/// Who this process works for, from its environment: WEIR_JOB, WEIR_TENANT, WEIR_CLASS, WEIR_WEIGHT, WEIR_GPUS; without
/// WEIR_JOB what a launcher set (Slurm, torchrun, Open MPI, MASTER_ADDR and MASTER_PORT). False if nothing names a job.
bool RequestFromEnvironment(AttachRequest* request);

/// Tells the agent to look, if it sleeps. Async-signal-safe.
void Ring(Doorbell* doorbell);

/// CLOCK_MONOTONIC, nanoseconds.
std::int64_t NowNs();

/// Waits until `*word` is not `seen`, a wake, a signal, or `timeout_ns`. Returns 0 or the errno. Shared between
/// processes.
int FutexWait(const std::atomic<std::uint32_t>* word, std::uint32_t seen, std::int64_t timeout_ns);
void FutexWakeAll(const std::atomic<std::uint32_t>* word);

}  // namespace weir::client
