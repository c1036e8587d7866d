// The design of NCCL's socket transport in a program of its own, for comparison: what a job gets that uses no plugin.
//
//   weir-socket-rival serve PORT
//   weir-socket-rival send HOST PORT SIZE SECONDS THREADS SOCKETS WINDOW
//   weir-socket-rival ping HOST PORT SIZE SECONDS THREADS SOCKETS
//   weir-socket-rival cores
//
// A channel is a control connection and THREADS * SOCKETS for data (NCCL_SOCKET_NTHREADS, NCCL_NSOCKS_PERTHREAD). Of a
// window of messages, the oldest alone is tested, as NCCL's proxy does. Testing it sends its size on the control
// connection, and then cuts it into equal pieces of at least 64 KiB, one for each data connection in turn; helper
// threads poll those. Without helpers (THREADS 0) the bytes follow the size on the control connection. Sender and
// receiver have a buffer for each message of the window, as weir-perf has. Prints a line of JSON.
//
// "cores" prints how many nanoseconds a cache line takes from one core to another. In a virtual machine that changes
// with where the host puts its cores: near, they share a cache; far, whatever one copies for the other takes three
// times as long.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/process_time.h"

namespace {

using weir::bench::CpuSeconds;
using weir::bench::Now;

constexpr std::size_t kPieceMin = 64 * 1024;
constexpr std::size_t kMemoryMax = 64u << 20;  ///< Of all buffers of one end, as weir-perf.

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "weir-socket-rival: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

/// Moves what goes now; false when that is nothing.
bool Move(int fd, bool sending, char* data, std::size_t size, std::size_t* done) {
  const ssize_t moved = sending ? send(fd, data + *done, size - *done, MSG_DONTWAIT | MSG_NOSIGNAL)
                                : recv(fd, data + *done, size - *done, MSG_DONTWAIT);
  if (moved == 0) {
    errno = ECONNRESET;
    Die("the other end went away");
  }
  if (moved < 0 && errno != EAGAIN && errno != EINTR) Die("cannot move bytes");
  if (moved > 0) *done += static_cast<std::size_t>(moved);
  return moved > 0;
}

/// A piece of a message on one connection.
struct Piece {
  int fd = -1;
  char* data = nullptr;
  std::size_t size = 0;
  std::atomic<std::size_t> done{0};
};

/// One helper thread: tries each of its pieces once and again while any is left, and sleeps when none is.
class Helper {
 public:
  explicit Helper(bool sending) : sending_(sending), thread_([this] { Run(); }) {}
  ~Helper() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  void Add(Piece* piece) {
    {
      const std::lock_guard lock(mutex_);
      added_.push_back(piece);
    }
    wake_.notify_one();
  }

 private:
  void Run() {
    std::vector<Piece*> mine;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        if (mine.empty()) wake_.wait(lock, [this] { return stop_ || !added_.empty(); });
        if (stop_) return;
        mine.insert(mine.end(), added_.begin(), added_.end());
        added_.clear();
      }
      for (Piece* piece : mine) {
        std::size_t done = piece->done.load(std::memory_order_relaxed);
        while (done < piece->size && Move(piece->fd, sending_, piece->data, piece->size, &done)) {
        }
        piece->done.store(done, std::memory_order_release);
      }
      std::erase_if(mine,
                    [](const Piece* piece) { return piece->done.load(std::memory_order_relaxed) == piece->size; });
    }
  }

  bool sending_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Piece*> added_;
  bool stop_ = false;
  std::thread thread_;
};

/// A message under way.
struct Request {
  char* data = nullptr;
  std::uint32_t size = 0;
  std::size_t size_done = 0;  ///< Bytes of the size that went over the control connection.
  bool cut = false;
  std::size_t direct = 0;  ///< Without helpers: bytes of the message that went.
  std::size_t pieces = 0;
};

/// One direction.
class Channel {
 public:
  Channel(bool sending, int control, std::vector<int> data, std::size_t threads)
      : sending_(sending), control_(control), data_(std::move(data)), pieces_(data_.size()) {
    for (std::size_t i = 0; i < threads; ++i) helpers_.push_back(std::make_unique<Helper>(sending));
  }

