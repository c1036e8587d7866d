#pragma once

#include <cstddef>
#include <cstdint>

#include "agents/nccl/abi/net.h"

/// NCCL's profiler plugin interface, versions 3 to 6, in our own words: see abi/net.h. A profiler exports
/// `ncclProfiler_v3` and so on.
namespace weir::nccl::abi {

inline constexpr std::uint64_t kEventGroup = 0x1;
inline constexpr std::uint64_t kEventCollective = 0x2;
inline constexpr std::uint64_t kEventP2p = 0x4;
inline constexpr std::uint64_t kEventProxyOp = 0x8;
inline constexpr std::uint64_t kEventProxyStep = 0x10;
inline constexpr std::uint64_t kEventProxyControl = 0x20;
inline constexpr std::uint64_t kEventKernelChannel = 0x40;
inline constexpr std::uint64_t kEventNetPlugin = 0x80;
inline constexpr std::uint64_t kEventGroupApi = 0x100;       ///< v5 on.
inline constexpr std::uint64_t kEventCollectiveApi = 0x200;  ///< v5 on.
inline constexpr std::uint64_t kEventP2pApi = 0x400;         ///< v5 on.
inline constexpr std::uint64_t kEventKernelLaunch = 0x800;   ///< v5 on.
// Collectives that the GPU's copy engines carry, v6 on.
inline constexpr std::uint64_t kEventCopyCollective = 0x1000;
inline constexpr std::uint64_t kEventCopySync = 0x2000;
inline constexpr std::uint64_t kEventCopyBatch = 0x4000;
inline constexpr std::uint64_t kEventLastV6 = kEventCopyBatch;

/// The states of a proxy step that we look at.
inline constexpr std::uint32_t kStateSendWaitsForGpu = 8;
inline constexpr std::uint32_t kStateSendWaitsForNetwork = 9;
inline constexpr std::uint32_t kStateReceiveWaitsForNetwork = 10;
inline constexpr std::uint32_t kStateReceiveWaitsForGpu = 12;
inline constexpr std::uint32_t kStateSendWaitsForPeer = 20;  ///< v4 on.

/// The last that a version knows.
inline constexpr std::uint32_t kStateLastV3 = 18;
inline constexpr std::uint32_t kStateLastV4 = 22;
inline constexpr std::uint32_t kStateLastV5 = 24;

struct ProxyOpEvent {
  int pid;
  std::uint8_t channel;
  int peer;
  int steps;
  int chunk_bytes;
  int is_send;
};

struct ProxyStepEvent {
  int step;
};

struct NetPluginEvent {
  std::int64_t id;
  void* data;
};

struct CollectiveEventV3 {
  const char* name;
  std::uint64_t comm_id;
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels_max;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct P2pEventV3 {
  const char* name;
  std::uint64_t comm_id;
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
};

struct CollectiveEventV4 {
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
};

struct P2pEventV4 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};

struct CollectiveEventV5 {
  std::uint64_t sequence;
  const char* function;
  const void* send_buffer;
  void* receive_buffer;
  std::size_t count;
  int root;
  const char* datatype;
  std::uint8_t channels;
  std::uint8_t warps;
  const char* algorithm;
  const char* protocol;
  void* parent_group;
};

struct P2pEventV5 {
  const char* function;
  void* buffer;
  const char* datatype;
  std::size_t count;
  int peer;
  std::uint8_t channels;
  void* parent_group;
};

struct GroupApiEvent {
  bool graph_captured;
  int depth;
};

struct CollectiveApiEvent {
  const char* function;
  std::size_t count;
  const char* datatype;
  int root;
  void* stream;
  bool graph_captured;
};

struct P2pApiEvent {
  const char* function;
  std::size_t count;
  const char* datatype;
  void* stream;
  bool graph_captured;
};

struct DescriptorV3 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveEventV3 collective;
    P2pEventV3 p2p;
    ProxyOpEvent proxy_op;
    ProxyStepEvent proxy_step;
    NetPluginEvent net_plugin;
  };
};

struct DescriptorV4 {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    CollectiveEventV4 collective;
    P2pEventV4 p2p;
    ProxyOpEvent proxy_op;
    ProxyStepEvent proxy_step;
    NetPluginEvent net_plugin;
  };
};

struct DescriptorV5 {  ///< v6 too, as far as we look.
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    CollectiveEventV5 collective;
    P2pEventV5 p2p;
    ProxyOpEvent proxy_op;
    ProxyStepEvent proxy_step;
    NetPluginEvent net_plugin;
    GroupApiEvent group_api;
    CollectiveApiEvent collective_api;
    P2pApiEvent p2p_api;
  };
};

