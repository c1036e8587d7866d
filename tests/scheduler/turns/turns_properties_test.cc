// What must hold of every decision, on random fabrics. A failure prints the seed that repeats it.
#include <algorithm>
#include <random>

#include "tests/scheduler/turns/fabric_fixture.h"

namespace weir::scheduler {
namespace {

constexpr int kSeeds = 3000;
constexpr double kRoom = 0.2;  // TurnOptions::room

struct World {
  FabricState state;
  Nanoseconds now = kSecond;
};

World RandomWorld(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
  World world;
  for (std::uint32_t i = 0; i < 1 + pick(6); ++i)
    world.state.links.push_back({.rate = 1e6 * (1 + pick(20)), .holder = {}});
  const auto links = static_cast<std::uint32_t>(world.state.links.size());
  for (std::uint32_t j = 0; j < 1 + pick(6); ++j) {
    JobState job;
    job.id = JobId(j + 1);
    job.job_class = static_cast<JobClass>(pick(3));
    if (pick(2) == 0) {
      job.profile.confidence = 1;
      job.profile.alone = (1 + pick(3000)) * kMillisecond;
      for (LinkIndex link = 0; link < links; ++link) job.profile.links.push_back({link, 1e4 * (1 + pick(1000))});
    }
    world.state.jobs.push_back(job);
  }
  for (std::uint32_t i = 0; i < 1 + pick(12); ++i) {
    LaneState lane;
    lane.id = i + 1;
    lane.job = pick(static_cast<std::uint32_t>(world.state.jobs.size()));
    for (LinkIndex link = 0; link < links; ++link) {
      if (pick(3) == 0) lane.links.push_back(link);
    }
    if (lane.links.empty()) lane.links.push_back(pick(links));
    lane.active = pick(3) > 0;
    lane.bytes_left = lane.bytes_waiting = 1e4 * pick(1000);
    lane.due_known = pick(2) == 0;
    lane.due = world.now + (static_cast<Nanoseconds>(pick(4000)) - 2000) * kMillisecond;
    lane.overlapped = lane.due_known && pick(2) == 0;
    world.state.lanes.push_back(lane);
  }
  return world;
}

/// Lets lanes start, stop and move at random.
void Disturb(World& world, std::mt19937& random) {
  world.now += static_cast<Nanoseconds>(random() % 30) * kMillisecond;
  for (LaneState& lane : world.state.lanes) {
    if (random() % 4 == 0) lane.active = !lane.active;
    if (lane.active && random() % 2 == 0) lane.bytes_sent += 1000;
  }
}

void ExpectRatesFit(const World& world, const Decision& decision, std::uint32_t seed) {
  std::vector<double> used(world.state.links.size(), 0);
  for (std::size_t i = 0; i < world.state.lanes.size(); ++i) {
    const LaneState& lane = world.state.lanes[i];
    if (!lane.active || decision.lanes[i].hold || world.state.jobs[lane.job].turn.stalled) continue;
    ASSERT_GT(decision.lanes[i].rate, 0) << "seed " << seed;
    for (const LinkIndex link : lane.links) used[link] += decision.lanes[i].rate;
  }
  for (std::size_t link = 0; link < used.size(); ++link) {
    ASSERT_LE(used[link], world.state.links[link].rate * (1 + 1e-9)) << "seed " << seed << " link " << link;
  }
}

/// No lane is held that finds room for itself on every link of its path.
void ExpectWorkConserving(const World& world, const Decision& decision, std::uint32_t seed) {
  std::vector<double> left;
  for (const LinkState& link : world.state.links) left.push_back(link.rate);
  for (std::size_t i = 0; i < world.state.lanes.size(); ++i) {
    if (!world.state.lanes[i].active || decision.lanes[i].hold) continue;
    for (const LinkIndex link : world.state.lanes[i].links) left[link] -= decision.lanes[i].rate;
  }
  for (std::size_t i = 0; i < world.state.lanes.size(); ++i) {
    const LaneState& lane = world.state.lanes[i];
    if (!lane.active || !decision.lanes[i].hold || world.state.jobs[lane.job].turn.stalled) continue;
    double room = 1e18;
    for (const LinkIndex link : lane.links) room = std::min(room, left[link]);
    ASSERT_LT(room, kRoom * PathRate(world.state, lane) * (1 + 1e-6)) << "seed " << seed << " lane " << i;
  }
}

TEST(TurnsProperties, RatesFitAndNoUsableLinkIsIdle) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    World world = RandomWorld(seed);
    std::mt19937 random(seed);
    const auto policy = std::move(*MakePolicy(seed % 2 == 0 ? "turns" : "fifo"));
    Decision decision;
    for (int step = 0; step < 8; ++step) {
      policy->Decide(world.state, world.now, decision);
      ExpectRatesFit(world, decision, seed);
      ExpectWorkConserving(world, decision, seed);
      if (HasFatalFailure()) return;
      Disturb(world, random);
    }
  }
}

TEST(TurnsProperties, EqualStatesGiveEqualDecisionsWhoeverAsks) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    World one = RandomWorld(seed);
    World other = one;
    const auto warm = std::move(*MakePolicy("turns"));
    Decision first;
    Decision second;
    World unrelated = RandomWorld(seed + 1);
    warm->Decide(unrelated.state, unrelated.now, first);
    warm->Decide(one.state, one.now, first);
    (*MakePolicy("turns"))->Decide(other.state, other.now, second);
    ASSERT_EQ(first.lanes, second.lanes) << "seed " << seed;
    ASSERT_EQ(first.next, second.next) << "seed " << seed;
  }
}

TEST(TurnsProperties, OrderOfLanesInTheStateDecidesNothing) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    World one = RandomWorld(seed);
    World other = one;
    std::reverse(other.state.lanes.begin(), other.state.lanes.end());
    Decision first;
    Decision second;
    (*MakePolicy("turns"))->Decide(one.state, one.now, first);
    (*MakePolicy("turns"))->Decide(other.state, other.now, second);
    for (std::size_t i = 0; i < first.lanes.size(); ++i) {
      const LaneDecision& a = first.lanes[i];
      const LaneDecision& b = second.lanes[first.lanes.size() - 1 - i];
      ASSERT_EQ(a.hold, b.hold) << "seed " << seed << " lane " << i;
      ASSERT_NEAR(a.rate, b.rate, 1e-6 * std::max(a.rate, 1.0)) << "seed " << seed << " lane " << i;
    }
  }
}

/// Nor does the order of the jobs, over several decisions with what each leaves in the state.
TEST(TurnsProperties, OrderOfJobsInTheStateDecidesNothing) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    World one = RandomWorld(seed);
    World other = one;
    std::mt19937 random(seed);
    std::mt19937 same_random(seed);
    std::reverse(other.state.jobs.begin(), other.state.jobs.end());
    const auto last = static_cast<std::uint32_t>(other.state.jobs.size() - 1);
    for (LaneState& lane : other.state.lanes) lane.job = last - lane.job;
    const auto policy = std::move(*MakePolicy("turns"));
    Decision first;
    Decision second;
    for (int step = 0; step < 4; ++step) {
      policy->Decide(one.state, one.now, first);
      policy->Decide(other.state, other.now, second);
      ASSERT_EQ(first.lanes, second.lanes) << "seed " << seed << " step " << step;
      for (std::size_t link = 0; link < one.state.links.size(); ++link) {
        ASSERT_EQ(one.state.links[link].holder, other.state.links[link].holder) << "seed " << seed << " step " << step;
      }
      Disturb(one, random);
      Disturb(other, same_random);
    }
  }
}

}  // namespace
}  // namespace weir::scheduler
