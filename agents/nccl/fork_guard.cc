#include "agents/nccl/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace weir::nccl {
namespace {

constexpr std::size_t kWordBits = 64;

// One bit a descriptor: a child may neither lock nor allocate.
constinit std::array<std::atomic<std::uint64_t>, kMaxDescriptor / kWordBits> ours{};
constinit std::atomic<std::size_t> words_used{0};
constinit std::atomic<bool> child{false};
constinit std::atomic<bool> watching{false};

void AfterForkInChild() {
  child.store(true);
  for (std::size_t word = 0; word < words_used.load(); ++word) {
    const std::uint64_t bits = ours[word].exchange(0);
    for (std::size_t bit = 0; bit < kWordBits; ++bit) {
      if ((bits >> bit & 1u) != 0) close(static_cast<int>(word * kWordBits + bit));
    }
  }
}

bool Covered(int fd) {
  return fd >= 0 && fd < kMaxDescriptor;
}

}  // namespace

void CloseInChildren(std::span<const int> fds) noexcept {
  for (const int fd : fds) {
    if (!Covered(fd)) continue;
    const std::size_t word = static_cast<std::size_t>(fd) / kWordBits;
    std::size_t used = words_used.load();
    while (used <= word && !words_used.compare_exchange_weak(used, word + 1)) {
    }
    ours[word].fetch_or(std::uint64_t{1} << static_cast<std::size_t>(fd) % kWordBits);
  }
}

void ForgetInChildren(std::span<const int> fds) noexcept {
  for (const int fd : fds) {
    if (!Covered(fd)) continue;
    ours[static_cast<std::size_t>(fd) / kWordBits].fetch_and(
        ~(std::uint64_t{1} << static_cast<std::size_t>(fd) % kWordBits));
  }
}

bool IsForkedChild() noexcept {
  return child.load(std::memory_order_relaxed);
}

void WatchForks() noexcept {
  if (!watching.exchange(true)) pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

}  // namespace weir::nccl
