#include "tests/agents/preload/fake_agent.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "agents/client/attachment.h"
#include "coflow/check.h"

namespace weir::testing {
namespace {

using client::NowNs;

constexpr std::int64_t kAhead_ns = 60'000'000'000;

void SleepMs(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

int MakeMemfd(std::size_t size) {
  const int fd = memfd_create("weir-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  WEIR_CHECK(fd >= 0 && ftruncate(fd, static_cast<off_t>(size)) == 0);
  WEIR_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  return fd;
}

void* Map(int fd, std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  WEIR_CHECK(memory != MAP_FAILED);
  return memory;
}

bool Readable(int fd, int timeout_ms) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) > 0;
}

/// Our own environment with the variables of `ours` ("NAME=value") put in or in place; ends with nullptr.
std::vector<char*> Overlay(const std::vector<std::string>& ours) {
  std::vector<char*> all;
  for (const std::string& each : ours) all.push_back(const_cast<char*>(each.c_str()));
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view name(*each, std::strcspn(*each, "=") + 1);
    if (std::ranges::none_of(ours, [&](const std::string& own) { return own.starts_with(name); })) all.push_back(*each);
  }
  all.push_back(nullptr);
  return all;
}

}  // namespace

bool WaitFor(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    SleepMs(1);
  }
  return true;
}

FakeAgent::FakeAgent() {
  char name[] = "/tmp/weir-preload-test-XXXXXX";
  WEIR_CHECK(mkdtemp(name) != nullptr);
  directory_ = name;
  socket_path_ = directory_ + "/agent.sock";
  doorbell_fd_ = MakeMemfd(sizeof(client::Doorbell));
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, socket_path_.c_str(), sizeof address.sun_path - 1);
  WEIR_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener_, 64) == 0);
  server_ = std::thread([this] { Serve(); });
  heart_ = std::thread([this] { Beat(); });
}

FakeAgent::~FakeAgent() {
  running_ = false;
  server_.join();
  heart_.join();
  close(listener_);
  close(doorbell_fd_);
  unlink(socket_path_.c_str());
  rmdir(directory_.c_str());
  for (const Process& process : processes_) munmap(process.segment, sizeof(client::Segment));
}

void FakeAgent::Serve() {
  while (running_) {
    if (!Readable(listener_, 50)) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    Answer(connection);
    close(connection);
  }
}

void FakeAgent::Answer(int connection) {
  client::AttachRequest request = {};
  if (recv(connection, &request, sizeof request, MSG_WAITALL) != static_cast<ssize_t>(sizeof request)) return;
  {
    const std::lock_guard lock(mutex_);
    if (refusal_.status != 0) return static_cast<void>(send(connection, &refusal_, sizeof refusal_, MSG_NOSIGNAL));
  }
  const int fd = MakeMemfd(sizeof(client::Segment));
  auto* segment = static_cast<client::Segment*>(Map(fd, sizeof(client::Segment)));
  segment->header.magic = client::kSegmentMagic;
  segment->header.version_major = client::kSegmentVersionMajor;
  segment->header.size = sizeof(client::Segment);
  for (client::LaneSlot& lane : segment->lanes) {
    lane.hold_until = NowNs() + 60'000'000'000;
    lane.gate = static_cast<std::uint32_t>(first_gate_.load());
  }
  client::AttachReply reply = {};
  reply.magic = client::kSegmentMagic;
  reply.version_major = client::kSegmentVersionMajor;
  reply.size = sizeof(client::Segment);
  iovec part = {&reply, sizeof reply};
  alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int fds[2] = {fd, doorbell_fd_};
  std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  {
    const std::lock_guard lock(mutex_);
    segment->header.heartbeat = NowNs() + (beating_ ? kAhead_ns : 0);
    processes_.push_back({segment, request});
  }
  // The process may be gone by now.
  [[maybe_unused]] const ssize_t sent = sendmsg(connection, &message, MSG_NOSIGNAL);
  close(fd);
}

void FakeAgent::Beat() {
  while (running_) {
    {
      const std::lock_guard lock(mutex_);
      for (const Process& process : processes_) {
        if (beating_) process.segment->header.heartbeat = NowNs() + kAhead_ns;
      }
    }
    SleepMs(20);
  }
}

void FakeAgent::StopBeating(std::int64_t last) {
  const std::lock_guard lock(mutex_);
  beating_ = false;
  for (const Process& process : processes_) process.segment->header.heartbeat = last;
}

void FakeAgent::Freeze() {
  StopBeating(NowNs());
}

void FakeAgent::Thaw() {
  const std::lock_guard lock(mutex_);
  beating_ = true;
}

std::size_t FakeAgent::attached() const {
  const std::lock_guard lock(mutex_);
  return processes_.size();
}

client::Segment* FakeAgent::segment(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return processes_.at(n).segment;
}

