// Opening ports of DPDK: what is refused, and what of the process stays as it was.
#include "transport/dpdk/ethdev/ethdev.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "transport/clock.h"

namespace weir::transport::dpdk {
namespace {

std::string Refusal(const EthdevSettings& settings) {
  const auto port = OpenEthdev(settings);
  return port ? "opened" : port.error().message();
}

TEST(Ethdev, SettingsOutOfRangeAreRefusedByName) {
  EXPECT_EQ(Refusal({"eth0"}),
            "device: found \"eth0\", allowed: net_DRIVERn,ARGUMENT=VALUE,... or an address on the "
            "PCI bus as in 0000:00:05.0");
  EXPECT_EQ(Refusal({"net_memif0", {}, 100}), "mtu: found 100, allowed: 562 to 9000");
  EXPECT_EQ(Refusal({"net_memif0", {}, 0, 1}), "descriptors: found 1, allowed: 64 to 4096");
  EXPECT_EQ(Refusal({"net_memif0", {}, 0, 64, 1}), "memory_mb: found 1, allowed: 16 to 65536");
  EXPECT_EQ(Refusal({"net_memif0,bsize=40000"}), "bsize: found 40000, allowed: up to 32768");
}

TEST(Ethdev, ADeviceThatIsNotThereIsRefusedAndTheProcessStaysAsItWas) {
  cpu_set_t cores_before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores_before), &cores_before), 0);
  struct sigaction before[32] = {};
  for (int number = 1; number < 32; ++number) sigaction(number, nullptr, &before[number]);

  const std::string why = Refusal({"net_nothing0"});
  EXPECT_NE(why.find("device \"net_nothing0\": "), std::string::npos) << why;
  EXPECT_EQ(Refusal({"net_nothing0"}), why) << "EAL is not started a second time";

  cpu_set_t cores;
  ASSERT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  EXPECT_TRUE(CPU_EQUAL(&cores, &cores_before));
  for (int number = 1; number < 32; ++number) {
    struct sigaction now = {};
    sigaction(number, nullptr, &now);
    EXPECT_EQ(now.sa_handler, before[number].sa_handler) << "signal " << number;
  }
}

TEST(Ethdev, ACardOnThePciBusIsRefusedAfterAVirtualDevice) {
  static_cast<void>(Refusal({"net_nothing0"}));  // DPDK is started for it, though it is not there.
  const auto port = OpenEthdev({"0000:00:05.0"});
  ASSERT_FALSE(port.has_value());
  EXPECT_EQ(port.error().code(), StatusCode::kUnsupported);
  EXPECT_EQ(port.error().message(),
            "device \"0000:00:05.0\" is on the PCI bus, and DPDK was started in this process for a virtual device, "
            "without hugepages; open the PCI device first");
  const std::string path = testing::TempDir() + "weir-after-" + std::to_string(getpid()) + ".sock";
  EXPECT_EQ(Refusal({"net_memif2,socket-abstract=no,role=server,socket=" + path}), "opened") << "virtual ones go on";
  std::remove(path.c_str());
}

/// A thread that sends and receives as fast as it can, until it is deleted; then the port is closed.
class BusyPort {
 public:
  explicit BusyPort(std::unique_ptr<EthdevPort> port) : port_(std::move(port)), thread_([this] { Run(); }) {}
  ~BusyPort() {
    ends_ = true;
    thread_.join();
  }
  std::uint64_t received() const { return received_; }

 private:
  void Run() {
    std::array<std::span<const std::byte>, 64> frames;
    while (!ends_) {
      received_ += port_->Receive(frames);
      for (int i = 0; i < 32 && port_->Reserve() != nullptr; ++i) port_->Commit(1000);
      port_->Flush();
      std::this_thread::yield();
    }
  }

  std::unique_ptr<EthdevPort> port_;
  std::atomic<bool> ends_{false};
  std::atomic<std::uint64_t> received_{0};
  std::thread thread_;
};

TEST(Ethdev, PortsOfMemifComeAndGoWhileTheirPeerSends) {
  const std::string folder = testing::TempDir();
  const std::string name = "weir-comes-" + std::to_string(getpid()) + ".sock";
  // The driver has one socket for each spelling of a path, and that is either a server's or a client's.
  const auto open = [&](const char* device, const char* role, const std::string& path) {
    auto port = OpenEthdev({std::string(device) + ",socket-abstract=no,role=" + role + ",socket=" + path});
    EXPECT_TRUE(port.has_value()) << (port ? "" : port.error().ToString());
    return std::make_unique<BusyPort>(std::move(*port));
  };
  auto server = open("net_memif0", "server", folder + name);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t before = server->received();
    auto client = open("net_memif1", "client", folder + "./" + name);
    const Nanoseconds deadline = SteadyClock().Now() + 20 * kSecond;
    while (server->received() < before + 100 || client->received() < 100) {
      ASSERT_LT(SteadyClock().Now(), deadline) << "round " << round << ": nothing comes";
      std::this_thread::yield();
    }
    if (round % 4 == 3) {  // The one that listens goes first.
      server.reset();
      client.reset();
      server = open("net_memif0", "server", folder + name);
    }
  }
  server.reset();
  std::remove((folder + name).c_str());
}

