#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "agents/client/segment.h"
#include "coflow/status.h"
#include "coflow/units.h"

namespace weir::agents {

/// The page that all processes of the host ring, and the one thread that waits on it. The thread does nothing but wait
/// and call `on_ring`: a futex cannot be waited for in an event loop.
///
/// Owned by AgentShell. `on_ring` runs on the waiting thread and must only hand over to the loop. Between rings the
/// thread calls it too every kLookEvery if `Look(true)` was set: a hostile process can swallow a ring by writing into
/// the page, which then costs kLookEvery instead of a turn.
class DoorbellWaiter {
 public:
  static constexpr Nanoseconds kLookEvery = 20 * kMillisecond;
  static constexpr Nanoseconds kIdleEvery = 100 * kMillisecond;  ///< After which Look(true) is heeded at the latest.

  static Result<std::unique_ptr<DoorbellWaiter>> Start(std::function<void()> on_ring);
  DoorbellWaiter(const DoorbellWaiter&) = delete;
  DoorbellWaiter& operator=(const DoorbellWaiter&) = delete;
  ~DoorbellWaiter();

  /// Handed to every process that attaches; stays ours.
  int memfd() const { return memfd_; }
  /// AnyThread.
  void Look(bool also_between_rings) { look_.store(also_between_rings, std::memory_order_relaxed); }
  std::uint64_t rings() const { return rings_.load(std::memory_order_relaxed); }

 private:
  DoorbellWaiter(int memfd, client::Doorbell* page, std::function<void()> on_ring);
  void Run();

  const int memfd_;
  client::Doorbell* const page_;
  const std::function<void()> on_ring_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> look_{false};
  std::atomic<std::uint64_t> rings_{0};
  std::thread thread_;  // Last: it uses all of the above.
};

}  // namespace weir::agents
