// A program that knows nothing of Weir and sends in every way a program may; run under the preload library by
// preload_test. Usage: preload_driver MODE PORT BYTES. Prints key=value pairs on one line; exits 0 if all was as a
// program may expect.
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

[[noreturn]] void Fail(const char* what) {
  std::printf("failed=%s errno=%d\n", what, errno);
  std::exit(1);
}

int Connect(int port, int flags = 0, bool mapped = false) {
  const int fd = socket(mapped ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (fd < 0) Fail("socket");
  sockaddr_storage storage = {};
  socklen_t length = 0;
  if (mapped) {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &address.sin6_addr);
    std::memcpy(&storage, &address, length = sizeof address);
  } else {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    std::memcpy(&storage, &address, length = sizeof address);
  }
  if (connect(fd, reinterpret_cast<sockaddr*>(&storage), length) != 0) Fail("connect");
  if (flags != 0) fcntl(fd, F_SETFL, flags);
  return fd;
}

std::vector<char> Pattern(size_t bytes) {
  std::vector<char> data(bytes);
  unsigned state = 1;
  for (char& c : data) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return data;
}

struct Counts {
  long again = 0;
  long waits = 0;
};

/// Sends `data` on the non-blocking `fd`; `wait` returns when it may be writable.
Counts SendAll(int fd, const std::vector<char>& data, const std::function<void()>& wait) {
  Counts counts;
  for (size_t at = 0; at < data.size();) {
    iovec parts[2] = {{const_cast<char*>(data.data()) + at, std::min<size_t>(48, data.size() - at)}, {nullptr, 0}};
    parts[1] = {const_cast<char*>(data.data()) + at + parts[0].iov_len, data.size() - at - parts[0].iov_len};
    const ssize_t sent = writev(fd, parts, 2);
    if (sent >= 0) {
      at += static_cast<size_t>(sent);
      continue;
    }
    if (errno != EAGAIN) Fail("writev");
    ++counts.again;
    ++counts.waits;
    wait();
  }
  return counts;
}

void Report(const Counts& counts) {
  std::printf("again=%ld waits=%ld\n", counts.again, counts.waits);
}

void Epoll(int port, size_t bytes, uint32_t flags, bool mapped = false) {
  const int fd = Connect(port, O_NONBLOCK, mapped);
  const int set = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | flags;
  event.data.u64 = 0x1234567890abcdefu;
  if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) != 0) Fail("epoll_ctl");
  Report(SendAll(fd, Pattern(bytes), [&] {
    epoll_event got = {};
    if ((flags & EPOLLONESHOT) != 0 && epoll_ctl(set, EPOLL_CTL_MOD, fd, &event) != 0) Fail("re-arm");
    if (epoll_wait(set, &got, 1, 20000) != 1) Fail("epoll_wait");
    if (got.data.u64 != event.data.u64 || (got.events & EPOLLOUT) == 0) Fail("event");
  }));
}

void Poll(int port, size_t bytes) {
  const int fd = Connect(port, O_NONBLOCK);
  Report(SendAll(fd, Pattern(bytes), [&] {
    pollfd entry = {fd, POLLOUT, 0};
    if (poll(&entry, 1, 20000) != 1 || (entry.revents & POLLOUT) == 0) Fail("poll");
  }));
}

void Select(int port, size_t bytes) {
  const int fd = Connect(port, O_NONBLOCK);
  Report(SendAll(fd, Pattern(bytes), [&] {
    fd_set writable;
    FD_ZERO(&writable);
    FD_SET(fd, &writable);
    timeval timeout = {20, 0};
    if (select(fd + 1, nullptr, &writable, nullptr, &timeout) != 1 || !FD_ISSET(fd, &writable)) Fail("select");
    if (timeout.tv_sec > 20 || timeout.tv_sec < 0) Fail("select timeout");
  }));
}

/// Waits for nothing: tries again and again.
void Spin(int port, size_t bytes) {
  const int fd = Connect(port, O_NONBLOCK);
  Report(SendAll(fd, Pattern(bytes), [] {}));
}

