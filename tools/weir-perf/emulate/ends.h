#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "coflow/status.h"
#include "tools/weir-perf/emulate/board.h"
#include "tools/weir-perf/emulate/feed.h"
#include "tools/weir-perf/emulate/net.h"

/// Both ends of a connection as NCCL's proxy drives them: eight slots of memory that are filled and emptied by a kernel
/// and sent and received by the plugin. One thread at a time.
namespace weir::tools::emulate {

inline constexpr std::uint64_t kSlots = 8;

/// A call of the plugin that failed.
struct CallFailure {
  const char* call = nullptr;  ///< "isend"; null: none did.
  abi::Result code = abi::Result::kSuccess;
};

/// What both ends have. Step n of an operation is in slot n modulo kSlots.
struct End {
  int peer = 0;
  int channel = 0;
  void* comm = nullptr;
  void* memory = nullptr;
  std::size_t slot_bytes = 0;
  std::vector<std::byte> data;
  std::array<std::size_t, kSlots> sizes{};
  std::array<void*, kSlots> requests{};
  std::uint64_t total = 0;  ///< Steps of the operation under way.
  std::uint64_t group = 1;  ///< Steps that are received together.
  Feed* feed = nullptr;     ///< Null: nobody profiles.
  void* operation = nullptr;
  std::array<Feed::Transfer, kSlots> transfers{};

  /// Tells the feed that an operation begins, whose parent is the collective; and that it has ended.
  void BeginOperation(void* collective, bool is_send);
  void EndOperation();
  void BeginStep(std::uint64_t step, std::uint32_t state);
  void EndStep(std::uint64_t step);

  std::byte* Slot(std::uint64_t step) { return data.data() + step % kSlots * slot_bytes; }
  std::uint64_t GroupEnd(std::uint64_t step) const { return std::min((step / group + 1) * group, total); }
};

class SendEnd : public End {
 public:
  void Begin(std::uint64_t steps, std::uint64_t steps_together, void* collective);
  bool Finished() const { return done_ == total; }
  /// For the kernel: the slot to fill next, or null; then how much is in it.
  std::byte* Free() { return posted_ - done_ < kSlots ? Slot(posted_) : nullptr; }
  void Post(std::size_t bytes) { sizes[posted_++ % kSlots] = bytes; }
  /// One look by the proxy. True if something went on.
  bool Progress(Net* net, int rank, RankTale* tale, CallFailure* failure);

 private:
  std::uint64_t opened_ = 0;  ///< Slots that were handed to the kernel.
  std::uint64_t posted_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t done_ = 0;
  std::array<bool, kSlots> complete_{};
};

class ReceiveEnd : public End {
 public:
  bool flushes = false;  ///< What came is flushed before the kernel sees it, as for GPUs before Hopper.
  void Begin(std::uint64_t steps, std::uint64_t steps_together, void* collective);
  bool Finished() const { return consumed_ == total; }
  /// For the kernel: the slot that came next, or null; then that it was read.
  std::byte* Ready() { return consumed_ < done_ ? Slot(consumed_) : nullptr; }
  std::size_t ReadySize() const { return sizes[consumed_ % kSlots]; }
  void Consume() { ++consumed_; }
  bool Progress(Net* net, RankTale* tale, CallFailure* failure);

 private:
  bool PostGroup(Net* net, RankTale* tale, CallFailure* failure);
  bool BeginFlush(Net* net, std::uint64_t begin, RankTale* tale, CallFailure* failure);
  bool ShowToKernel(Net* net, CallFailure* failure);

  std::uint64_t begun_ = 0;  ///< Steps that the feed was told of.
  std::uint64_t posted_ = 0;
  std::uint64_t came_ = 0;
  std::uint64_t done_ = 0;  ///< Those that the kernel may see.
  std::uint64_t consumed_ = 0;
};

}  // namespace weir::tools::emulate
