// Peers that are killed or stopped, and links that are cut or flap, on real verbs: the other end of the channel is a
// process of its own.
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "tests/transport/rdma/vm_ends.h"

namespace weir::transport::rdma {
namespace {

constexpr std::size_t kMessage = 1 << 20;

/// With this bound on a dead link.
RdmaOptions Bound(Nanoseconds dead_after) {
  RdmaOptions options;
  options.dead_after = dead_after;
  // 0.54 s: a lost packet is not to cost seconds, and what is merely under way on this slow machine is not to be
  // repeated. With 67 ms, two of about sixteen runs went badly: the peer refused a request as invalid, or both ends
  // waited without an error. Why is not known.
  options.timeout = 17;
  return options;
}

constexpr Nanoseconds kDeadAfter = 2 * kSecond;

std::size_t Descriptors() {
  std::size_t count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) count++;
  closedir(folder);
  return count;
}

/// Receives messages of kMessage, whose bytes are the message's number, until something is wrong.
[[noreturn]] void Serve(int handle_to, Nanoseconds dead_after) {
  VmEnd end("=rxe1", "right/2", Bound(dead_after));
  const auto listener = end.Listen();
  const Handle handle = listener->handle();
  if (write(handle_to, handle.bytes.data(), handle.bytes.size()) != static_cast<ssize_t>(handle.bytes.size())) _exit(2);
  std::unique_ptr<Receiver> receiver;
  while (receiver == nullptr) receiver = std::move(listener->Accept().value());
  std::vector<std::byte> room(kMessage);
  std::vector<std::byte> expected(kMessage);
  for (int number = 0;; ++number) {
    const Slot slot{room.data(), room.size(), 0, {}};
    Request* request = nullptr;
    if (receiver->Irecv(std::span(&slot, 1), &request) != Outcome::kDone) _exit(3);
    Bytes size = 0;
    Outcome outcome = Outcome::kAgain;
    while (outcome == Outcome::kAgain) outcome = receiver->Test(request, std::span(&size, 1));
    if (outcome == Outcome::kFailed) _exit(0);
    std::memset(expected.data(), number, kMessage);
    if (std::memcmp(room.data(), expected.data(), kMessage) != 0) _exit(4);
    if (size != kMessage) _exit(5);
  }
}

/// A peer in a process of its own, and the sender to it.
class RdmaFaults : public testing::Test {
 protected:
  explicit RdmaFaults(Nanoseconds dead_after = kDeadAfter) : dead_after_(dead_after) {}

  void SetUp() override {
    descriptors_ = Descriptors();
    int pipes[2];
    ASSERT_EQ(pipe(pipes), 0);
    peer_ = fork();
    if (peer_ == 0) Serve(pipes[1], dead_after_);
    Handle handle;
    ASSERT_EQ(read(pipes[0], handle.bytes.data(), handle.bytes.size()), static_cast<ssize_t>(handle.bytes.size()));
    close(pipes[0]);
    close(pipes[1]);
    end_ = std::make_unique<VmEnd>("=rxe0", "left/1", Bound(dead_after_));
    auto connector = end_->Connect(handle);
    ASSERT_TRUE(Within(20 * kSecond, [&] {
      sender_ = std::move(connector->Poll().value());
      return sender_ != nullptr;
    }));
  }

  void TearDown() override {
    sender_.reset();
    if (end_ != nullptr) {
      EXPECT_EQ(end_->port->registrations().ranges(), 0u);
    }
    end_.reset();
    if (peer_ > 0) {
      kill(peer_, SIGKILL);
      waitpid(peer_, nullptr, 0);
    }
    EXPECT_EQ(Descriptors(), descriptors_);
  }

  /// Sends messages one after the other for so long, or until the channel fails.
  Outcome SendFor(Nanoseconds span) {
    Outcome outcome = Outcome::kDone;
    const Nanoseconds end = SteadyClock().Now() + span;
    while (outcome != Outcome::kFailed && SteadyClock().Now() < end) {
      if (request_ == nullptr) {
        std::memset(data_.data(), sent_, data_.size());
        const Part part{data_.data(), data_.size(), {}};
        outcome = sender_->Isend(std::span(&part, 1), 0, &request_);
      } else if (outcome = sender_->Test(request_, {}); outcome == Outcome::kDone) {
        request_ = nullptr;
        sent_++;
      }
    }
    return outcome;
  }

  const Nanoseconds dead_after_;
  std::size_t descriptors_ = 0;
  pid_t peer_ = -1;
  std::unique_ptr<VmEnd> end_;
  std::unique_ptr<Sender> sender_;
  std::vector<std::byte> data_ = std::vector<std::byte>(kMessage);
  Request* request_ = nullptr;
  int sent_ = 0;
};

/// The bound that users have: the device repeats each 0.54 s and has to get through more than once within it.
class RdmaFlaps : public RdmaFaults {
 protected:
  RdmaFlaps() : RdmaFaults(RdmaOptions().dead_after) {}
};

TEST_F(RdmaFaults, AKilledPeerIsNoticed) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  kill(peer_, SIGKILL);
  ASSERT_EQ(SendFor(20 * kSecond), Outcome::kFailed);
  EXPECT_EQ(sender_->failure().code(), StatusCode::kUnavailable);
  EXPECT_NE(sender_->failure().message().find("left/1, sending to right/2"), std::string::npos);
  EXPECT_NE(sender_->failure().message().find("the peer closed the channel"), std::string::npos)
      << sender_->failure().message();
}

