#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "coflow/status.h"
#include "scheduler/sim/observer.h"

namespace weir::tools {

/// Looks after the program while it works: draws a progress bar on the standard error, and on SIGINT or SIGTERM says
/// so, removes the file that is being written and exits with 128 plus the signal. One per process, made by main()
/// before any other thread, because it blocks these signals.
///
/// Has a thread of its own, which touches nothing of the simulation but two counters.
class Attendant {
 public:
  Attendant();
  ~Attendant();
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  /// `mode`: auto (on a terminal), on or off. InvalidArgument for anything else.
  Status ShowProgress(const std::string& mode);

  // ---- AnyThread ----
  /// From now on `coflows` are to be done, named `what`; replaces what was there before.
  void Begin(const std::string& what, std::uint64_t coflows);
  void CountDone() { done_.fetch_add(1, std::memory_order_relaxed); }
  /// Takes the bar off the terminal, for other output.
  void Clear();

 private:
  void Loop();
  void Draw();
  void Erase();
  [[noreturn]] void Stop(int signal);

  sigset_t signals_{};
  std::atomic<bool> stop_{false}, shown_{false};
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::string what_;           // guarded by mutex_, as are the next ones
  std::uint64_t coflows_ = 0;  // 0: nothing to show
  std::int64_t begin_ns_ = 0;  // steady clock
  bool drawn_ = false;
  std::thread thread_;
};

/// Tells the attendant when a coflow is done, and everything to `inner`, which may be null.
class Attended final : public scheduler::SimObserver {
 public:
  Attended(Attendant* attendant, scheduler::SimObserver* inner) : attendant_(attendant), inner_(inner) {}

  bool sees_links() const override { return inner_ != nullptr && inner_->sees_links(); }
  void OnStart(std::size_t coflow, std::int64_t now) override {
    if (inner_ != nullptr) {
      inner_->OnStart(coflow, now);
    }
  }
  void OnEnd(std::size_t coflow, std::int64_t now) override {
    attendant_->CountDone();
    if (inner_ != nullptr) {
      inner_->OnEnd(coflow, now);
    }
  }
  void OnInterval(std::int64_t begin, std::int64_t end, std::span<const scheduler::LinkUse> uses) override {
    inner_->OnInterval(begin, end, uses);
  }
  void OnCapacity(std::uint32_t link, double capacity) override { inner_->OnCapacity(link, capacity); }

 private:
  Attendant* attendant_;
  scheduler::SimObserver* inner_;
};

}  // namespace weir::tools
