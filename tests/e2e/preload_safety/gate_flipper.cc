// An agent that opens and closes the gates of every process without a plan, and changes caps now and then, until its
// standard input ends. Prints the path of its socket first, and at the end how many processes attached and how many
// writes it held.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <thread>

#include "tests/agents/preload/fake_agent.h"

namespace {

constexpr std::uint64_t kCap = 50'000'000;  // bytes/s
constexpr std::uint32_t kLowat = 131072;

bool InputEnded() {
  pollfd entry = {STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return poll(&entry, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

}  // namespace

int main() {
  weir::testing::FakeAgent agent;
  std::printf("%s\n", agent.socket_path().c_str());
  std::fflush(stdout);
  std::mt19937 random(1);
  while (!InputEnded()) {
    for (std::size_t n = 0; n < agent.attached(); ++n) {
      const std::uint32_t lanes = std::min(agent.segment(n)->header.lanes_used.load(), weir::client::kMaxLanes);
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        agent.SetGate(n, lane, random() % 2 == 0 ? weir::client::GateState::kHold : weir::client::GateState::kGo,
                      50'000'000);
        if (random() % 16 == 0) agent.SetPacing(n, lane, random() % 2 == 0 ? kCap : 0, kLowat);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1 + random() % 10));
  }
  std::uint64_t held = 0;
  for (std::size_t n = 0; n < agent.attached(); ++n) {
    for (const weir::client::LaneSlot& lane : agent.segment(n)->lanes) held += lane.writes_held.load();
  }
  std::printf("attached=%zu held=%llu\n", agent.attached(), static_cast<unsigned long long>(held));
  return 0;
}
