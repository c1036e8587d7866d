// The program as it runs: processes that attach or are adopted, a coordinator, and a violent end.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agents/client/attachment.h"
#include "agents/host/foreign_process.h"
#include "tests/agents/host/fake_coordinator.h"
#include "tests/agents/host/loopback.h"

namespace weir::agents {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// True once `condition` holds, false if it does not within 10 s.
bool Eventually(const std::function<bool()>& condition) {
  const auto end = steady_clock::now() + milliseconds(10'000);
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

/// All that the agent at 127.0.0.1:`port` answers to these bytes, until it closes or has said nothing for 2 s.
std::string AnswerTo(int port, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = recv(fd, buffer.data(), buffer.size(), 0)) > 0)
      answer.append(buffer.data(), static_cast<std::size_t>(got));
  }
  close(fd);
  return answer;
}

/// One run of weir-agent, with its standard output.
class Program {
 public:
  explicit Program(std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    arguments.insert(arguments.begin(), WEIR_AGENT_PROGRAM);
    std::vector<char*> pointers;
    for (std::string& each : arguments) pointers.push_back(each.data());
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execv(WEIR_AGENT_PROGRAM, pointers.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) End(SIGKILL);
    fclose(output_);
  }

  std::string Line() {
    std::array<char, 65536> line{};
    return fgets(line.data(), line.size(), output_) == nullptr ? "" : line.data();
  }
  /// Waits for its end; the exit code, or minus the signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int End(int signal) {
    Signal(signal);
    return Wait();
  }
  void Signal(int signal) const { kill(pid_, signal); }
  /// A child of its, living or about to be waited for; 0 if there is none.
  pid_t Child() const {
    const std::string number = std::to_string(pid_);
    std::ifstream children("/proc/" + number + "/task/" + number + "/children");
    pid_t child = 0;
    children >> child;
    return child;
  }

 private:
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
};

/// A process with one connection to itself, which does not know of us.
class Stranger {
 public:
  explicit Stranger(bool sends = false, bool own_network = false) {
    std::array<int, 2> ready{};
    EXPECT_EQ(pipe(ready.data()), 0);
    pid_ = fork();
    if (pid_ == 0) {
      const bool there = !own_network || EnterOwnNetwork();
      const Loopback connection;
      const char ok = there && connection.ok() ? 1 : 0;
      const std::string block(65536, 'x');
      while (sends && send(connection.client(), block.data(), block.size(), MSG_DONTWAIT) > 0) {
      }
      static_cast<void>(write(ready[1], &ok, 1));
      while (true) pause();
    }
    char ok = 0;
    EXPECT_EQ(read(ready[0], &ok, 1), 1);
    EXPECT_TRUE(ok == 1 || own_network);
    ok_ = ok == 1;
    close(ready[0]);
    close(ready[1]);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  bool ok() const { return ok_; }
  /// Caps of its connected TCP sockets.
  std::vector<std::uint64_t> Caps() const {
    std::vector<std::uint64_t> caps;
    const auto process = ForeignProcess::Open(pid_);
    if (!process) return caps;
    for (const ForeignSocket& socket : process->Sockets()) {
      const auto borrowed = process->Borrow(socket);
      SocketKey key;
      if (borrowed && DescribeTcp(borrowed->get(), &key)) caps.push_back(PacingRate(borrowed->get()));
    }
    return caps;
  }

 private:
  /// Another network namespace, with its loopback up.
  static bool EnterOwnNetwork() {
    if (unshare(CLONE_NEWNET) != 0) return false;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    request.ifr_flags = IFF_UP;
    const bool up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    close(fd);
    return up;
  }

  pid_t pid_ = -1;
  bool ok_ = false;
};

class AgentProgram : public ::testing::Test {
 protected:
  AgentProgram() : AgentProgram({}) { EXPECT_EQ(ready_, "ready socket=" + path_ + " http=none\n"); }
  explicit AgentProgram(const std::vector<std::string>& more) {
    std::filesystem::create_directory(directory_);
    std::vector<std::string> flags = {"--host",   "node1", "--coordinator", coordinator_.address(),
                                      "--socket", path_,   "--log",         "off"};
    flags.insert(flags.end(), more.begin(), more.end());
    agent_ = std::make_unique<Program>(flags);
    ready_ = agent_->Line();
  }
  ~AgentProgram() override {
    agent_.reset();
    std::filesystem::remove_all(directory_);
  }