void SendBlocking(int fd, const std::vector<char>& data) {
  for (size_t at = 0; at < data.size();) {
    const ssize_t sent = send(fd, data.data() + at, data.size() - at, MSG_NOSIGNAL);
    if (sent < 0) Fail("send");
    at += static_cast<size_t>(sent);
  }
}

void Blocking(int port, size_t bytes) {
  SendBlocking(Connect(port), Pattern(bytes));
  std::printf("sent=%zu\n", bytes);
}

/// Small messages on a data socket, one at a time, while the gate may be closed.
void Small(int port, size_t bytes) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  std::printf("primed=1\n");
  std::fflush(stdout);
  sleep(1);  // The test closes the gate here.
  for (int i = 0; i < 100; ++i) SendBlocking(fd, Pattern(500));
  std::printf("small=100\n");
}

void SendTimeout(int port, size_t bytes) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  sleep(1);
  const timeval limit = {0, 200000};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const ssize_t sent = send(fd, Pattern(bytes).data(), bytes, 0);
  std::printf("result=%zd again=%d\n", sent, sent < 0 && errno == EAGAIN);
}

void Signal(int port, size_t bytes) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  sleep(1);
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  alarm(1);
  SendBlocking(fd, Pattern(bytes));  // Held; the alarm lets it through.
  std::printf("sent=2\n");
}

/// The same descriptor number, another connection, by `how`.
void Reuse(int port, size_t bytes, const std::string& how) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  if (how == "reuse-dup2") {
    const int other = Connect(port);
    if (dup2(other, fd) != fd) Fail("dup2");
    close(other);
  } else {
    if (how == "reuse-raw") syscall(SYS_close, fd);
    if (how == "reuse-range") syscall(SYS_close_range, fd, fd, 0);
    if (Connect(port) != fd) Fail("number");
  }
  usleep(20000);
  SendBlocking(fd, Pattern(bytes));
  std::printf("sent=2\n");
}

void Fork(int port, size_t bytes) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  const pid_t child = fork();
  if (child == 0) {
    SendBlocking(Connect(port), Pattern(bytes));
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  SendBlocking(fd, Pattern(bytes));
  std::printf("child=%d\n", status);
}

void ForkBomb(int port, size_t bytes) {
  std::vector<pid_t> children;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      SendBlocking(Connect(port), Pattern(bytes));
      _exit(0);
    }
    if (child > 0) children.push_back(child);
  }
  int bad = 0;
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    bad += status != 0;
  }
  std::printf("children=%zu bad=%d\n", children.size(), bad);
}

void CloseAll(int port, size_t bytes) {
  SendBlocking(Connect(port), Pattern(bytes));
  for (int fd = 3; fd < 1024; ++fd) close(fd);
  SendBlocking(Connect(port), Pattern(bytes));
  syscall(SYS_close_range, 3, ~0u, 0);
  SendBlocking(Connect(port), Pattern(bytes));
  std::printf("sent=3\n");
}

void Short(int port, size_t) {
  for (int i = 0; i < 10000; ++i) {
    const int fd = Connect(port);
    SendBlocking(fd, Pattern(100));
    const linger hard = {1, 0};  // no TIME_WAIT: ports are few
    if (i % 100 != 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
  }
  std::printf("connections=10000\n");
}

void Threads(int port, size_t bytes) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { SendBlocking(Connect(port), Pattern(bytes)); });
  for (std::thread& thread : threads) thread.join();
  std::printf("threads=8\n");
}

/// Hands the socket to a child through a Unix socket; the child sends.
void Handed(int port, size_t bytes) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) Fail("socketpair");
  const pid_t child = fork();
  char byte = 0;
  iovec part = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (child == 0) {
    if (recvmsg(ends[1], &message, 0) != 1) _exit(2);
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    SendBlocking(fd, Pattern(bytes));
    _exit(0);
  }
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  if (sendmsg(ends[0], &message, 0) != 1) Fail("sendmsg");
  int status = 1;
  waitpid(child, &status, 0);
  std::printf("child=%d\n", status);
}