TEST_F(RdmaFaults, AStoppedPeerIsSlowAndNotDead) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  kill(peer_, SIGSTOP);
  EXPECT_NE(SendFor(2 * kDeadAfter), Outcome::kFailed) << sender_->failure().ToString();
  const int before = sent_;
  kill(peer_, SIGCONT);
  EXPECT_TRUE(Within(20 * kSecond, [&] { return SendFor(kSecond) == Outcome::kFailed || sent_ > before + 2; }));
  EXPECT_GT(sent_, before + 2) << sender_->failure().ToString();
}

TEST_F(RdmaFaults, ACutLinkIsNoticed) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  Shell("/usr/sbin/tc qdisc add dev va root netem loss 100% && /usr/sbin/tc qdisc add dev vb root netem loss 100%");
  const Outcome outcome = SendFor(20 * kSecond);
  Shell("/usr/sbin/tc qdisc del dev va root && /usr/sbin/tc qdisc del dev vb root");
  ASSERT_EQ(outcome, Outcome::kFailed);
  EXPECT_EQ(sender_->failure().code(), StatusCode::kUnavailable);
  EXPECT_NE(sender_->failure().message().find("the link is dead"), std::string::npos) << sender_->failure().message();
}

TEST_F(RdmaFlaps, AShortFlapLosesNothing) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  for (int i = 0; i < 3; ++i) {
    Shell("/usr/sbin/tc qdisc add dev va root netem loss 100%");
    EXPECT_NE(SendFor(300 * kMillisecond), Outcome::kFailed) << sender_->failure().ToString();
    Shell("/usr/sbin/tc qdisc del dev va root");
    const int before = sent_;
    EXPECT_TRUE(
        Within(20 * kSecond, [&] { return SendFor(100 * kMillisecond) == Outcome::kFailed || sent_ > before; }));
    EXPECT_GT(sent_, before) << sender_->failure().ToString();
  }
  int status = 0;
  EXPECT_EQ(waitpid(peer_, &status, WNOHANG), 0) << "the peer found a wrong byte: " << WEXITSTATUS(status);
}

/// Had been taken for a dead link: flaps can take all that TCP repeats within the bound, ever more rarely as it does.
TEST_F(RdmaFaults, AMuteSideConnectionEndsNothingWhileTheDeviceMovesData) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  for (const char* end : {"va", "vb"}) {
    const std::string change = std::string("/usr/sbin/tc qdisc add dev ") + end;
    Shell((change + " root handle 1: prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0").c_str());
    Shell((change + " parent 1:3 netem loss 100%").c_str());
    const std::string filter = std::string("/usr/sbin/tc filter add dev ") + end;
    Shell((filter + " parent 1: protocol ip u32 match ip protocol 6 0xff flowid 1:3").c_str());
  }
  EXPECT_NE(SendFor(3 * kDeadAfter), Outcome::kFailed) << sender_->failure().ToString();
  Shell("/usr/sbin/tc qdisc del dev va root && /usr/sbin/tc qdisc del dev vb root");
  const int before = sent_;
  EXPECT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  EXPECT_GT(sent_, before);
}

/// Had been taken for a dead device: what it got done meanwhile lay there to be found.
TEST_F(RdmaFaults, AnOwnerThatWasAwayForLongerThanTheBoundGoesOn) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  while (request_ == nullptr) ASSERT_NE(SendFor(kMillisecond), Outcome::kFailed) << sender_->failure().ToString();
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * kDeadAfter));
  const int before = sent_;
  EXPECT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  EXPECT_GT(sent_, before);
}

/// As virtual machines have it that are halted: nothing was done in that time, by devices or by anybody.
TEST_F(RdmaFaults, SilenceWhileNobodyLooksIsNotHeldAgainstTheLink) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  Shell("/usr/sbin/tc qdisc add dev va root netem loss 100%");
  while (request_ == nullptr) ASSERT_NE(SendFor(kMillisecond), Outcome::kFailed) << sender_->failure().ToString();
  kill(peer_, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::nanoseconds(5 * kDeadAfter / 4));
  kill(peer_, SIGCONT);
  EXPECT_NE(SendFor(kDeadAfter / 20), Outcome::kFailed) << sender_->failure().ToString();
  Shell("/usr/sbin/tc qdisc del dev va root");
  const int before = sent_;
  EXPECT_TRUE(Within(20 * kSecond, [&] { return SendFor(kSecond) == Outcome::kFailed || sent_ > before; }));
  EXPECT_GT(sent_, before) << sender_->failure().ToString();
}

TEST_F(RdmaFaults, APortThatGoesDownFailsOrGoesOnAndNeverHangs) {
  ASSERT_NE(SendFor(kSecond), Outcome::kFailed) << sender_->failure().ToString();
  Shell("/usr/sbin/ip link set va down");
  const Outcome down = SendFor(500 * kMillisecond);
  Shell(
      "/usr/sbin/ip link set va up && /usr/sbin/ip route replace 10.77.0.2/32 dev va src 10.77.0.1 table 101 && "
      "/usr/sbin/ip neigh replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev va nud permanent");
  if (down != Outcome::kFailed) {
    const int before = sent_;
    EXPECT_TRUE(Within(30 * kSecond, [&] { return SendFor(kSecond) == Outcome::kFailed || sent_ > before; }));
  }
  if (!sender_->failure().ok()) {
    EXPECT_EQ(sender_->failure().code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace weir::transport::rdma
