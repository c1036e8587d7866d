#include "agents/nccl/profiler_chain.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "agents/nccl/log.h"

namespace weir::nccl {
namespace {

// As EventBook's handles, with kinds of their own.
enum Kind : std::uint64_t { kLastingKind = 5, kOpenKind = 6 };
constexpr std::uint64_t kKindBits = 3;
constexpr std::uint64_t kIndexBits = 14;
constexpr std::uint64_t kTries = 64;
static_assert(std::uint64_t{1} << kIndexBits == ChainBook::kLasting && ChainBook::kLasting == ChainBook::kOpen);

std::uint64_t Bits(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

std::uint64_t KindOf(const void* handle) {
  return Bits(handle) & ((1u << kKindBits) - 1);
}

std::size_t IndexOf(const void* handle) {
  return Bits(handle) >> kKindBits & (ChainBook::kOpen - 1);
}

std::uint64_t GenerationOf(const void* handle) {
  return Bits(handle) >> (kKindBits + kIndexBits);
}

void* Handle(Kind kind, std::uint64_t generation, std::uint64_t index) {
  return reinterpret_cast<void*>(generation << (kKindBits + kIndexBits) | index << kKindBits | kind);
}

/// These have no children after their end.
bool IsOpenOnly(std::uint64_t type) {
  return type == abi::kEventProxyOp || type == abi::kEventProxyStep || type == abi::kEventProxyControl ||
         type == abi::kEventKernelChannel;
}

/// The group of a collective or of a send, where the event says it; else what it is a child of.
template <typename Descriptor>
void* GroupOf(const Descriptor& what) {
  if constexpr (requires { what.collective.parent_group; }) {
    if (what.type == abi::kEventCollective) return what.collective.parent_group;
    if (what.type == abi::kEventP2p) return what.p2p.parent_group;
  }
  return what.parent;
}

}  // namespace

ChainBook::ChainBook()
    : lasting_(std::make_unique<std::array<Record, kLasting>>()),
      open_(std::make_unique<std::array<Record, kOpen>>()) {}

/// In this order: whoever sees a new field also sees that the old generation is gone.
void ChainBook::Write(Record* record, const ChainedEvent& event, std::uint64_t generation) {
  record->own.store(event.own, std::memory_order_release);
  record->theirs.store(event.theirs, std::memory_order_release);
  record->context.store(event.context, std::memory_order_release);
  record->generation.store(generation, std::memory_order_release);
}

void* ChainBook::Keep(bool lasting, const ChainedEvent& event) {
  const std::uint64_t generation = next_.fetch_add(1);
  if (lasting) {
    const std::uint64_t index = generation % kLasting;
    (*lasting_)[index].generation.store(0);
    Write(&(*lasting_)[index], event, generation);
    return Handle(kLastingKind, generation, index);
  }
  constexpr std::uint64_t kClaimed = UINT64_MAX;
  for (std::uint64_t tried = 0; tried < kTries; ++tried) {
    const std::uint64_t index = (generation + tried) % kOpen;
    std::uint64_t free = 0;
    if (!(*open_)[index].generation.compare_exchange_strong(free, kClaimed)) continue;
    Write(&(*open_)[index], event, generation);
    return Handle(kOpenKind, generation, index);
  }
  return nullptr;
}

bool ChainBook::IsChained(const void* handle) {
  return KindOf(handle) == kLastingKind || KindOf(handle) == kOpenKind;
}

const ChainBook::Record* ChainBook::RecordOf(const void* handle) const {
  if (!IsChained(handle) || GenerationOf(handle) == 0) return nullptr;
  return KindOf(handle) == kLastingKind ? &(*lasting_)[IndexOf(handle)] : &(*open_)[IndexOf(handle)];
}

bool ChainBook::Find(const void* handle, ChainedEvent* out) const {
  const Record* record = RecordOf(handle);
  if (record == nullptr || record->generation.load() != GenerationOf(handle)) return false;
  *out = {record->own.load(), record->theirs.load(), record->context.load()};
  return record->generation.load() == GenerationOf(handle);
}

void ChainBook::Release(const void* handle) {
  if (KindOf(handle) != kOpenKind) return;
  std::uint64_t generation = GenerationOf(handle);
  (*open_)[IndexOf(handle)].generation.compare_exchange_strong(generation, 0);
}

std::array<std::string, 2> OtherProfilerNames(const std::string& value) {
  const bool is_file = value.starts_with("lib") && value.ends_with(".so");
  if (value.find('/') != std::string::npos || is_file) return {value, ""};
  return {value, fmt::format("libnccl-profiler-{}.so", value)};
}

std::uint64_t WithParents(std::uint64_t mask) {
  constexpr std::uint64_t kCalls = abi::kEventCollective | abi::kEventP2p;
  if ((mask & (abi::kEventCopySync | abi::kEventCopyBatch)) != 0) mask |= abi::kEventCopyCollective;
  if ((mask & abi::kEventNetPlugin) != 0) mask |= abi::kEventProxyStep;
  if ((mask & abi::kEventProxyStep) != 0) mask |= abi::kEventProxyOp;
  if ((mask & (abi::kEventProxyOp | abi::kEventKernelChannel)) != 0) mask |= kCalls;
  if ((mask & kCalls) != 0) mask |= abi::kEventGroup;
  if ((mask & (kCalls | abi::kEventCopyCollective)) != 0) mask |= abi::kEventCollectiveApi | abi::kEventP2pApi;
  constexpr std::uint64_t kInGroups =
      abi::kEventGroup | abi::kEventCollectiveApi | abi::kEventP2pApi | abi::kEventKernelLaunch;
  return (mask & kInGroups) != 0 ? mask | abi::kEventGroupApi : mask;
}

ProfilerChain& ProfilerChain::Instance() {
  static ProfilerChain* const chain = new ProfilerChain;  // Never destroyed: see the class.
  return *chain;
}

void ProfilerChain::Load(int given, const void* own) {
  const char* value = std::getenv("WEIR_NCCL_PROFILER");
  if (value == nullptr || *value == '\0') return;
  std::string refusals;
  for (const std::string& name : OtherProfilerNames(value)) {
    if (name.empty()) continue;
    void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == nullptr) {
      refusals += (refusals.empty() ? "" : "; ") + std::string(dlerror());
      continue;
    }
    if (dlsym(library, "ncclProfiler_v6") == own) {
      return Warn(fmt::format("WEIR_NCCL_PROFILER={}: this is our own library; name the other profiler", value));
    }
    auto other = OtherProfiler::In(library, given);
    if (!other) return Warn(fmt::format("WEIR_NCCL_PROFILER={}: {}", value, other.error().message()));
    Inform(fmt::format("the profiler {} ({}, v{}) is told what NCCL tells us", (*other)->name(), name,
                       (*other)->version()));
    other_.store(other->release(), std::memory_order_release);
    return;
  }
  Warn(fmt::format("WEIR_NCCL_PROFILER={}: {}; name a file, or a profiler in the library path", value, refusals));
}

void ProfilerChain::Begin(const void* comm, int given, const void* own, int* mask, const ProfiledFacts& facts) {
  const std::lock_guard lock(mutex_);
  if (!loaded_) {
    loaded_ = true;
    Load(given, own);
  }
  OtherProfiler* const other = other_.load();
  if (other == nullptr) return;
  Comm told{nullptr, facts.comm_id};
  const abi::Result result = other->Init(&told.context, &their_mask_, facts);
  if (result != abi::Result::kSuccess) {
    return Warn(fmt::format("the profiler {} refuses communicator {:#x} with {}; it is told nothing of it",
                            other->name(), facts.comm_id, static_cast<std::uint32_t>(result)));
  }
  comms_[comm] = told;
  nccl_mask_.store(mask);
  *mask |= std::atomic_ref(their_mask_).load();
}

void ProfilerChain::End(const void* comm) {
  Comm ended;
  {
    const std::lock_guard lock(mutex_);
    const auto found = comms_.find(comm);
    if (found == comms_.end()) return;
    ended = found->second;
    comms_.erase(found);
  }
  other_.load()->Finalize(ended.context);
}

bool ProfilerChain::Wants(std::uint64_t type) {
  const int theirs = std::atomic_ref(their_mask_).load(std::memory_order_relaxed);
  if (int* const mask = nccl_mask_.load(std::memory_order_relaxed)) {
    const std::atomic_ref shared(*mask);
    const int now = shared.load(std::memory_order_relaxed);
    const int both = static_cast<int>(abi::kEventNetPlugin) | theirs;
    if (now != both) shared.store(both, std::memory_order_relaxed);
  }
  return (WithParents(static_cast<std::uint64_t>(theirs)) & type) != 0;
}

bool ProfilerChain::FindComm(const void* comm, Comm* out) {
  const std::lock_guard lock(mutex_);
  const auto found = comms_.find(comm);
  if (found == comms_.end()) return false;
  *out = found->second;
  return true;
}

template <typename Descriptor>
void* ProfilerChain::Start(const void* comm, const Descriptor& what, void* own) {
  const std::uint64_t type = what.type;
  if (type == abi::kEventNetPlugin || !Wants(type)) return own;
  ChainedEvent parent;
  const bool parent_known = book_.Find(what.parent, &parent);
  Comm told;
  if (type == abi::kEventProxyStep || type == abi::kEventKernelChannel) {
    // NCCL's context may be another process's there. That of its parent is ours.
    if (!parent_known) return own;
    told.context = parent.context;
  } else if ((type == abi::kEventProxyOp && what.proxy_op.pid != getpid()) || !FindComm(comm, &told)) {
    return own;
  }
  ChainedEvent group;
  static_cast<void>(book_.Find(GroupOf(what), &group));
  ChainedEvent event{own, nullptr, told.context};
  OtherProfiler* const other = other_.load(std::memory_order_acquire);
  const abi::Result result = other->Start(told.context, &event.theirs, what, parent.theirs, group.theirs, told.comm_id);
  if (result != abi::Result::kSuccess || event.theirs == nullptr) return own;
  void* const handle = book_.Keep(!IsOpenOnly(type), event);
  if (handle == nullptr) other->Stop(event.theirs);
  return handle == nullptr ? own : handle;
}

template void* ProfilerChain::Start(const void*, const abi::DescriptorV3&, void*);
template void* ProfilerChain::Start(const void*, const abi::DescriptorV4&, void*);
template void* ProfilerChain::Start(const void*, const abi::DescriptorV5&, void*);

void* ProfilerChain::Own(void* handle) const {
  if (!ChainBook::IsChained(handle)) return handle;
  ChainedEvent event;
  return book_.Find(handle, &event) ? event.own : nullptr;
}

void ProfilerChain::Stop(void* handle) {
  ChainedEvent event;
  if (!book_.Find(handle, &event)) return;
  book_.Release(handle);
  other_.load(std::memory_order_acquire)->Stop(event.theirs);
}

void ProfilerChain::Record(void* handle, std::uint32_t state, const void* arguments) {
  ChainedEvent event;
  if (book_.Find(handle, &event)) other_.load(std::memory_order_acquire)->Record(event.theirs, state, arguments);
}

}  // namespace weir::nccl