  /// Makes progress with the oldest message; true when it is over.
  bool Test(Request* request) {
    char* size = reinterpret_cast<char*>(&request->size);
    if (request->size_done < sizeof(request->size)) {
      Move(control_, sending_, size, sizeof(request->size), &request->size_done);
      if (request->size_done < sizeof(request->size)) return false;
    }
    if (helpers_.empty()) {
      if (request->direct < request->size) Move(control_, sending_, request->data, request->size, &request->direct);
      return request->direct == request->size;
    }
    if (!request->cut) Cut(request);
    return std::all_of(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(request->pieces),
                       [](const Piece& piece) { return piece.done.load(std::memory_order_acquire) == piece.size; });
  }

 private:
  void Cut(Request* request) {
    request->cut = true;
    const std::size_t each = std::max(kPieceMin, (request->size + data_.size() - 1) / data_.size());
    for (std::size_t at = 0; at < request->size; at += each) {
      const std::size_t connection = next_++ % data_.size();
      Piece& piece = pieces_[request->pieces++];
      piece.fd = data_[connection];
      piece.data = request->data + at;
      piece.size = std::min(each, request->size - at);
      piece.done.store(0, std::memory_order_relaxed);
      helpers_[connection % helpers_.size()]->Add(&piece);
    }
  }

  bool sending_;
  int control_;
  std::vector<int> data_;
  std::deque<Piece> pieces_;  ///< Of the oldest message.
  std::vector<std::unique_ptr<Helper>> helpers_;
  std::size_t next_ = 0;
};

/// Moves messages of `size` bytes through a window of buffers; a sender ends with one of no bytes.
class Window {
 public:
  Window(Channel* channel, std::size_t size, std::size_t window) : channel_(*channel), size_(size) {
    const std::size_t fit = std::clamp<std::size_t>(kMemoryMax / std::max<std::size_t>(size, 1), 1, window);
    for (std::size_t i = 0; i < fit; ++i) buffers_.emplace_back(std::max<std::size_t>(size, 1), 'z');
  }
  /// One message, or the end. Returns its size.
  std::uint32_t One(std::size_t size) {
    Request request;
    request.data = buffers_[next_++ % buffers_.size()].data();
    request.size = static_cast<std::uint32_t>(size);
    while (!channel_.Test(&request)) std::this_thread::yield();
    return request.size;
  }
  std::uint32_t One() { return One(size_); }
  /// Each buffer once, so that nothing that is measured is the first to touch memory.
  void WarmUp() {
    for (std::size_t i = 0; i < buffers_.size(); ++i) One();
  }

 private:
  Channel& channel_;
  std::size_t size_;
  std::vector<std::vector<char>> buffers_;
  std::size_t next_ = 0;
};

/// What the sending side asks for: the first bytes of the first connection.
struct Ask {
  std::uint64_t ping = 0;
  std::uint64_t size = 0;
  std::uint64_t threads = 0;
  std::uint64_t sockets = 0;
  std::uint64_t window = 1;
};

int NoDelay(int fd) {
  const int yes = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0) Die("cannot connect");
  return fd;
}

std::unique_ptr<Channel> MakeChannel(bool sending, const Ask& ask, const std::vector<int>& fds, std::size_t from) {
  const std::size_t count = ask.threads * ask.sockets;
  const auto begin = fds.begin() + static_cast<std::ptrdiff_t>(from);
  return std::make_unique<Channel>(
      sending, *begin, std::vector<int>(begin + 1, begin + 1 + static_cast<std::ptrdiff_t>(count)), ask.threads);
}

int Serve(int port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof(at)) != 0 || listen(listener, 128) != 0) Die("listen");
  std::puts("ready");
  std::fflush(stdout);
  const int first = NoDelay(accept(listener, nullptr, nullptr));
  Ask ask;
  if (recv(first, &ask, sizeof(ask), MSG_WAITALL) != sizeof(ask)) Die("no test was asked for");
  std::vector<int> fds;
  for (std::size_t i = 0; i < 2 * (ask.threads * ask.sockets + 1); ++i) {
    fds.push_back(NoDelay(accept(listener, nullptr, nullptr)));
  }
  const auto in = MakeChannel(false, ask, fds, 0);
  const auto out = MakeChannel(true, ask, fds, fds.size() / 2);
  Window from(in.get(), ask.size, ask.window);
  Window to(out.get(), ask.size, 1);
  if (ask.ping == 0) from.WarmUp();
  const double cpu = CpuSeconds();
  while (from.One() != 0) {
    if (ask.ping != 0) to.One();
  }
  const double used = CpuSeconds() - cpu;
  if (send(first, &used, sizeof(used), MSG_NOSIGNAL) != sizeof(used)) Die("the other end went away");
  return 0;
}

