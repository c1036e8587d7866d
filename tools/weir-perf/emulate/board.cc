#include "tools/weir-perf/emulate/board.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "transport/clock.h"

namespace weir::tools::emulate {

Result<std::unique_ptr<Board>> Board::Make(int ranks, int channels) {
  const auto cells = static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks * channels);
  const std::size_t size = sizeof(Shared) + cells * sizeof(HandleCell);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("{} bytes of shared memory: {}", size, std::strerror(errno)));
  }
  return std::unique_ptr<Board>(new Board(ranks, channels, memory, size));
}

// The memory is zero, and so are its atomics.
Board::Board(int ranks, int channels, void* memory, std::size_t size)
    : ranks_(ranks),
      channels_(channels),
      memory_(memory),
      size_(size),
      shared_(static_cast<Shared*>(memory)),
      cells_(reinterpret_cast<HandleCell*>(static_cast<char*>(memory) + sizeof(Shared))) {}

Board::~Board() {
  munmap(memory_, size_);
}

HandleCell& Board::cell(int from, int to, int channel) {
  return cells_[(from * ranks_ + to) * channels_ + channel];
}

Status Board::Meet(Nanoseconds within) {
  const auto ranks = static_cast<std::uint32_t>(ranks_);
  const std::uint32_t own = shared_->arrived.fetch_add(1);
  const std::uint32_t all = (own / ranks + 1) * ranks;
  const Nanoseconds deadline = transport::SteadyClock().Now() + within;
  while (shared_->arrived.load() < all) {
    if (shared_->stopped.load() != 0) return Status(StatusCode::kUnavailable, "another rank stopped");
    if (transport::SteadyClock().Now() > deadline) {
      return Status(StatusCode::kUnavailable, fmt::format("not all ranks came within {:.0f} s", ToSeconds(within)));
    }
    usleep(100);
  }
  return Status::Ok();
}

/// Who decides does so before it arrives, and nobody leaves before all have arrived; a later decision is of a later
/// round.
Result<bool> Board::MeetOrEnd(std::uint64_t round, Nanoseconds within) {
  std::uint64_t none = 0;
  if (shared_->asked_to_end.load() != 0) shared_->first_not_begun.compare_exchange_strong(none, round);
  if (Status status = Meet(within); !status.ok()) return tl::unexpected(status);
  const std::uint64_t end = shared_->first_not_begun.load();
  return end != 0 && round >= end;
}

}  // namespace weir::tools::emulate
