#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "scheduler/live/scheduler.h"

namespace weir::scheduler {

/// The same fabric in the plainest form: maps and vectors, everything computed from scratch and straight from the
/// definition. What the scheduler's tables say is compared with this.
struct Model {
  struct Flow {
    FlowIndex index = 0;
    std::int64_t bytes = 0;
    std::vector<LinkIndex> path;
    std::int64_t moved_part = 0;  ///< 1e-9 bytes beyond the last whole one.
  };
  struct Coflow {
    CoflowSlot slot = 0;
    Nanoseconds arrival = 0;
    double key = 0;
    std::vector<Flow> flows;
  };

  std::vector<WholeRate> capacity;
  std::map<std::uint64_t, Coflow> coflows;  ///< By id.
  LiveKey key = LiveKey::kSebf;
  LiveRates rates = LiveRates::kMaxMin;

  double KeyOf(const Coflow& coflow) const;
  std::vector<std::uint64_t> Order() const;  ///< Ids.
  /// Rates of all flows, by index.
  std::map<FlowIndex, WholeRate> Allocate() const;
};

/// Empty if order and rates of the scheduler are the model's, feasible and leave nothing that a flow could use; else
/// what is wrong.
std::string Compare(const Model& model, const LiveScheduler& scheduler);

/// A scheduler and its model under random events; the seed decides everything: links, lengths of paths, policy, sizes.
class RandomRun {
 public:
  explicit RandomRun(std::uint64_t seed);

  /// Announces one to four random events, updates, and compares.
  std::string Step();
  LiveScheduler& scheduler() { return *scheduler_; }
  const Model& model() const { return model_; }

 private:
  std::uint64_t Below(std::uint64_t bound) { return random_() % bound; }
  WholeRate RandomCapacity();
  std::map<std::uint64_t, Model::Coflow>::iterator AnyCoflow();
  void Event();
  void Add();
  void Remove();
  void EndFlow();
  void ChangeCapacity();
  void ChangeRemaining();
  void ChangeKey();
  void Advance();

  std::mt19937_64 random_;
  Model model_;
  std::unique_ptr<LiveScheduler> scheduler_;
  std::uint64_t next_id_ = 1;
  std::uint64_t target_ = 0;  ///< Coflows to have in the mean.
  std::size_t longest_path_ = 1;
  std::size_t widest_ = 1;
  WholeRate largest_capacity_ = 1;
};

}  // namespace weir::scheduler