/// A large write of a held, registered socket, so that its readiness is masked. Returns once it was refused.
void GetRefused(int fd, const std::vector<char>& data) {
  while (send(fd, data.data(), data.size(), 0) >= 0) usleep(1000);
  if (errno != EAGAIN) Fail("refused send");
}

/// A child that borrows our memory closes what it does not need, as launchers of programs do; the socket must still be
/// let go.
void VforkCloses(int port, size_t bytes) {
  const int fd = Connect(port, O_NONBLOCK);
  const int set = epoll_create1(0);
  epoll_event event = {};
  event.events = EPOLLOUT;
  epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
  const std::vector<char> data = Pattern(bytes);
  GetRefused(fd, data);
  const pid_t child = vfork();
  if (child == 0) {
    close(fd);
    close(set);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  std::printf("refused=1\n");
  std::fflush(stdout);
  if (epoll_wait(set, &event, 1, 20000) != 1) Fail("epoll_wait");
  std::printf("let_go=1\n");
}

/// A child, made past libc's fork, waits for a socket that its parent was refused: it is not held.
void CloneWaits(int port, size_t bytes) {
  const int fd = Connect(port, O_NONBLOCK);
  GetRefused(fd, Pattern(bytes));
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  if (child == 0) {
    pollfd entry = {fd, POLLOUT, 0};
    _exit(poll(&entry, 1, 2000) == 1 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  std::printf("child=%d\n", status);
}

/// Threads are cancelled in the middle of a blocking write; the descriptor goes on to be usable.
void Cancel(int port, size_t bytes) {
  const int fd = Connect(port);
  const std::vector<char> data = Pattern(bytes);
  for (int i = 0; i < 20; ++i) {
    std::pair<int, const std::vector<char>*> job{fd, &data};
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
      const auto* work = static_cast<std::pair<int, const std::vector<char>*>*>(argument);
      for (;;) [[maybe_unused]] const ssize_t sent = write(work->first, work->second->data(), work->second->size());
    };
    if (pthread_create(&thread, nullptr, run, &job) != 0) Fail("pthread_create");
    usleep(2000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) Fail("cancel");
  }
  SendBlocking(fd, data);
  std::printf("cancelled=20\n");
}

/// A handler that writes interrupts everything else that happens, for a second.
void SignalStorm(int port, size_t bytes) {
  static int side = -1;
  side = Connect(port, O_NONBLOCK);
  static const std::vector<char> large = Pattern(20000);
  // The very first burst starts a thread, which no handler may do. It may find the gate closed.
  SendAll(side, large, [] {
    pollfd writable = {side, POLLOUT, 0};
    poll(&writable, 1, 100);
  });
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int saved = errno;
    [[maybe_unused]] const ssize_t sent = write(side, large.data(), large.size());
    errno = saved;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 200; ++i) {
    const int fd = Connect(port, O_NONBLOCK);
    const int set = epoll_create1(0);
    epoll_event event = {};
    event.events = EPOLLOUT;
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    SendAll(fd, Pattern(bytes), [&] { epoll_wait(set, &event, 1, 100); });
    close(fd);
    close(set);
  }
  const itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("rounds=200\n");
}

/// Standard error is closed and its number becomes a socket: only what the program writes may go out there.
void SocketAsStandardError(int port, size_t bytes) {
  close(STDERR_FILENO);
  const int fd = Connect(port);
  if (fd != STDERR_FILENO) Fail("number");
  SendBlocking(fd, Pattern(bytes));
  std::printf("sent=1\n");
}

/// Names its job only when it runs.
void LateJob(int port, size_t bytes) {
  setenv("MASTER_ADDR", "10.0.0.1", 1);
  setenv("MASTER_PORT", "29500", 1);
  SendBlocking(Connect(port), Pattern(bytes));
}

/// The whole of a file of `bytes`, asking for more than there is.
void SendFile(int port, size_t bytes) {
  const int fd = Connect(port);
  char name[] = "/tmp/weir-driver-XXXXXX";
  const int file = mkstemp(name);
  unlink(name);
  const std::vector<char> data = Pattern(bytes);
  if (write(file, data.data(), data.size()) != static_cast<ssize_t>(data.size())) Fail("file");
  off_t offset = 0;
  while (offset < static_cast<off_t>(bytes)) {
    if (sendfile(fd, file, &offset, 1 << 30) <= 0) Fail("sendfile");
  }
  std::printf("sent=1\n");
}

/// Prints the socket's pacing rate before, while the test has set one, and after.
void Options(int port, size_t bytes) {
  const int fd = Connect(port);
  SendBlocking(fd, Pattern(bytes));
  for (int i = 0; i < 3; ++i) {
    uint64_t rate = 0;
    socklen_t length = sizeof rate;
    getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &length);
    std::printf("rate%d=%llu\n", i, static_cast<unsigned long long>(rate));
    std::fflush(stdout);
    if (i < 2) sleep(1);
  }
}

