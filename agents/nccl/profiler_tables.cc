// The profiler tables that NCCL looks up. NCCL takes the profiler from the network plugin when no other is named.
#include <memory>

#include "agents/nccl/abi/profiler.h"
#include "agents/nccl/coflow_size.h"
#include "agents/nccl/event_book.h"
#include "agents/nccl/net_calls.h"
#include "agents/nccl/profiler_chain.h"

namespace weir::nccl {
namespace {

constexpr const char* kName = "Weir";

/// The network half's own events are asked for; NCCL then makes all that they are children of, and no kernel events.
abi::Result Begin(void** context, int* mask, int version, const ProfiledFacts& facts) noexcept;

abi::Result InitV3(void** context, int* mask) noexcept {
  return Begin(context, mask, 3, {});
}

abi::Result InitV4(void** context, int* mask, const char* name, std::uint64_t comm_id, int nodes, int ranks, int rank,
                   abi::Logger logger) noexcept {
  SetLogger(logger);
  return Begin(context, mask, 4, {comm_id, name, nodes, ranks, rank, logger});
}

template <int kVersion>
abi::Result InitV5(void** context, std::uint64_t comm_id, int* mask, const char* name, int nodes, int ranks, int rank,
                   abi::Logger logger) noexcept {
  SetLogger(logger);
  return Begin(context, mask, kVersion, {comm_id, name, nodes, ranks, rank, logger});
}

/// The group that a point-to-point event is of, and its communicator where the event says so itself.
template <typename Descriptor>
const void* GroupOf(const Descriptor& event) {
  if constexpr (requires { event.p2p.parent_group; }) return event.p2p.parent_group;
  return event.parent;
}

template <typename Event>
std::uint64_t CommOf(const Event& event) {
  if constexpr (requires { event.comm_id; }) return event.comm_id;
  return 0;
}

template <typename Collective>
void* NewCollective(ProfiledComm* comm, const Collective& what) {
  const Function function = FunctionFromName(what.function);
  const Bytes given = what.count * BytesOfDatatype(what.datatype);
  return Events().NewCollective(comm->Collective(CommOf(what), function, what.sequence),
                                BytesToPeer(function, what.algorithm, given, comm->ranks()));
}

/// Of operations, steps and transfers, `context` may be another process's: it is looked at for collectives only.
template <typename Descriptor>
void* StartOwn(void* context, const Descriptor& what, void* parent) {
  auto* comm = static_cast<ProfiledComm*>(context);
  switch (std::uint64_t{what.type}) {
    case abi::kEventGroup:
    case abi::kEventGroupApi:
      return Events().NewGroup();
    case abi::kEventCollective:
      return NewCollective(comm, what.collective);
    case abi::kEventP2p:
      return Events().NewCollective(comm->PointToPoint(CommOf(what.p2p), GroupOf(what)),
                                    what.p2p.count * BytesOfDatatype(what.p2p.datatype));
    case abi::kEventProxyOp:
      return Events().NewOp(parent, what.proxy_op.pid, what.rank, what.proxy_op.peer, what.proxy_op.channel);
    case abi::kEventProxyStep:
      return Events().NewStep(parent);
    case abi::kEventNetPlugin:
      if (what.net_plugin.id == kNetPluginId) {
        Events().Identify(parent, static_cast<TransferIdentity*>(what.net_plugin.data));
      }
      return nullptr;
    default:
      return nullptr;
  }
}

template <typename Descriptor>
abi::Result StartEvent(void* context, void** event, Descriptor* what) noexcept {
  *event = nullptr;
  return Guarded("startEvent", [&] {
    ProfilerChain& chain = ProfilerChain::Instance();
    if (chain.active()) {
      *event = chain.Start(context, *what, StartOwn(context, *what, chain.Own(what->parent)));
    } else {
      *event = StartOwn(context, *what, what->parent);
    }
    return abi::Result::kSuccess;
  });
}

/// Of our own events, only operations have an end.
abi::Result StopEvent(void* event) noexcept {
  return Guarded("stopEvent", [&] {
    ProfilerChain& chain = ProfilerChain::Instance();
    Events().EndOp(chain.active() ? chain.Own(event) : event);
    if (chain.active()) chain.Stop(event);
    return abi::Result::kSuccess;
  });
}

abi::Result RecordEventState(void* event, std::uint32_t state, void* arguments) noexcept {
  return Guarded("recordEventState", [&] {
    ProfilerChain& chain = ProfilerChain::Instance();
    if (chain.active()) chain.Record(event, state, arguments);
    return abi::Result::kSuccess;
  });
}

abi::Result EndProfiler(void* context) noexcept {
  return Guarded("profiler finalize", [&] {
    if (ProfilerChain::Instance().active()) ProfilerChain::Instance().End(context);
    delete static_cast<ProfiledComm*>(context);
    return abi::Result::kSuccess;
  });
}

template <typename Table>
constexpr Table MakeTable(decltype(Table::init) init) {
  return {kName, init, StartEvent<typename Table::Event>, StopEvent, RecordEventState, EndProfiler};
}

}  // namespace
}  // namespace weir::nccl

#define WEIR_EXPORTED __attribute__((visibility("default"))) constinit

extern "C" {

namespace nccl = weir::nccl;
namespace abi = weir::nccl::abi;

WEIR_EXPORTED abi::ProfilerV3 ncclProfiler_v3 = nccl::MakeTable<abi::ProfilerV3>(nccl::InitV3);
WEIR_EXPORTED abi::ProfilerV4 ncclProfiler_v4 = nccl::MakeTable<abi::ProfilerV4>(nccl::InitV4);
WEIR_EXPORTED abi::ProfilerV5 ncclProfiler_v5 = nccl::MakeTable<abi::ProfilerV5>(nccl::InitV5<5>);
WEIR_EXPORTED abi::ProfilerV6 ncclProfiler_v6 = nccl::MakeTable<abi::ProfilerV6>(nccl::InitV5<6>);

}  // extern "C"

namespace weir::nccl {
namespace {

abi::Result Begin(void** context, int* mask, int version, const ProfiledFacts& facts) noexcept {
  return Guarded("profiler init", [&] {
    Events();
    auto comm = std::make_unique<ProfiledComm>(facts.comm_id, facts.ranks);
    *mask = static_cast<int>(abi::kEventNetPlugin);
    ProfilerChain::Instance().Begin(comm.get(), version, &ncclProfiler_v6, mask, facts);
    *context = comm.release();
    return abi::Result::kSuccess;
  });
}

}  // namespace
}  // namespace weir::nccl
