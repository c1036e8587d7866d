#pragma once

#include <algorithm>
#include <random>
#include <vector>

#include "coflow/check.h"
#include "scheduler/live/scheduler.h"

namespace weir::scheduler {

/// A big switch full of coflows, or with `leaf` hosts below each leaf and leaves joined by half of what those can send,
/// and random events that leave their number where it is. What an event needs is prepared apart, so that a test can
/// look at the scheduler's part alone. The seed decides everything.
class Churn {
 public:
  Churn(std::uint32_t hosts, std::uint32_t coflows, LiveRates rates, std::uint64_t seed, std::uint32_t leaf = 0)
      : hosts_(hosts), coflows_(coflows), leaf_(leaf), random_(seed) {
    std::vector<WholeRate> capacity(2 * hosts, kPort);
    if (leaf > 0) {
      capacity.resize(2 * hosts + 2 * (hosts / leaf), kPort * leaf / 2);
    }
    const LiveLimits limits{.coflows = 2 * coflows, .flows = 24 * coflows, .hops = leaf > 0 ? 4u : 2u};
    live_ = LiveScheduler::Make(capacity, {.rates = rates, .limits = limits}).value();
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
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < width; ++i) {
      begins.push_back(paths_.size());
      AppendPath(static_cast<LinkIndex>(random_() % hosts_), static_cast<LinkIndex>(random_() % hosts_));
    }
    begins.push_back(paths_.size());
    for (std::size_t i = 0; i < width; ++i) {
      const auto path = std::span(paths_).subspan(begins[i], begins[i + 1] - begins[i]);
      flows_.push_back({1 + static_cast<std::int64_t>(random_() % 1'000'000'000), path});
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
  static constexpr WholeRate kPort = 12'500'000'000;

  void AppendPath(LinkIndex from, LinkIndex to) {
    paths_.push_back(from);
    if (leaf_ > 0 && from / leaf_ != to / leaf_) {
      paths_.push_back(2 * hosts_ + from / leaf_);
      paths_.push_back(2 * hosts_ + hosts_ / leaf_ + to / leaf_);
    }
    paths_.push_back(hosts_ + to);
  }

  std::uint32_t hosts_;
  std::uint32_t coflows_;
  std::uint32_t leaf_;
  std::mt19937_64 random_;
  std::unique_ptr<LiveScheduler> live_;
  std::uint64_t next_id_ = 0;
  std::vector<LinkIndex> paths_;
  std::vector<LiveFlow> flows_;
  LiveCoflow coflow_;
};

}  // namespace weir::scheduler
