// FAIR against its own definition: every flow in every step.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "scheduler/sim/coflowsim/coflow.h"
#include "scheduler/sim/coflowsim/model.h"

namespace weir::scheduler::coflowsim {
namespace {

constexpr std::uint32_t kPorts = 8;

/// As CoflowSim does it: shares by the flows that have something left, then each flow in order, each difference
/// rounded.
class SteppedFair final : public Model {
 public:
  void Start(const Coflow& coflow, std::int64_t /*now*/) override {
    for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
      receivers_.push_back({&coflow, coflow.bytes[r], coflow.senders.size()});
      for (const std::uint32_t from : coflow.senders) {
        flows_.push_back({receivers_.size() - 1, from, coflow.receivers[r],
                          coflow.bytes[r] / static_cast<double>(coflow.senders.size())});
      }
    }
  }
  void AfterAdmission(std::int64_t /*now*/) override { CountAllocation(); }
  void AfterDeparture(std::int64_t /*step_begin*/) override {}

  std::int64_t Advance(std::int64_t steps, std::vector<std::size_t>* ended) override {
    std::int64_t done = 0;
    while (done < steps && ended->empty()) {
      Step(ended);
      ++done;
    }
    return done;
  }

  /// Receivers that ended while flows of theirs had something left.
  std::size_t early() const { return early_; }

 private:
  struct Receiver {
    const Coflow* coflow;
    double left;
    std::size_t flows;
    bool ended = false;
  };
  struct Flow {
    std::size_t receiver;
    std::uint32_t from, to;
    double remaining;
  };

  void CountAllocation() {
    ++allocations_;
    flows_set_ += flows_.size();
  }

  void Step(std::vector<std::size_t>* ended) {
    std::vector<double> up(kPorts), down(kPorts);
    for (const Flow& flow : flows_) {
      ++up[flow.from];
      ++down[flow.to];
    }
    for (Flow& flow : flows_) {
      const double moved = std::min({kStepBytes / up[flow.from], kStepBytes / down[flow.to], flow.remaining});
      flow.remaining -= moved;
      receivers_[flow.receiver].left -= moved;
      receivers_[flow.receiver].flows -= flow.remaining <= kZero ? 1 : 0;
    }
    bool ends = std::erase_if(flows_, [](const Flow& flow) { return flow.remaining <= kZero; }) > 0;
    for (Receiver& receiver : receivers_) {
      if (!receiver.ended && (receiver.left <= kZero || receiver.flows == 0)) {
        receiver.ended = true;
        early_ += receiver.flows > 0 ? 1 : 0;
        ends = true;
        const auto open = [&](const Receiver& other) { return other.coflow == receiver.coflow && !other.ended; };
        if (std::none_of(receivers_.begin(), receivers_.end(), open)) {
          ended->push_back(receiver.coflow->index);
        }
      }
    }
    if (ends) {
      CountAllocation();
    }
  }

  std::vector<Flow> flows_;
  std::vector<Receiver> receivers_;
  std::size_t early_ = 0;
};

std::vector<std::uint32_t> SomePorts(std::mt19937_64* random) {
  std::vector<std::uint32_t> ports;
  for (std::uint32_t port = 0; port < kPorts; ++port) {
    if ((*random)() % 3 == 0) {
      ports.push_back(port);
    }
  }
  return ports.empty() ? std::vector<std::uint32_t>{static_cast<std::uint32_t>((*random)() % kPorts)} : ports;
}

/// Whole megabytes, as of a trace; or just more than zero for each flow beyond what it moves in so many steps with
/// these flows alone at a port.
double RandomBytes(std::mt19937_64* random, std::size_t senders) {
  if ((*random)() % 2 == 0) {
    return static_cast<double>(1 + (*random)() % 60) * kStepBytes * static_cast<double>(senders);
  }
  const auto steps = static_cast<double>(1 + (*random)() % 200);
  return steps * kStepBytes + 1.001 * kZero * static_cast<double>(senders);
}

struct Arrival {
  std::int64_t step = 0;
  Coflow coflow;
};

std::vector<Arrival> RandomArrivals(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Arrival> arrivals(1 + random() % 5);
  std::int64_t step = 0;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    Coflow& coflow = arrivals[i].coflow;
    coflow.index = i;
    coflow.senders = SomePorts(&random);
    coflow.receivers = SomePorts(&random);
    for (std::size_t r = 0; r < coflow.receivers.size(); ++r) {
      coflow.bytes.push_back(RandomBytes(&random, coflow.senders.size()));
    }
    step += random() % 2 == 0 ? 0 : static_cast<std::int64_t>(random() % 400);
    arrivals[i].step = step;
  }
  return arrivals;
}