TEST(Ethdev, MemifCarriesFramesOfAnMtuOf9000BothWays) {
  const std::string name = "weir-large-" + std::to_string(getpid()) + ".sock";
  const std::string common = ",socket-abstract=no,socket=" + testing::TempDir();
  auto server = OpenEthdev({"net_memif0,role=server" + common + name, {}, 9000});
  auto client = OpenEthdev({"net_memif1,role=client" + common + "./" + name, {}, 9000});
  ASSERT_TRUE(server.has_value()) << server.error().ToString();
  ASSERT_TRUE(client.has_value()) << client.error().ToString();
  EXPECT_EQ((*client)->frame_bytes(), 9014u);
  const auto carry = [](EthdevPort* from, EthdevPort* to) {
    std::array<std::span<const std::byte>, 64> frames;
    const Nanoseconds deadline = SteadyClock().Now() + 20 * kSecond;
    while (SteadyClock().Now() < deadline) {
      if (std::byte* frame = from->Reserve(); frame != nullptr) {
        for (std::size_t i = 0; i < from->frame_bytes(); ++i) frame[i] = static_cast<std::byte>(i * 7);
        from->Commit(from->frame_bytes());
        from->Flush();
      }
      static_cast<void>(from->Receive(frames));
      if (to->Receive(frames) == 0) continue;
      for (std::size_t i = 0; i < frames[0].size(); ++i) {
        if (frames[0][i] != static_cast<std::byte>(i * 7)) return std::size_t{0};
      }
      return frames[0].size();
    }
    return std::size_t{0};
  };
  EXPECT_EQ(carry(client->get(), server->get()), 9014u);
  EXPECT_EQ(carry(server->get(), client->get()), 9014u);
  client->reset();
  server->reset();
  std::remove((testing::TempDir() + name).c_str());
}

TEST(Ethdev, RingsThatAreTooSmallForTheMtuAreRefusedByName) {
  const std::string device = "net_memif3,role=server,bsize=4096,socket-abstract=no,socket=" + testing::TempDir() +
                             "weir-small-" + std::to_string(getpid()) + ".sock";
  EXPECT_EQ(Refusal({device, {}, 9000}), "device \"" + device +
                                             "\": bsize: found 4096, allowed: 9142 and more for an mtu of 9000; "
                                             "without it we set it");
}

TEST(Ethdev, AClientOfMemifFindsAServerThatCameLaterAndOneThatCameAgain) {
  const std::string path = testing::TempDir() + "weir-later-" + std::to_string(getpid()) + ".sock";
  const std::string other = testing::TempDir() + "./weir-later-" + std::to_string(getpid()) + ".sock";
  auto client = OpenEthdev({"net_memif1,socket-abstract=no,role=client,socket=" + other});
  ASSERT_TRUE(client.has_value()) << client.error().ToString();
  std::array<std::span<const std::byte>, 64> frames;
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ((*client)->Receive(frames), 0u);
    auto server = OpenEthdev({"net_memif0,socket-abstract=no,role=server,socket=" + path});
    ASSERT_TRUE(server.has_value()) << server.error().ToString();
    const Nanoseconds deadline = SteadyClock().Now() + 20 * kSecond;
    std::size_t came = 0;
    while (came == 0) {
      ASSERT_LT(SteadyClock().Now(), deadline) << "nothing comes";
      if ((*server)->Reserve() != nullptr) (*server)->Commit(100);
      (*server)->Flush();
      static_cast<void>((*server)->Receive(frames));
      came = (*client)->Receive(frames);
    }
  }
  std::remove(path.c_str());
}

TEST(Ethdev, AForkHasNoPortsAndLeavesThoseOfItsParentAlone) {
  const std::string path = testing::TempDir() + "weir-fork-" + std::to_string(getpid()) + ".sock";
  const std::string other = testing::TempDir() + "./weir-fork-" + std::to_string(getpid()) + ".sock";
  auto server = OpenEthdev({"net_memif0,socket-abstract=no,role=server,socket=" + path});
  auto client = OpenEthdev({"net_memif1,socket-abstract=no,role=client,socket=" + other});
  ASSERT_TRUE(server.has_value() && client.has_value());
  const Nanoseconds deadline = SteadyClock().Now() + 20 * kSecond;
  while (!(*server)->link_up() || !(*client)->link_up()) ASSERT_LT(SteadyClock().Now(), deadline);
  const auto send = [&] {
    if ((*client)->Reserve() != nullptr) (*client)->Commit(100);
    (*client)->Flush();
  };
  std::array<std::span<const std::byte>, 64> frames;

  const pid_t fork_pid = fork();
  ASSERT_GE(fork_pid, 0);
  if (fork_pid == 0) {
    send();
    if ((*server)->Receive(frames) != 0) _exit(2);
    if (Refusal({"net_null0"}).find("of which this is a fork") == std::string::npos) _exit(3);
    client->reset();
    server->reset();
    _exit(0);
  }
  int how = 0;
  ASSERT_EQ(waitpid(fork_pid, &how, 0), fork_pid);
  ASSERT_TRUE(WIFEXITED(how));
  EXPECT_EQ(WEXITSTATUS(how), 0);
  EXPECT_EQ((*server)->Receive(frames), 0u) << "the fork sent nothing";
  send();
  while ((*server)->Receive(frames) != 1)
    ASSERT_LT(SteadyClock().Now(), deadline) << "the parent's ports are as before";
  client->reset();
  server->reset();
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weir::transport::dpdk