  client::Attachment Attach() {
    client::AttachRequest request{};
    request.magic = client::kSegmentMagic;
    request.version_major = client::kSegmentVersionMajor;
    std::strcpy(request.job, "llama");
    client::Attachment attachment;
    EXPECT_EQ(client::Attach(path_.c_str(), request, 2000, &attachment), client::AttachResult::kAttached);
    return attachment;
  }
  std::uint64_t NextLane() {
    return coordinator_.Next([](const wire::AgentMessage& m) { return m.has_lane_opened(); }).lane_opened().lane();
  }
  int Adopt(pid_t pid) {
    return Program({"adopt", "--socket", path_, "--pid", std::to_string(pid), "--job", "old"}).Wait();
  }
  /// Adopts `stranger` and has it capped at 10 MB/s.
  void CapStranger(const Stranger& stranger) {
    coordinator_.Welcome(1);
    ASSERT_EQ(Adopt(stranger.pid()), 0);
    const std::uint64_t lane = NextLane();
    coordinator_.Direct(lane, wire::GATE_GO, 10e6);
    const std::vector<std::uint64_t> capped(2, 10'000'000);
    ASSERT_TRUE(Eventually([&] { return stranger.Caps() == capped; }));
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("weir-program-" + std::to_string(getpid()));
  const std::string path_ = (directory_ / "agent.sock").string();
  const std::vector<std::uint64_t> uncapped_ = std::vector<std::uint64_t>(2, kNoPacing);
  FakeCoordinator coordinator_;
  std::unique_ptr<Program> agent_;
  std::string ready_;  ///< Its first line.
};

/// Opens lane 0 towards 10.0.0.2, with one socket.
void OpenLane(client::Segment* segment) {
  client::LaneSlot& lane = segment->lanes[0];
  lane.family = AF_INET;
  lane.peer_address[0] = 10;
  lane.peer_address[3] = 2;
  lane.state.store(1);
  segment->header.lanes_used.store(1);
  client::SocketSlot& socket = segment->sockets[0];
  socket.family = AF_INET;
  socket.state.store(1);
  segment->header.sockets_used.store(1);
}

/// The first write of a message: counts, then takes the ring.
bool BeginMessage(const client::Attachment& attached, std::uint64_t rest) {
  attached.segment->sockets[0].rest.store(rest);
  attached.segment->lanes[0].messages.fetch_add(1);
  const bool wanted = attached.segment->lanes[0].want_start.exchange(0) == 1;
  if (wanted) client::Ring(attached.doorbell);
  return wanted;
}

TEST_F(AgentProgram, WriteBecomesDemandAndAnswerBecomesAGate) {
  EXPECT_EQ(coordinator_.Welcome(1).host(), "node1");
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  client::Ring(attached.doorbell);
  const std::uint64_t lane = NextLane();
  const client::LaneSlot& slot = attached.segment->lanes[0];
  ASSERT_TRUE(Eventually([&] { return slot.want_start.load() == 1; }));
  EXPECT_TRUE(BeginMessage(attached, 5000));
  const auto demand = coordinator_.Next([](const wire::AgentMessage& m) { return m.has_demand_update(); });
  ASSERT_EQ(demand.demand_update().lanes_size(), 1);
  EXPECT_TRUE(demand.demand_update().lanes(0).active());
  coordinator_.Direct(lane, wire::GATE_HOLD, 10e6);
  EXPECT_TRUE(Eventually([&] { return slot.gate.load() == 1; }));
  EXPECT_GT(slot.hold_until.load(), client::NowNs());
  EXPECT_EQ(slot.directive.pacing_rate.load(), 10'000'000u);
}

/// An agent with a port for metrics.
class AgentMetrics : public AgentProgram {
 protected:
  AgentMetrics() : AgentProgram({"--http", "127.0.0.1:0"}) {
    port_ = std::atoi(ready_.substr(ready_.rfind(':') + 1).c_str());
    EXPECT_GT(port_, 0) << ready_;
  }
  std::string Get(const std::string& path) const {
    return AnswerTo(port_, "GET " + path + " HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
  }
  int port_ = 0;
};

TEST_F(AgentMetrics, SayWhatTheProcessesSaid) {
  coordinator_.Welcome(1);
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  attached.segment->lanes[0].bytes_accepted = 1234;
  attached.segment->stalls[0].gpu_ns = 1'500'000'000;
  attached.segment->stalls[0].network_ns = INT64_MAX;  // A lie, and no harm.
  attached.segment->stalls[0].sends_by_profiler = 7;
  attached.segment->stalls[0].sends_by_idle_gap = 2;
  BeginMessage(attached, 5000);
  client::Ring(attached.doorbell);
  const std::string labels = "job=\"llama\",tenant=\"\",pid=\"" + std::to_string(getpid()) + "\"";
  EXPECT_TRUE(
      Eventually([&] { return Get("/metrics").find("coflows_open{" + labels + "} 1\n") != std::string::npos; }));
  const std::string all = Get("/metrics");
  EXPECT_EQ(all.rfind("HTTP/1.1 200 OK\r\n", 0), 0u) << all;
  for (const std::string& line :
       {std::string("Content-Type: text/plain; version=0.0.4\r\n"), std::string("weir_agent_coordinator_connected 1\n"),
        "weir_agent_sent_bytes_total{" + labels + "} 1234\n", "weir_agent_waiting_bytes{" + labels + "} 5000\n",
        "weir_agent_stall_seconds_total{" + labels + ",cause=\"gpu\"} 1.5\n",
        "weir_agent_sends_total{" + labels + ",known_by=\"profiler\"} 7\n",
        "weir_agent_sends_total{" + labels + ",known_by=\"attributes\"} 0\n",
        "weir_agent_sends_total{" + labels + ",known_by=\"idle-gap\"} 2\n"}) {
    EXPECT_NE(all.find(line), std::string::npos) << line << all;
  }
}

TEST_F(AgentMetrics, SayWhatTheCoordinatorWantsAndHowCoflowsAreKnown) {
  coordinator_.Welcome(1);
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  constexpr std::array<client::KnownBy, 5> kKnown{client::KnownBy::kAttributes, client::KnownBy::kProfiler,
                                                  client::KnownBy::kAttributes, client::KnownBy::kWrites,
                                                  client::KnownBy::kAttributes};
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    client::MessageEntry& message = attached.segment->messages[i];
    message.bytes = 100;
    message.known_by = static_cast<std::uint16_t>(kKnown[i]);
    message.ticket = i + 1;
  }
  attached.segment->header.messages_begun = kKnown.size();
  client::Ring(attached.doorbell);
  const std::uint64_t lane = NextLane();
  const std::string labels = "job=\"llama\",tenant=\"\",pid=\"" + std::to_string(getpid()) + "\"";
  const auto shows = [&](const std::string& line) {
    return Get("/metrics").find("weir_agent_" + line) != std::string::npos;
  };
  EXPECT_TRUE(Eventually([&] { return shows("coflows_known_total{" + labels + ",known_by=\"attributes\"} 3\n"); }));
  EXPECT_TRUE(shows("coflows_known_total{" + labels + ",known_by=\"profiler\"} 1\n"));
  EXPECT_TRUE(shows("coflows_known_total{" + labels + ",known_by=\"idle-gap\"} 0\n"));
  EXPECT_TRUE(shows("coflows_known_total{" + labels + ",known_by=\"writes\"} 1\n"));
  for (const char* level : {"0", "3"}) EXPECT_TRUE(shows("lanes_at_level{" + labels + ",level=\"" + level + "\"} 0\n"));
  EXPECT_TRUE(shows("lanes_capped{" + labels + "} 0\n"));
  coordinator_.Direct(lane, wire::GATE_HOLD, 10e6, 3);
  BeginMessage(attached, 5000);
  client::Ring(attached.doorbell);
  EXPECT_TRUE(Eventually([&] { return shows("lanes_held{" + labels + "} 1\n"); }));
  EXPECT_TRUE(shows("lanes_at_level{" + labels + ",level=\"3\"} 1\n"));
  EXPECT_TRUE(shows("lanes_at_level{" + labels + ",level=\"0\"} 0\n"));
  EXPECT_TRUE(shows("lanes_capped{" + labels + "} 1\n"));
  EXPECT_TRUE(shows("rate_bytes_per_second{" + labels + "} 10000000\n"));
}

TEST_F(AgentMetrics, WhatIsNoneIsRefusedAndServingGoesOn) {
  EXPECT_EQ(Get("/nothere").rfind("HTTP/1.1 404", 0), 0u);
  EXPECT_NE(Get("/nothere").find("there are /metrics, /v1/status, /livez and /readyz"), std::string::npos);
  EXPECT_EQ(
      AnswerTo(port_, "POST /metrics HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n").rfind("HTTP/1.1 405", 0),
      0u);
  EXPECT_EQ(AnswerTo(port_, "this is not HTTP\r\n\r\n"), "");
  EXPECT_EQ(AnswerTo(port_, std::string(100'000, 'x')), "");
  EXPECT_EQ(AnswerTo(port_, "GET /metrics HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), "");
  EXPECT_EQ(Get("/livez").rfind("HTTP/1.1 200", 0), 0u);
  EXPECT_NE(Get("/v1/status").find("\"coordinator_connected\""), std::string::npos);
}

TEST_F(AgentProgram, AnAddressThatOthersReachNeedsAWordForIt) {
  for (const char* address : {"0.0.0.0:0", "here", "127.0.0.1", "127.0.0.1:70000"}) {
    EXPECT_EQ(Program({"--host", "node1", "--socket", path_ + "2", "--http", address}).Wait(), 2) << address;
  }
}

TEST_F(AgentProgram, EndInOrderLetsProcessesGo) {
  coordinator_.Welcome(1);
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  client::Ring(attached.doorbell);
  coordinator_.Direct(NextLane(), wire::GATE_HOLD, 10e6);
  const client::LaneSlot& slot = attached.segment->lanes[0];
  ASSERT_TRUE(Eventually([&] { return slot.gate.load() == 1; }));
  EXPECT_EQ(agent_->End(SIGTERM), 0);
  EXPECT_EQ(slot.gate.load(), 0u);
  EXPECT_EQ(slot.directive.pacing_rate.load(), 0u);
  EXPECT_EQ(attached.segment->header.heartbeat.load(), 0);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(AgentProgram, LostCoordinatorIsFoundAgainAndToldEverything) {
  coordinator_.Welcome(1);
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  client::Ring(attached.doorbell);
  NextLane();
  const auto lost = steady_clock::now();
  coordinator_.Welcome(2);
  EXPECT_LT(steady_clock::now() - lost, milliseconds(5000));
  NextLane();
}

TEST_F(AgentProgram, CoordinatorThatTalksGarbageIsLeftAndTriedAgain) {
  coordinator_.Welcome(1);
  coordinator_.SayRaw(std::string(4096, 'x'));
  coordinator_.Welcome(2);
  const client::Attachment attached = Attach();
  OpenLane(attached.segment);
  client::Ring(attached.doorbell);
  NextLane();
}

TEST_F(AgentProgram, SecondAgentAtTheSameSocketIsRefused) {
  Program second({"--host", "node1", "--coordinator", coordinator_.address(), "--socket", path_, "--log", "off"});
  EXPECT_EQ(second.Wait(), 1);
}

TEST_F(AgentProgram, StatusIsOneLineOfJson) {
  Attach();
  Program status({"status", "--socket", path_, "--output", "json"});
  const std::string line = status.Line();
  EXPECT_EQ(line.find('{'), 0u);
  EXPECT_NE(line.find(R"("job":"llama")"), std::string::npos);
  EXPECT_EQ(status.Wait(), 0);
}

TEST_F(AgentProgram, AdoptedProcessIsCappedAndRestoredInOrder) {
  const Stranger stranger;
  CapStranger(stranger);
  EXPECT_EQ(agent_->End(SIGTERM), 0);
  EXPECT_EQ(stranger.Caps(), uncapped_);
}

TEST_F(AgentProgram, GuardianRestoresWhenTheAgentIsKilled) {
  const Stranger stranger;
  CapStranger(stranger);
  EXPECT_EQ(agent_->End(SIGKILL), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return stranger.Caps() == uncapped_; }));
}

TEST_F(AgentProgram, HeldAdoptedProcessKeepsARateItCanLiveWith) {
  const Stranger stranger;
  coordinator_.Welcome(1);
  ASSERT_EQ(Adopt(stranger.pid()), 0);
  coordinator_.Direct(NextLane(), wire::GATE_HOLD, 10e6);
  const std::vector<std::uint64_t> floor(2, 655'360);
  EXPECT_TRUE(Eventually([&] { return stranger.Caps() == floor; }));
}

TEST_F(AgentProgram, WhatAnAdoptedProcessHasQueuedIsItsDemand) {
  const Stranger stranger(true);
  coordinator_.Welcome(1);
  ASSERT_EQ(Adopt(stranger.pid()), 0);
  const auto demand = coordinator_.Next([](const wire::AgentMessage& m) { return m.has_demand_update(); });
  ASSERT_EQ(demand.demand_update().lanes_size(), 1);
  EXPECT_TRUE(demand.demand_update().lanes(0).active());
  EXPECT_GT(demand.demand_update().lanes(0).bytes_waiting(), 0u);
}

TEST_F(AgentProgram, ProcessInAnotherNetworkNamespaceIsSeenAndCappedAndRestored) {
  const Stranger stranger(true, true);
  if (!stranger.ok()) GTEST_SKIP() << "making a network namespace needs root";
  coordinator_.Welcome(1);
  ASSERT_EQ(Adopt(stranger.pid()), 0);
  const std::uint64_t lane = NextLane();
  const auto demand = coordinator_.Next([](const wire::AgentMessage& m) { return m.has_demand_update(); });
  EXPECT_GT(demand.demand_update().lanes(0).bytes_waiting(), 0u);
  coordinator_.Direct(lane, wire::GATE_GO, 10e6);
  const std::vector<std::uint64_t> capped(2, 10'000'000);
  ASSERT_TRUE(Eventually([&] { return stranger.Caps() == capped; }));
  EXPECT_EQ(agent_->End(SIGKILL), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return stranger.Caps() == uncapped_; }));
}

TEST_F(AgentProgram, GuardianThatWasKilledIsReplacedAtOnce) {
  const Stranger stranger;
  CapStranger(stranger);
  const pid_t first = agent_->Child();
  ASSERT_GT(first, 0);
  kill(first, SIGKILL);
  ASSERT_TRUE(Eventually([&] {
    const pid_t now = agent_->Child();
    return now > 0 && now != first;
  }));
  EXPECT_EQ(agent_->End(SIGKILL), -SIGKILL);
  EXPECT_TRUE(Eventually([&] { return stranger.Caps() == uncapped_; }));
}

TEST_F(AgentProgram, FrozenGuardianDoesNotKeepTheAgentFromEnding) {
  const Stranger stranger;
  CapStranger(stranger);
  kill(agent_->Child(), SIGSTOP);
  EXPECT_EQ(agent_->End(SIGTERM), 0);
  EXPECT_EQ(stranger.Caps(), uncapped_);
}

TEST_F(AgentProgram, FrozenAgentIsNotWaitedForAndNotReplaced) {
  agent_->Signal(SIGSTOP);
  EXPECT_EQ(Program({"status", "--socket", path_}).Wait(), 3);
  EXPECT_EQ(Program({"--socket", path_, "--coordinator", coordinator_.address(), "--log", "off"}).Wait(), 1);
  agent_->Signal(SIGCONT);
  EXPECT_EQ(Program({"status", "--socket", path_}).Wait(), 0);
}

TEST_F(AgentProgram, NoProcessIsAdoptedTwiceOrWithoutBeing) {
  const Stranger stranger;
  EXPECT_EQ(Adopt(stranger.pid()), 0);
  EXPECT_EQ(Adopt(stranger.pid()), 4);
  EXPECT_EQ(Adopt(0x3ffffff), 4);
}

TEST(AgentProgramUsage, NobodyThereIsSaid) {
  EXPECT_EQ(Program({"status", "--socket", "/nonexistent/agent.sock"}).Wait(), 3);
  EXPECT_EQ(Program({"adopt", "--socket", "/nonexistent/agent.sock"}).Wait(), 2);
  EXPECT_EQ(Program({"frobnicate"}).Wait(), 2);
  EXPECT_EQ(Program({"--coordinator", "nowhere"}).Wait(), 2);
  EXPECT_EQ(Program({"--coordinator", "127.0.0.1:65536"}).Wait(), 2);
  EXPECT_EQ(Program({"--coordinator", "127.0.0.1:0"}).Wait(), 2);
}

}  // namespace
}  // namespace weir::agents
