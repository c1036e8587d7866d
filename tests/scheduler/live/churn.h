#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "coflow/check.h"
#include "scheduler/live/scheduler.h"

namespace weir::scheduler {

/// A big switch full of coflows, and random events that leave their number where it is. What an event needs is prepared
/// apart, so that a test can look at the scheduler's part alone. The seed decides everything.
class Churn {
 public:
  Churn(std::uint32_t hosts, std::uint32_t coflows, LiveRates rates, std::uint64_t seed)
      : hosts_(hosts), coflows_(coflows), random_(seed) {
    const std::vector<WholeRate> capacity(2 * hosts, 12'500'000'000);
    live_ = LiveScheduler::Make(capacity, {.rates = rates, .limits = {.coflows = 2 * coflows, .flows = 24 * coflows}})
                .value();
    while (live_->fabric().coflow_count < coflows_) {
      Prepare();
      WEIR_CHECK(live_->AddCoflow(coflow_).has_value());
    }
    live_->Update();
  }

  LiveScheduler& live() { return *live_; }

  /// Draws the coflow that may arrive.
  void Prepare() {
    paths_.clear();
    flows_.clear();
    const std::size_t width = random_() % 8 == 0 ? 40 + random_() % 41 : 1 + random_() % 4;
    for (std::size_t i = 0; i < width; ++i) {
      paths_.push_back(static_cast<LinkIndex>(random_() % hosts_));
      paths_.push_back(static_cast<LinkIndex>(hosts_ + random_() % hosts_));
    }
    for (std::size_t i = 0; i < width; ++i) {
      flows_.push_back({1 + static_cast<std::int64_t>(random_() % 1'000'000'000), std::span(paths_).subspan(2 * i, 2)});
    }
    const std::uint64_t id = ++next_id_;
    coflow_ = {CoflowId(id), static_cast<Nanoseconds>(id), 0, flows_};
  }

  /// One event and its Update.
  void Apply() {
    const LiveFabric& fabric = live_->fabric();
    const CoflowSlot slot = live_->order()[random_() % live_->order().size()];
    const auto link = static_cast<LinkIndex>(random_() % fabric.links());
    Status status;
    switch (random_() % 6) {
      case 0:
        status = live_->RemoveCoflow(slot);
        break;
      case 1:
        if (!fabric.Flows(slot).empty()) status = live_->EndFlow(fabric.Flows(slot).front());
        break;
      case 2:
        status = live_->SetCapacity(link, static_cast<WholeRate>(random_() % 12'500'000'001));
        break;
      case 3:
        if (!fabric.Flows(slot).empty()) {
          status =
              live_->SetRemaining(fabric.Flows(slot).front(), static_cast<std::int64_t>(random_() % 1'000'000'000));
        }
        break;
      case 4:
        live_->Advance(kMillisecond);
        break;
      default:
        break;
    }
    WEIR_CHECK(status.ok());
    if (fabric.coflow_count < coflows_) {
      WEIR_CHECK(live_->AddCoflow(coflow_).has_value());
    }
    live_->Update();
  }

 private:
  std::uint32_t hosts_;
  std::uint32_t coflows_;
  std::mt19937_64 random_;
  std::unique_ptr<LiveScheduler> live_;
  std::uint64_t next_id_ = 0;
  std::vector<LinkIndex> paths_;
  std::vector<LiveFlow> flows_;
  LiveCoflow coflow_;
};

}  // namespace weir::scheduler
