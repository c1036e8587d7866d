#include "agents/nccl/event_book.h"

#include <unistd.h>

#include <random>

namespace weir::nccl {
namespace {

// A handle: what it is, the index of its record, and which use of the record it means.
enum Kind : std::uint64_t { kGroup = 1, kCollective = 2, kOp = 3, kStep = 4 };
constexpr std::uint64_t kKindBits = 3;
constexpr std::uint64_t kIndexBits = 14;
static_assert(std::uint64_t{1} << kIndexBits == EventBook::kCollectives && EventBook::kCollectives == EventBook::kOps);

void* Handle(Kind kind, std::uint64_t generation, std::uint64_t index) {
  return reinterpret_cast<void*>(generation << (kKindBits + kIndexBits) | index << kKindBits | kind);
}

std::uint64_t Bits(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

bool Is(const void* handle, Kind kind) {
  return (Bits(handle) & ((1u << kKindBits) - 1)) == kind;
}

std::size_t IndexOf(const void* handle) {
  return Bits(handle) >> kKindBits & (EventBook::kOps - 1);
}

std::uint64_t GenerationOf(const void* handle) {
  return Bits(handle) >> (kKindBits + kIndexBits);
}

}  // namespace

CoflowKey ProfiledComm::Collective(std::uint64_t comm_id, Function function, std::uint64_t sequence) {
  CoflowKey key{comm_id == 0 ? comm_id_ : comm_id, sequence, 0, function, Attribution::kProfiler};
  const std::lock_guard lock(mutex_);
  std::uint64_t& highest = highest_[static_cast<std::size_t>(function)];
  if (sequence >= highest) {
    highest = sequence + 1;
  } else {
    key.replay = ++repeats_[static_cast<std::size_t>(function)];
  }
  return key;
}

CoflowKey ProfiledComm::PointToPoint(std::uint64_t comm_id, const void* group) {
  const std::lock_guard lock(mutex_);
  if (group != last_group_ || groups_ == 0) ++groups_;
  last_group_ = group;
  return {comm_id == 0 ? comm_id_ : comm_id, groups_ - 1, 0, Function::kSendReceive, Attribution::kProfiler};
}

EventBook::EventBook(std::uint64_t first)
    : pid_(getpid()),
      next_(first),
      collectives_(std::make_unique<std::array<Collective, kCollectives>>()),
      ops_(std::make_unique<std::array<Op, kOps>>()) {}

void* EventBook::NewGroup() {
  return Handle(kGroup, next_.fetch_add(1), 0);
}

void* EventBook::NewCollective(const CoflowKey& key, Bytes expected) {
  const std::uint64_t generation = next_.fetch_add(1);
  const std::uint64_t index = generation % kCollectives;
  Collective& record = (*collectives_)[index];
  record.generation.store(0);
  // In this order: whoever sees a new field also sees that the old generation is gone.
  record.comm_id.store(key.comm_id, std::memory_order_release);
  record.sequence.store(key.sequence, std::memory_order_release);
  record.replay_and_function.store(std::uint64_t{key.replay} << 8 | static_cast<std::uint64_t>(key.function),
                                   std::memory_order_release);
  record.expected.store(expected, std::memory_order_release);
  record.generation.store(generation, std::memory_order_release);
  return Handle(kCollective, generation, index);
}

bool EventBook::ReadCollective(const void* handle, TransferIdentity* out) const {
  if (!Is(handle, kCollective) || GenerationOf(handle) == 0) return false;
  const Collective& record = (*collectives_)[IndexOf(handle)];
  if (record.generation.load() != GenerationOf(handle)) return false;
  out->key.comm_id = record.comm_id.load();
  out->key.sequence = record.sequence.load();
  const std::uint64_t packed = record.replay_and_function.load();
  out->key.replay = static_cast<std::uint32_t>(packed >> 8);
  out->key.function = static_cast<Function>(packed & 0xff);
  out->key.attribution = Attribution::kProfiler;
  out->expected = record.expected.load();
  return record.generation.load() == GenerationOf(handle);
}

void* EventBook::NewOp(const void* collective, pid_t pid, int rank, int peer, std::uint8_t channel) {
  TransferIdentity identity;
  // An operation that another process asked us for (PXN): what it calls its collective means nothing here.
  if (pid != pid_ || !ReadCollective(collective, &identity)) return nullptr;
  identity.known = true;
  identity.rank = rank;
  identity.peer = peer;
  identity.channel = channel;
  const std::uint64_t generation = next_.fetch_add(1);
  for (std::uint64_t tried = 0; tried < kTries; ++tried) {
    const std::uint64_t index = (generation + tried) % kOps;
    std::uint64_t expected = 0;
    if (!(*ops_)[index].generation.compare_exchange_strong(expected, generation)) continue;
    (*ops_)[index].identity = identity;
    return Handle(kOp, generation, index);
  }
  return nullptr;
}

const EventBook::Op* EventBook::FindOp(const void* handle) const {
  const Op& op = (*ops_)[IndexOf(handle)];
  const std::uint64_t generation = GenerationOf(handle);
  return generation != 0 && op.generation.load() == generation ? &op : nullptr;
}

bool EventBook::IsOp(const void* handle) const {
  return Is(handle, kOp) && FindOp(handle) != nullptr;
}

void EventBook::EndOp(const void* op) {
  if (IsOp(op)) (*ops_)[IndexOf(op)].generation.store(0);
}

void* EventBook::NewStep(const void* op) {
  return IsOp(op) ? Handle(kStep, GenerationOf(op), IndexOf(op)) : nullptr;
}

bool EventBook::Identify(const void* step, TransferIdentity* out) const {
  if (!Is(step, kStep)) return false;
  const Op* op = FindOp(step);
  if (op == nullptr) return false;
  *out = op->identity;
  return true;
}

EventBook& Events() {
  static EventBook* const book = new EventBook(1 + (std::uint64_t{std::random_device()()} << 14));
  return *book;
}

}  // namespace weir::nccl
