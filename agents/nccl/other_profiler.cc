#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <type_traits>

#include "agents/nccl/profiler_chain.h"

namespace weir::nccl {
namespace {

constexpr int kOldest = 3;
constexpr int kNewest = 6;

/// The last type of event, and the last state, that a version knows.
constexpr std::uint64_t LastType(int version) {
  if (version >= 6) return abi::kEventLastV6;
  return version == 5 ? abi::kEventKernelLaunch : abi::kEventNetPlugin;
}
constexpr std::uint32_t LastState(int version) {
  if (version >= 6) return UINT32_MAX;
  if (version == 5) return abi::kStateLastV5;
  return version == 4 ? abi::kStateLastV4 : abi::kStateLastV3;
}

/// What has other places in v3, v4 and v5. `To` is not later than `From`.
template <typename To, typename From>
void ConvertCollective(const From& from, std::uint64_t comm_id, To* to) {
  to->sequence = from.sequence;
  to->function = from.function;
  to->send_buffer = from.send_buffer;
  to->receive_buffer = from.receive_buffer;
  to->count = from.count;
  to->root = from.root;
  to->datatype = from.datatype;
  to->warps = from.warps;
  to->algorithm = from.algorithm;
  to->protocol = from.protocol;
  if constexpr (requires { to->channels_max; }) to->channels_max = from.channels;
  if constexpr (requires { to->comm_id; }) to->comm_id = comm_id;
  if constexpr (requires { to->channels; }) to->channels = from.channels;
}

template <typename To, typename From>
void ConvertP2p(const From& from, std::uint64_t comm_id, To* to) {
  to->function = from.function;
  to->buffer = from.buffer;
  to->datatype = from.datatype;
  to->count = from.count;
  to->peer = from.peer;
  if constexpr (requires { to->comm_id; }) to->comm_id = comm_id;
  if constexpr (requires { to->channels; }) to->channels = from.channels;
}

template <typename To, typename From>
To Convert(const From& from, std::uint64_t comm_id) {
  if constexpr (std::is_same_v<To, From>) {
    return from;  // With all of the union, whatever it has.
  } else {
    To to{};
    to.type = static_cast<decltype(to.type)>(from.type);
    to.rank = from.rank;
    if (from.type == abi::kEventCollective) {
      ConvertCollective(from.collective, comm_id, &to.collective);
    } else if (from.type == abi::kEventP2p) {
      ConvertP2p(from.p2p, comm_id, &to.p2p);
    } else {
      // Everything else that both know is the same from its first byte on; v3 has less of a kernel's channel.
      constexpr std::size_t kSame = sizeof(abi::ProxyOpEvent);
      static_assert(offsetof(To, proxy_op) == offsetof(From, proxy_op));
      std::memcpy(&to.proxy_op, &from.proxy_op, kSame);
    }
    return to;
  }
}

template <typename Table, int kVersion>
class OtherOf final : public OtherProfiler {
 public:
  explicit OtherOf(Table* table) : table_(table) {}

  int version() const override { return kVersion; }
  std::string name() const override { return table_->name == nullptr ? "" : table_->name; }
  abi::Result Init(void** context, int* mask, const ProfiledFacts& facts) override {
    if constexpr (kVersion == 3) return table_->init(context, mask);
    if constexpr (kVersion == 4) {
      return table_->init(context, mask, facts.name, facts.comm_id, facts.nodes, facts.ranks, facts.rank, facts.logger);
    }
    if constexpr (kVersion > 4) {
      return table_->init(context, facts.comm_id, mask, facts.name, facts.nodes, facts.ranks, facts.rank, facts.logger);
    }
  }
  abi::Result Start(void* context, void** event, const abi::DescriptorV3& what, void* parent, void* group,
                    std::uint64_t comm_id) override {
    return StartAny(context, event, what, parent, group, comm_id);
  }
  abi::Result Start(void* context, void** event, const abi::DescriptorV4& what, void* parent, void* group,
                    std::uint64_t comm_id) override {
    return StartAny(context, event, what, parent, group, comm_id);
  }
  abi::Result Start(void* context, void** event, const abi::DescriptorV5& what, void* parent, void* group,
                    std::uint64_t comm_id) override {
    return StartAny(context, event, what, parent, group, comm_id);
  }
  void Stop(void* event) override { static_cast<void>(table_->stop_event(event)); }
  void Record(void* event, std::uint32_t state, const void* arguments) override {
    if (state > LastState(kVersion)) return;
    if (arguments == nullptr) {
      static_cast<void>(table_->record_event_state(event, state, nullptr));
      return;
    }
    // v3 may look at 16 bytes, of which later versions have 8.
    std::array<std::uint64_t, 2> room{};
    std::memcpy(room.data(), arguments, sizeof room[0]);
    static_cast<void>(table_->record_event_state(event, state, room.data()));
  }
  void Finalize(void* context) override { static_cast<void>(table_->finalize(context)); }

 private:
  template <typename From>
  abi::Result StartAny(void* context, void** event, const From& what, void* parent, void* group,
                       std::uint64_t comm_id) {
    using To = typename Table::Event;
    if (what.type > LastType(kVersion)) return abi::Result::kSuccess;
    if constexpr (sizeof(what.type) > sizeof(To::type) || std::is_same_v<To, From> ||
                  (std::is_same_v<To, abi::DescriptorV3> && std::is_same_v<From, abi::DescriptorV4>)) {
      To told = Convert<To>(what, comm_id);
      told.parent = parent;
      if constexpr (requires { told.collective.parent_group; }) {
        if (what.type == abi::kEventCollective) told.collective.parent_group = group;
        if (what.type == abi::kEventP2p) told.p2p.parent_group = group;
      } else if (what.type == abi::kEventCollective || what.type == abi::kEventP2p) {
        told.parent = group;
      }
      return table_->start_event(context, event, &told);
    }
    return abi::Result::kSuccess;  // An earlier version of NCCL's than ours: In() did not choose it.
  }

  Table* const table_;
};

template <typename Table, int kVersion>
std::unique_ptr<OtherProfiler> Wrap(void* symbol) {
  return std::make_unique<OtherOf<Table, kVersion>>(static_cast<Table*>(symbol));
}

using Wrapper = std::unique_ptr<OtherProfiler> (*)(void* symbol);
constexpr std::array<Wrapper, kNewest - kOldest + 1> kWrappers = {Wrap<abi::ProfilerV3, 3>, Wrap<abi::ProfilerV4, 4>,
                                                                  Wrap<abi::ProfilerV5, 5>, Wrap<abi::ProfilerV6, 6>};

}  // namespace

Result<std::unique_ptr<OtherProfiler>> OtherProfiler::In(void* library, int given) {
  // v6 has the events of v5 and some more, in the same places.
  const int most = given >= 5 ? kNewest : given;
  std::string there;
  for (int candidate = kNewest; candidate >= kOldest; --candidate) {
    void* symbol = dlsym(library, fmt::format("ncclProfiler_v{}", candidate).c_str());
    if (symbol == nullptr) continue;
    if (candidate <= most) return kWrappers[static_cast<std::size_t>(candidate - kOldest)](symbol);
    there += fmt::format("{}v{}", there.empty() ? "" : ", ", candidate);
  }
  return Error(StatusCode::kNotFound, fmt::format("wanted one of ncclProfiler_v{} to _v{}, there is {}", kOldest, most,
                                                  there.empty() ? "none" : there));
}

}  // namespace weir::nccl