struct Seen {
  std::vector<std::int64_t> ends;  ///< By coflow: steps in which the model was asked to go on.
  std::uint64_t allocations = 0;
  std::uint64_t flows_set = 0;
  bool operator==(const Seen& other) const {
    return ends == other.ends && allocations == other.allocations && flows_set == other.flows_set;
  }
};

/// Starts each coflow at its step; as in the simulator, nobody asks a model to go on while no coflow is live.
Seen Drive(const std::vector<Arrival>& arrivals, Model* model) {
  Seen seen;
  seen.ends.assign(arrivals.size(), -1);
  std::size_t next = 0;
  std::size_t live = 0;
  for (std::int64_t now = 0; next < arrivals.size() || live > 0;) {
    now = live == 0 ? std::max(now, arrivals[next].step) : now;
    const std::size_t before = next;
    for (; next < arrivals.size() && arrivals[next].step <= now; ++next) {
      model->Start(arrivals[next].coflow, now);
      ++live;
    }
    if (next > before) {
      model->AfterAdmission(now);
    }
    std::vector<std::size_t> ended;
    now += model->Advance(next < arrivals.size() ? arrivals[next].step - now : 1'000'000, &ended);
    for (const std::size_t index : ended) {
      seen.ends[index] = now;
    }
    live -= ended.size();
  }
  seen.allocations = model->allocations();
  seen.flows_set = model->flows_set();
  return seen;
}

TEST(Fair, EqualsEveryFlowInEveryStep) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    const std::vector<Arrival> arrivals = RandomArrivals(seed);
    SteppedFair stepped;
    const Seen expected = Drive(arrivals, &stepped);
    ASSERT_EQ(Drive(arrivals, MakeFairModel(kPorts).get()), expected) << "seed " << seed;
  }
}

/// Residues just above zero after so many steps that the count of a receiver may be there before its flows.
TEST(Fair, RoundingDecidesWhetherAReceiverEndsBeforeItsFlows) {
  std::size_t early = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<Arrival> arrivals(1);
    const auto senders = static_cast<std::uint32_t>(3 + random() % (kPorts - 3));
    const auto steps = static_cast<double>(4000 + random() % 16'000);
    for (std::uint32_t s = 0; s < senders; ++s) {
      arrivals[0].coflow.senders.push_back(s);
    }
    arrivals[0].coflow.receivers = {static_cast<std::uint32_t>(random() % kPorts)};
    arrivals[0].coflow.bytes = {steps * kStepBytes + 1.001 * kZero * senders};
    SteppedFair stepped;
    ASSERT_EQ(Drive(arrivals, MakeFairModel(kPorts).get()), Drive(arrivals, &stepped)) << "seed " << seed;
    early += stepped.early();
  }
  EXPECT_GT(early, 0U);
  EXPECT_LT(early, 100U);
}

TEST(Fair, BoundsOnRoundingDecideOnlyWhatIsComputed) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const std::vector<Arrival> arrivals = RandomArrivals(seed);
    SteppedFair stepped;
    const Seen expected = Drive(arrivals, &stepped);
    for (const double doubt : {1e3, 1e6, 1e9}) {
      ASSERT_EQ(Drive(arrivals, MakeFairModel(kPorts, doubt).get()), expected) << "seed " << seed << " doubt " << doubt;
    }
  }
}

}  // namespace
}  // namespace weir::scheduler::coflowsim