int Client(const char* host, int port, const Ask& ask, double seconds) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, host, &at.sin_addr) != 1) Die("HOST is an IPv4 address");
  const auto join = [&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) != 0) Die("cannot connect");
    return NoDelay(fd);
  };
  const int first = join();
  if (send(first, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask)) Die("cannot ask");
  std::vector<int> fds;
  for (std::size_t i = 0; i < 2 * (ask.threads * ask.sockets + 1); ++i) fds.push_back(join());
  const auto out = MakeChannel(true, ask, fds, 0);
  const auto in = MakeChannel(false, ask, fds, fds.size() / 2);
  Window to(out.get(), ask.size, ask.window);
  Window from(in.get(), ask.size, 1);
  std::vector<double> halves;
  if (ask.ping == 0) to.WarmUp();
  const double cpu = CpuSeconds();
  const double begin = Now();
  std::uint64_t messages = 0;
  for (double now = begin; now - begin < seconds; ++messages) {
    to.One();
    if (ask.ping != 0) from.One();
    const double then = Now();
    halves.push_back((then - now) / 2 * 1e6);
    now = then;
  }
  to.One(0);
  double used = 0;
  if (recv(first, &used, sizeof(used), MSG_WAITALL) != sizeof(used)) Die("no answer");
  const double span = Now() - begin;
  used += CpuSeconds() - cpu;
  const double bytes = static_cast<double>(messages) * static_cast<double>(ask.size);
  std::sort(halves.begin(), halves.end());
  std::printf("{\"bits_per_second\": %.0f, \"cpu_seconds_per_gb\": %.4f, \"latency_p50_us\": %.2f}\n", bytes * 8 / span,
              used / (bytes * 1e-9), halves[halves.size() / 2]);
  return 0;
}

void StayOn(std::size_t core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) Die("cannot stay on a core");
}

/// Nanoseconds that a word takes from core 0 to core 1 or back.
int Cores() {
  constexpr int kTurns = 50'000;
  alignas(128) std::atomic<int> word{0};
  std::thread other([&word] {
    StayOn(1);
    for (int turn = 0; turn < kTurns; ++turn) {
      while (word.load() != 2 * turn + 1) {
      }
      word.store(2 * turn + 2);
    }
  });
  StayOn(0);
  const double begin = Now();
  for (int turn = 0; turn < kTurns; ++turn) {
    word.store(2 * turn + 1);
    while (word.load() != 2 * turn + 2) {
    }
  }
  const double span = Now() - begin;
  other.join();
  std::printf("%.0f\n", span / kTurns / 2 * 1e9);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "cores" && argc == 2) return Cores();
  if (command == "serve" && argc == 3) return Serve(std::atoi(argv[2]));
  const auto number = [&](int at) { return static_cast<std::uint64_t>(std::strtoull(argv[at], nullptr, 10)); };
  if (command == "send" && argc == 9) {
    return Client(argv[2], std::atoi(argv[3]), {0, number(4), number(6), number(7), number(8)}, std::atof(argv[5]));
  }
  if (command == "ping" && argc == 8) {
    return Client(argv[2], std::atoi(argv[3]), {1, number(4), number(6), number(7), 1}, std::atof(argv[5]));
  }
  std::fprintf(stderr,
               "usage: weir-socket-rival serve PORT\n"
               "       weir-socket-rival send HOST PORT SIZE SECONDS THREADS SOCKETS WINDOW\n"
               "       weir-socket-rival ping HOST PORT SIZE SECONDS THREADS SOCKETS\n"
               "       weir-socket-rival cores\n");
  return 2;
}
