#include "tools/weir-perf/emulate/feed.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace weir::tools::emulate {
namespace {

constexpr int kOldest = 3;
constexpr int kNewest = 6;
constexpr const char* kDatatype = "ncclUint32";

std::atomic<Feed*> the_feed{nullptr};

template <typename Table, int kVersion>
class FeedOf final : public Feed {
 public:
  explicit FeedOf(Table* table) : table_(table) {}

  int version() const override { return kVersion; }

  abi::Result Init(std::uint64_t comm_id, int ranks, int rank) override {
    comm_id_ = comm_id;
    rank_ = rank;
    mask_ = 0;
    if constexpr (kVersion == 3) return table_->init(&context_, &mask_);
    if constexpr (kVersion == 4)
      return table_->init(&context_, &mask_, "emulated", comm_id, ranks, ranks, rank, nullptr);
    if constexpr (kVersion > 4)
      return table_->init(&context_, comm_id, &mask_, "emulated", ranks, ranks, rank, nullptr);
  }
  abi::Result Finalize() override { return table_->finalize(context_); }

  void* StartGroup() override {
    if constexpr (kVersion > 4) {
      Event event = New(abi::kEventGroupApi, nullptr);
      event.group_api.depth = 1;
      Stop(Start(&event));
    }
    Event event = New(abi::kEventGroup, nullptr);
    return Start(&event);
  }

  void* StartCollective(const Collective& what, void* group) override {
    Event event = New(abi::kEventCollective, group);
    auto& told = event.collective;
    if constexpr (kVersion == 3) told.comm_id = comm_id_;
    if constexpr (kVersion > 4) told.parent_group = group;
    if constexpr (kVersion == 3) told.channels_max = static_cast<std::uint8_t>(what.channels);
    if constexpr (kVersion > 3) told.channels = static_cast<std::uint8_t>(what.channels);
    told.sequence = what.sequence;
    told.function = what.function;
    told.count = what.count;
    told.datatype = kDatatype;
    told.algorithm = what.algorithm;
    told.protocol = "SIMPLE";
    return Start(&event);
  }

  void* StartP2p(const char* function, std::size_t count, int peer, void* group) override {
    Event event = New(abi::kEventP2p, group);
    if constexpr (kVersion == 3) event.p2p.comm_id = comm_id_;
    if constexpr (kVersion > 4) event.p2p.parent_group = group;
    event.p2p.function = function;
    event.p2p.count = count;
    event.p2p.datatype = kDatatype;
    event.p2p.peer = peer;
    return Start(&event);
  }

  void* StartOp(void* parent, int channel, int peer, std::uint64_t steps, std::size_t chunk, bool is_send) override {
    Event event = New(abi::kEventProxyOp, parent);
    event.proxy_op.pid = getpid();
    event.proxy_op.channel = static_cast<std::uint8_t>(channel);
    event.proxy_op.peer = peer;
    event.proxy_op.steps = static_cast<int>(steps);
    event.proxy_op.chunk_bytes = static_cast<int>(chunk);
    event.proxy_op.is_send = is_send ? 1 : 0;
    return Start(&event);
  }

  void* StartStep(void* op, std::uint64_t step) override {
    Event event = New(abi::kEventProxyStep, op);
    event.proxy_step.step = static_cast<int>(step);
    return Start(&event);
  }

  void Record(void* event, std::uint32_t state) override {
    if (event != nullptr) table_->record_event_state(event, state, nullptr);
  }
  void Stop(void* event) override {
    if (event != nullptr) table_->stop_event(event);
  }

 protected:
  abi::Result StartNetEvent(void** event, const Transfer& transfer, std::int64_t id, void* extra) override {
    if ((static_cast<std::uint64_t>(mask_) & abi::kEventNetPlugin) == 0) return abi::Result::kSuccess;
    Event what = New(abi::kEventNetPlugin, transfer.step);
    what.net_plugin.id = id;
    what.net_plugin.data = extra;
    return table_->start_event(context_, event, &what);
  }

 private:
  using Event = typename Table::Event;

  Event New(std::uint64_t type, void* parent) const {
    Event event{};
    event.type = static_cast<decltype(event.type)>(type);
    event.parent = parent;
    event.rank = rank_;
    return event;
  }
  /// What is above the events that the plugin asked for is made too.
  void* Start(Event* event) {
    void* handle = nullptr;
    if (mask_ != 0) table_->start_event(context_, &handle, event);
    return handle;
  }

  Table* const table_;
  void* context_ = nullptr;
  int mask_ = 0;
  std::uint64_t comm_id_ = 0;
  int rank_ = 0;
};

template <typename Table, int kVersion>
std::unique_ptr<Feed> Wrap(void* symbol) {
  return std::make_unique<FeedOf<Table, kVersion>>(static_cast<Table*>(symbol));
}

using Wrapper = std::unique_ptr<Feed> (*)(void* symbol);
constexpr std::array<Wrapper, kNewest - kOldest + 1> kWrappers = {Wrap<abi::ProfilerV3, 3>, Wrap<abi::ProfilerV4, 4>,
                                                                  Wrap<abi::ProfilerV5, 5>, Wrap<abi::ProfilerV6, 6>};

}  // namespace

Feed::Feed() {
  the_feed.store(this);
}

Feed::~Feed() {
  the_feed.store(nullptr);
}

Result<std::unique_ptr<Feed>> Feed::Open(void* library, int version) {
  for (int candidate = kNewest; candidate >= kOldest; --candidate) {
    if (version != 0 && version != candidate) continue;
    void* symbol = dlsym(library, fmt::format("ncclProfiler_v{}", candidate).c_str());
    if (symbol != nullptr) return kWrappers[static_cast<std::size_t>(candidate - kOldest)](symbol);
  }
  return Error(StatusCode::kNotFound, version == 0 ? "the plugin has no profiler of NCCL's, v3 to v6"
                                                   : fmt::format("the plugin has no ncclProfiler_v{}", version));
}

abi::Result Feed::Callback(void** event, abi::EventCall what, void* phandle, std::int64_t id, void* extra) {
  Feed* feed = the_feed.load();
  if (feed == nullptr || what != abi::EventCall::kStart) return abi::Result::kSuccess;
  return feed->StartNetEvent(event, *static_cast<Transfer*>(phandle), id, extra);
}

}  // namespace weir::tools::emulate