using ProfilerInitV3 = Result (*)(void** context, int* mask);
using ProfilerInitV4 = Result (*)(void** context, int* mask, const char* comm_name, std::uint64_t comm_id, int nodes,
                                  int ranks, int rank, Logger logger);
using ProfilerInitV5 = Result (*)(void** context, std::uint64_t comm_id, int* mask, const char* comm_name, int nodes,
                                  int ranks, int rank, Logger logger);

template <typename Init, typename Descriptor>
struct ProfilerTable {
  using Event = Descriptor;
  const char* name;
  Init init;
  Result (*start_event)(void* context, void** event, Descriptor* descriptor);
  Result (*stop_event)(void* event);
  Result (*record_event_state)(void* event, std::uint32_t state, void* arguments);
  Result (*finalize)(void* context);
};
using ProfilerV3 = ProfilerTable<ProfilerInitV3, DescriptorV3>;
using ProfilerV4 = ProfilerTable<ProfilerInitV4, DescriptorV4>;
using ProfilerV5 = ProfilerTable<ProfilerInitV5, DescriptorV5>;
using ProfilerV6 = ProfilerV5;

static_assert(sizeof(DescriptorV3) == 120 && offsetof(DescriptorV3, parent) == 8 && offsetof(DescriptorV3, rank) == 16);
static_assert(offsetof(DescriptorV3, collective.comm_id) == 32 && offsetof(DescriptorV3, collective.function) == 48 &&
              offsetof(DescriptorV3, collective.count) == 72 && offsetof(DescriptorV3, collective.datatype) == 88 &&
              offsetof(DescriptorV3, collective.channels_max) == 96 && offsetof(DescriptorV3, collective.warps) == 97 &&
              offsetof(DescriptorV3, collective.algorithm) == 104 &&
              offsetof(DescriptorV3, collective.protocol) == 112);
static_assert(offsetof(DescriptorV3, p2p.comm_id) == 32 && offsetof(DescriptorV3, p2p.function) == 40 &&
              offsetof(DescriptorV3, p2p.datatype) == 56 && offsetof(DescriptorV3, p2p.count) == 64 &&
              offsetof(DescriptorV3, p2p.peer) == 72);
static_assert(sizeof(DescriptorV4) == 104 && offsetof(DescriptorV4, collective.sequence) == 24 &&
              offsetof(DescriptorV4, collective.count) == 56 && offsetof(DescriptorV4, collective.root) == 64 &&
              offsetof(DescriptorV4, collective.datatype) == 72 && offsetof(DescriptorV4, collective.channels) == 80 &&
              offsetof(DescriptorV4, collective.algorithm) == 88 && offsetof(DescriptorV4, collective.protocol) == 96);
static_assert(offsetof(DescriptorV4, p2p.buffer) == 32 && offsetof(DescriptorV4, p2p.datatype) == 40 &&
              offsetof(DescriptorV4, p2p.count) == 48 && offsetof(DescriptorV4, p2p.peer) == 56 &&
              offsetof(DescriptorV4, p2p.channels) == 60);
static_assert(sizeof(DescriptorV5) == 112 && offsetof(DescriptorV5, collective.parent_group) == 104 &&
              offsetof(DescriptorV5, p2p.parent_group) == 64 && offsetof(DescriptorV5, group_api.depth) == 28);
static_assert(offsetof(DescriptorV5, collective_api.stream) == 56 &&
              offsetof(DescriptorV5, collective_api.graph_captured) == 64 &&
              offsetof(DescriptorV5, p2p_api.stream) == 48 && offsetof(DescriptorV5, p2p_api.graph_captured) == 56);
static_assert(offsetof(DescriptorV5, proxy_op.channel) == 28 && offsetof(DescriptorV5, proxy_op.peer) == 32 &&
              offsetof(DescriptorV5, proxy_op.steps) == 36 && offsetof(DescriptorV5, proxy_op.chunk_bytes) == 40 &&
              offsetof(DescriptorV5, proxy_op.is_send) == 44 && offsetof(DescriptorV5, proxy_step.step) == 24 &&
              offsetof(DescriptorV5, net_plugin.data) == 32);
static_assert(sizeof(ProfilerV3) == 48 && offsetof(ProfilerV3, start_event) == 16 &&
              offsetof(ProfilerV3, stop_event) == 24 && offsetof(ProfilerV3, record_event_state) == 32 &&
              offsetof(ProfilerV3, finalize) == 40);

}  // namespace weir::nccl::abi