const client::AttachRequest& FakeAgent::request(std::size_t n) const {
  const std::lock_guard lock(mutex_);
  return processes_.at(n).request;
}

void FakeAgent::Wake(client::Segment* segment, std::uint32_t lane) {
  segment->header.generation.fetch_add(1);
  client::FutexWakeAll(&segment->header.generation);
  client::FutexWakeAll(&segment->lanes[lane].gate);
}

void FakeAgent::SetGate(std::size_t process, std::uint32_t lane, client::GateState gate, std::int64_t hold_for_ns) {
  client::Segment* shared = segment(process);
  shared->lanes[lane].hold_until = NowNs() + hold_for_ns;
  shared->lanes[lane].gate = static_cast<std::uint32_t>(gate);
  Wake(shared, lane);
}

void FakeAgent::SetPacing(std::size_t process, std::uint32_t lane, std::uint64_t rate, std::uint32_t lowat) {
  client::Segment* shared = segment(process);
  client::LaneSlot& slot = shared->lanes[lane];
  slot.sequence.fetch_add(1);
  slot.directive.pacing_rate = rate;
  slot.directive.notsent_lowat = lowat;
  slot.sequence.fetch_add(1);
  Wake(shared, lane);
}

void FakeAgent::SetMarks(std::size_t process, std::uint32_t lane, std::uint32_t marks) {
  client::Segment* shared = segment(process);
  client::LaneSlot& slot = shared->lanes[lane];
  slot.sequence.fetch_add(1);
  slot.directive.marks = marks;
  slot.sequence.fetch_add(1);
  Wake(shared, lane);
}

void FakeAgent::RefuseAll(std::uint16_t version, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  refusal_.magic = client::kSegmentMagic;
  refusal_.version_major = version;
  refusal_.status = version == client::kSegmentVersionMajor ? 2 : 1;
  std::strncpy(refusal_.reason, reason.c_str(), sizeof refusal_.reason - 1);
}

void FakeAgent::Release(std::size_t process) {
  StopBeating(NowNs());
  segment(process)->header.heartbeat = 0;
  Wake(segment(process), 0);
}

Sink::Sink() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  WEIR_CHECK(listener_ >= 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  WEIR_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
             listen(listener_, 512) == 0);
  WEIR_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  port_ = ntohs(address.sin_port);
  server_ = std::thread([this] { Serve(); });
}

Sink::~Sink() {
  running_ = false;
  server_.join();
  for (const Connection& connection : connections_) close(connection.fd);
  close(listener_);
}

void Sink::Serve() {
  buffer_.resize(1 << 16);
  std::vector<pollfd> waiting;
  while (running_) {
    waiting.assign(1, {listener_, POLLIN, 0});
    for (const Connection& connection : connections_) waiting.push_back({connection.fd, POLLIN, 0});
    if (poll(waiting.data(), waiting.size(), 50) <= 0) continue;
    std::vector<Connection> open;
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      if (waiting[i + 1].revents == 0 || Read(&connections_[i])) open.push_back(connections_[i]);
    }
    connections_ = std::move(open);
    if (waiting[0].revents == 0) continue;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd >= 0) connections_.push_back({fd, 14695981039346656037u});
  }
}

bool Sink::Read(Connection* connection) {
  const ssize_t got = recv(connection->fd, buffer_.data(), buffer_.size(), 0);
  for (ssize_t i = 0; i < got; ++i) {
    connection->hash =
        (connection->hash ^ static_cast<unsigned char>(buffer_[static_cast<std::size_t>(i)])) * 1099511628211u;
  }
  if (got > 0) {
    bytes_ += static_cast<std::uint64_t>(got);
    return true;
  }
  close(connection->fd);
  checksum_ += connection->hash;
  ++closed_;
  return false;
}

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  int ends[2];
  WEIR_CHECK(pipe2(ends, O_CLOEXEC) == 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  // Made before the fork: our agent's thread may hold the allocator's lock then, and in the child for ever.
  std::vector<char*> variables = Overlay(environment);
  pid_ = fork();
  WEIR_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    execvpe(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

Child::~Child() {
  if (!ended_) Wait(0);
  close(pipe_);
}

void Child::Reap(int status) {
  ended_ = true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  char buffer[4096];
  ssize_t got = 0;
  while (Readable(pipe_, 0) && (got = read(pipe_, buffer, sizeof buffer)) > 0) {
    output_.append(buffer, static_cast<std::size_t>(got));
  }
}

bool Child::Running() {
  if (ended_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) Reap(status);
  return !ended_;
}

int Child::Wait(double seconds) {
  if (ended_ || WaitFor([this] { return !Running(); }, seconds)) return status_;
  kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  Reap(status);
  return -1;
}

int Child::Finish(double seconds) {
  if (Running()) kill(pid_, SIGTERM);
  return Wait(seconds);
}

}  // namespace weir::testing