/// A connection to ourselves over IPv6; its other end stays open and unread.
int ConnectV6() {
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, 1) != 0) Fail("listen");
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || accept(listener, nullptr, nullptr) < 0) {
    Fail("connect");
  }
  return fd;
}

/// Prints how a data socket is marked, once it is; the test marks it.
void Marks(int fd, size_t bytes) {
  SendBlocking(fd, Pattern(bytes));
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    getsockopt(fd, level, name, &value, &length);
    return value;
  };
  for (int i = 0; i < 1000 && option(SOL_SOCKET, SO_PRIORITY) != 5; ++i) usleep(10000);
  std::printf("tos=%d class=%d priority=%d\n", option(IPPROTO_IP, IP_TOS), option(IPPROTO_IPV6, IPV6_TCLASS),
              option(SOL_SOCKET, SO_PRIORITY));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string mode = argv[1];
  const int port = std::atoi(argv[2]);
  const size_t bytes = static_cast<size_t>(std::atoll(argv[3]));
  signal(SIGPIPE, SIG_IGN);
  const std::map<std::string, std::function<void()>> modes = {
      {"epoll", [&] { Epoll(port, bytes, 0); }},
      {"epoll-edge", [&] { Epoll(port, bytes, EPOLLET); }},
      {"epoll-oneshot", [&] { Epoll(port, bytes, EPOLLONESHOT); }},
      {"epoll-mapped", [&] { Epoll(port, bytes, 0, true); }},
      {"poll", [&] { Poll(port, bytes); }},
      {"select", [&] { Select(port, bytes); }},
      {"spin", [&] { Spin(port, bytes); }},
      {"blocking", [&] { Blocking(port, bytes); }},
      {"small", [&] { Small(port, bytes); }},
      {"timeout", [&] { SendTimeout(port, bytes); }},
      {"signal", [&] { Signal(port, bytes); }},
      {"reuse-dup2", [&] { Reuse(port, bytes, mode); }},
      {"reuse-raw", [&] { Reuse(port, bytes, mode); }},
      {"reuse-range", [&] { Reuse(port, bytes, mode); }},
      {"fork", [&] { Fork(port, bytes); }},
      {"forkbomb", [&] { ForkBomb(port, bytes); }},
      {"closeall", [&] { CloseAll(port, bytes); }},
      {"short", [&] { Short(port, bytes); }},
      {"threads", [&] { Threads(port, bytes); }},
      {"handed", [&] { Handed(port, bytes); }},
      {"vfork-closes", [&] { VforkCloses(port, bytes); }},
      {"clone-waits", [&] { CloneWaits(port, bytes); }},
      {"cancel", [&] { Cancel(port, bytes); }},
      {"signal-storm", [&] { SignalStorm(port, bytes); }},
      {"socket-as-stderr", [&] { SocketAsStandardError(port, bytes); }},
      {"late-job", [&] { LateJob(port, bytes); }},
      {"sendfile", [&] { SendFile(port, bytes); }},
      {"options", [&] { Options(port, bytes); }},
      {"marks", [&] { Marks(Connect(port), bytes); }},
      {"marks-mapped", [&] { Marks(Connect(port, 0, true), bytes); }},
      {"marks-v6", [&] { Marks(ConnectV6(), bytes); }},
  };
  const auto found = modes.find(mode);
  if (found == modes.end()) return 2;
  found->second();
  return 0;
}
