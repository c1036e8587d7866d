#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

/// The memory that a training process and the host's agent share: the fixed layout both sides compile in.
///
/// One segment per attached process. The agent creates it as a sealed memfd (its size can never change, so the agent
/// cannot be killed by a truncation), passes it over the attach socket, and treats everything the process writes as
/// untrusted: indices are checked, counters may lie, nothing in here is ever a pointer. One process cannot see or harm
/// the segment of another.
///
/// Who writes what is said per field: (A) the agent, (P) the process. Every shared word is a lock-free atomic. The
/// process reads a gate with one load; it makes a system call only to ring the doorbell, and the agent asks for rings
/// by arming them (`want_start`, `want_drain`), so a running coflow costs no system call at all.
///
/// Layout changes: fields may be appended in the reserved space with a higher `version_minor`; anything else is a new
/// `version_major`, which the other side refuses. docs/shared-memory.md describes the layout in prose.
namespace weir::client {

inline constexpr std::uint32_t kSegmentMagic = 0x52494557;  // "WEIR"
inline constexpr std::uint16_t kSegmentVersionMajor = 1;
inline constexpr std::uint16_t kSegmentVersionMinor = 3;  ///< 1: LaneStalls; 2: its sends; 3: known_by.

inline constexpr std::uint32_t kMaxLanes = 128;          ///< Peers of one process; further peers run unmanaged.
inline constexpr std::uint32_t kMaxSockets = 1024;       ///< Data sockets of one process; further ones run unmanaged.
inline constexpr std::uint32_t kMessageRingSize = 1024;  ///< Message starts between two looks of the agent.
inline constexpr std::uint32_t kNoLane = 0xffffffff;

/// A heartbeat older than this means the agent is gone: the process opens every gate and takes off its caps.
inline constexpr std::int64_t kAgentDeadAfter_ns = 400'000'000;
inline constexpr std::int64_t kHeartbeatEvery_ns = 100'000'000;
/// No hold outlives this unless the agent renews it, whatever else goes wrong.
inline constexpr std::int64_t kHoldMax_ns = 2'000'000'000;

enum class GateState : std::uint32_t { kGo = 0, kHold = 1 };

/// How the process knew the coflow that a message begins. The preload library knows by writes alone; of the NCCL
/// plugin's three, each is less exact than the one before.
enum class KnownBy : std::uint16_t { kWrites = 0, kProfiler = 1, kAttributes = 2, kIdleGap = 3 };
inline constexpr std::size_t kKnownByKinds = 4;

enum class LaneState : std::uint32_t { kFree = 0, kLive = 1 };
enum class SocketState : std::uint32_t { kFree = 0, kLive = 1 };

/// What the agent wants done with one lane. Behind LaneSlot::sequence, except the gate, which stands alone.
struct LaneDirective {
  std::atomic<std::uint64_t> pacing_rate;    ///< (A) bytes/s per socket, 0 = no cap of ours (SO_MAX_PACING_RATE)
  std::atomic<std::uint32_t> notsent_lowat;  ///< (A) bytes, 0 = leave alone (TCP_NOTSENT_LOWAT)
  std::atomic<std::uint32_t>
      marks;  ///< (A) bit 31: mark; bits 0-7 traffic class byte (DSCP << 2); bits 8-15 SO_PRIORITY
};

/// One (process, peer address). The process fills the identity and then sets state to kLive; it never reuses a lane.
struct alignas(64) LaneSlot {
  std::atomic<std::uint32_t> state;  ///< (P) LaneState
  std::uint16_t family;              ///< (P) AF_INET or AF_INET6 (IPv4-mapped is stored as AF_INET)
  std::uint16_t reserved0;
  std::uint8_t peer_address[16];  ///< (P) network order; the first 4 bytes for AF_INET
  // Directive: written by the agent, read by the process.
  std::atomic<std::uint32_t> gate;       ///< (A) GateState; futex word for blocking writers
  std::atomic<std::uint32_t> sequence;   ///< (A) odd while the directive below is being written
  std::atomic<std::int64_t> hold_until;  ///< (A) CLOCK_MONOTONIC ns at which a hold becomes void
  LaneDirective directive;
  // Counters: written by the process, read by the agent; on a cache line of their own.
  alignas(64) std::atomic<std::uint64_t> bytes_accepted;  ///< (P) taken by the kernel since the lane opened
  std::atomic<std::uint64_t> messages;                    ///< (P) data messages begun
  std::atomic<std::int64_t>
      first_refused;                       ///< (P) CLOCK_MONOTONIC ns of the first write refused by this hold, 0 = none
  std::atomic<std::uint64_t> writes_held;  ///< (P) writes refused or delayed by a hold
  std::atomic<std::int64_t> held_ns;       ///< (P) total time between first refusal and the gate's opening
  std::atomic<std::uint32_t> want_start;   ///< (A arms 1, P takes) ring when a data write happens
  std::atomic<std::uint32_t> want_drain;   ///< (A arms 1, P takes) ring when no socket of the lane has a rest to write
  std::atomic<std::uint32_t> sockets_with_rest;  ///< (P) sockets whose message is not wholly taken by the kernel
  std::uint32_t reserved1;
};

/// One data socket of the process, so that the agent can ask the kernel about it (sock_diag) without touching it; or a
/// connection that goes past the kernel, of which there is nothing to ask.
struct alignas(64) SocketSlot {
  std::atomic<std::uint32_t> state;  ///< (P) SocketState
  std::atomic<std::uint32_t> lane;   ///< (P) index of its lane
  std::uint16_t family;              ///< (P) the socket's own: AF_INET6 for IPv4-mapped peers; 0: past the kernel
  std::uint16_t local_port;          ///< (P) host order
  std::uint16_t peer_port;           ///< (P) host order
  std::uint16_t reserved0;
  std::uint8_t local_address[16];   ///< (P)
  std::uint8_t peer_address[16];    ///< (P)
  std::atomic<std::uint64_t> rest;  ///< (P) bytes of the current message that the kernel has not taken yet
};

/// The start of one data message (a write that does not continue the one before it).
struct MessageEntry {
  std::atomic<std::uint64_t> ticket;   ///< (P) 1 + its number once the entry is valid
  std::atomic<std::int64_t> time;      ///< (P) CLOCK_MONOTONIC ns of the first write
  std::atomic<std::int64_t> accepted;  ///< (P) CLOCK_MONOTONIC ns at which the kernel had taken all of it, 0 = not yet
  std::atomic<std::uint64_t> bytes;    ///< (P) whole length as seen at the first write
  std::atomic<std::uint32_t> socket;   ///< (P) index of its socket slot
  std::atomic<std::uint16_t> held;     ///< (P) 1 if that first write was refused by a hold
  std::atomic<std::uint16_t>
      known_by;  ///< (P) KnownBy; always 0 before minor version 3, when `held` was as wide as both
};

/// Where the time of a lane's coflows went, and how they are known, added up over its connections. Only processes that
/// know it write it (those with the NCCL plugin); zeros otherwise.
struct alignas(64) LaneStalls {
  std::atomic<std::int64_t> gpu_ns;      ///< (P) within a coflow, nothing under way and nothing ready to be sent
  std::atomic<std::int64_t> credit_ns;   ///< (P) until the peer had room for a transfer
  std::atomic<std::int64_t> network_ns;  ///< (P) something was under way
  std::atomic<std::int64_t> held_ns;     ///< (P) a transfer was ready, and a hold kept it from beginning
  // Transfers that began, by how their coflow was known:
  std::atomic<std::uint64_t> sends_by_profiler;    ///< (P) exactly
  std::atomic<std::uint64_t> sends_by_attributes;  ///< (P) by what NCCL says of operations
  std::atomic<std::uint64_t> sends_by_idle_gap;    ///< (P) by pauses
};

struct alignas(64) SegmentHeader {
  std::uint32_t magic;          ///< (A)
  std::uint16_t version_major;  ///< (A)
  std::uint16_t version_minor;  ///< (A)
  std::uint32_t size;           ///< (A) of the whole segment, bytes
  std::uint32_t reserved0;
  alignas(64)
      std::atomic<std::int64_t> heartbeat;  ///< (A) CLOCK_MONOTONIC ns, renewed every kHeartbeatEvery_ns; 0 = released
  std::atomic<std::uint32_t> generation;    ///< (A) bumped after every change of gates or directives; futex word
  std::uint32_t reserved1;
  alignas(64) std::atomic<std::uint32_t> lanes_used;  ///< (P) high-water mark
  std::atomic<std::uint32_t> sockets_used;            ///< (P) high-water mark
  std::atomic<std::uint64_t> messages_begun;          ///< (P) number of the next MessageEntry
  std::atomic<std::uint64_t> sockets_unmanaged;       ///< (P) sockets that found no slot
  std::atomic<std::uint32_t> detached;                ///< (P) 1 once the process has let go of the segment
};

struct Segment {
  SegmentHeader header;
  LaneSlot lanes[kMaxLanes];
  SocketSlot sockets[kMaxSockets];
  MessageEntry messages[kMessageRingSize];
  LaneStalls stalls[kMaxLanes];  ///< By lane.
};

/// One page shared by the agent and all processes of the host: rung with a futex, so that no descriptor stays open in
/// the training process. A hostile process can ring it for nothing or swallow a ring; the agent therefore also looks by
/// itself every few ms while anything is active.
struct Doorbell {
  std::atomic<std::uint32_t> rings;     ///< (P) incremented by every ring; futex word
  std::atomic<std::uint32_t> sleeping;  ///< (A) 1 while the agent waits on `rings`
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);
static_assert(sizeof(LaneDirective) == 16);
static_assert(sizeof(LaneSlot) == 128 && offsetof(LaneSlot, gate) == 24 && offsetof(LaneSlot, hold_until) == 32);
static_assert(offsetof(LaneSlot, directive) == 40 && offsetof(LaneSlot, bytes_accepted) == 64);
static_assert(sizeof(SocketSlot) == 64 && offsetof(SocketSlot, rest) == 48);
static_assert(sizeof(MessageEntry) == 40 && offsetof(MessageEntry, held) == 36);
static_assert(sizeof(SegmentHeader) == 192 && offsetof(SegmentHeader, heartbeat) == 64);
static_assert(offsetof(SegmentHeader, generation) == 72 && offsetof(SegmentHeader, lanes_used) == 128);
static_assert(offsetof(Segment, lanes) == 192 && offsetof(Segment, sockets) == 192 + 128 * kMaxLanes);
static_assert(sizeof(LaneStalls) == 64);
static_assert(offsetof(Segment, stalls) == 192 + 128 * kMaxLanes + 64 * kMaxSockets + 40 * kMessageRingSize);
static_assert(sizeof(Segment) == offsetof(Segment, stalls) + 64 * kMaxLanes);

// ---- Attach: one request and one reply over the agent's Unix stream socket ----

/// Sent by the process. Text fields are NUL-padded; the agent takes the pid from the socket's credentials, not from
/// here.
struct AttachRequest {
  std::uint32_t magic;  ///< kSegmentMagic
  std::uint16_t version_major;
  std::uint16_t version_minor;
  std::uint32_t gpus;
  std::uint32_t reserved;
  double weight;       ///< 0 = 1
  char job[128];       ///< WEIR_JOB or what stands in for it
  char tenant[64];     ///< WEIR_TENANT
  char job_class[32];  ///< WEIR_CLASS: guaranteed, best-effort, scavenger
};

/// Sent by the agent, with two descriptors attached when status is 0: the segment's memfd, then the doorbell's.
struct AttachReply {
  std::uint32_t magic;
  std::uint16_t version_major;
  std::uint16_t version_minor;
  std::uint32_t status;  ///< 0 = attached; 1 = version not spoken; 2 = refused (reason says why)
  std::uint32_t size;    ///< of the segment, bytes
  char reason[112];
};

static_assert(sizeof(AttachRequest) == 248 && sizeof(AttachReply) == 128);

}  // namespace weir::client
