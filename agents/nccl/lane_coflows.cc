#include "agents/nccl/lane_coflows.h"

namespace weir::nccl {

bool LaneCoflows::Begin(const CoflowKey& key, Bytes* expected) noexcept {
  const std::uint64_t hash = HashOf(key) | 1;
  Coflow& coflow = At(hash);
  if (coflow.hash.load(std::memory_order_relaxed) == hash || coflow.hash.exchange(hash) == hash) return false;
  coflow.bytes.store(0, std::memory_order_relaxed);
  const std::uint64_t kind_hash = HashOf({*expected, 0, 0, key.function, Attribution::kProfiler}) | 1;
  Kind& kind = kinds_[kind_hash / 2 % kKinds];
  if (kind.hash.exchange(kind_hash, std::memory_order_relaxed) != kind_hash) kind.last.store(0);
  const std::uint64_t last = kind.last.exchange(hash, std::memory_order_relaxed);
  const std::uint64_t before = kind.before.exchange(last, std::memory_order_relaxed);
  const Coflow& seen = At(before);
  const Bytes bytes = seen.bytes.load(std::memory_order_relaxed);
  if (last != 0 && before != 0 && seen.hash.load(std::memory_order_relaxed) == before && bytes > 0) *expected = bytes;
  return true;
}

void LaneCoflows::Add(const CoflowKey& key, Bytes bytes) noexcept {
  const std::uint64_t hash = HashOf(key) | 1;
  Coflow& coflow = At(hash);
  if (coflow.hash.load(std::memory_order_relaxed) == hash) coflow.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace weir::nccl
