// How fast a network plugin of NCCL's is, driven as NCCL's proxy does: two processes, one thread each, host memory.
//
//   weir-nccl-speed PLUGIN bandwidth SIZE SECONDS CONNECTIONS [NAMESPACE NAMESPACE]
//   weir-nccl-speed PLUGIN latency SIZE SECONDS 1 [NAMESPACE NAMESPACE]
//
// bandwidth: one way, eight messages under way on each connection, each in memory of its own; counted from the first
// send until the receiver has the last message. latency: half of a round trip over two connections, after a tenth of
// them as warm-up. CPU seconds are those of both processes, all threads of the plugin's included. The two are on this
// host, or in the namespaces. Prints a line of JSON.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "bench/process_time.h"
#include "tools/weir-perf/emulate/net.h"

namespace {

using weir::bench::CpuSeconds;
using weir::bench::Now;
using weir::tools::emulate::Net;
namespace abi = weir::nccl::abi;

constexpr std::size_t kWindow = 8;
constexpr std::size_t kConnectionsMax = 64;
constexpr double kPatience_s = 30;
constexpr int kTag = 1;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "weir-nccl-speed: %s\n", what.c_str());
  std::exit(1);
}

void Check(const char* call, abi::Result result) {
  if (result != abi::Result::kSuccess) Die(std::string(call) + " returned " + std::to_string(static_cast<int>(result)));
}

__attribute__((format(printf, 5, 6))) void Log(abi::LogLevel level, unsigned long, const char*, int, const char* format,
                                               ...) {
  if (level != abi::LogLevel::kWarn) return;
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}

struct Arguments {
  std::string plugin;
  bool latency = false;
  std::size_t size = 0;
  double seconds = 0;
  std::size_t connections = 1;
  std::array<std::string, 2> namespaces;
};

/// What both processes see. By end: 0 sends first, 1 receives first.
struct Shared {
  std::atomic<int> arrived{0};
  std::array<std::array<std::array<char, abi::kHandleBytes>, kConnectionsMax>, 2> handles{};  ///< Of who listens.
  std::atomic<bool> last_known{false};
  std::array<std::atomic<std::uint64_t>, kConnectionsMax> messages{};  ///< In all, once last_known.
  double begun = 0;
  double ended = 0;
  std::array<double, 2> cpu{};
  double half_us = 0;
};

/// One end of a connection, with a window of messages.
struct End {
  void* comm = nullptr;
  void* memory = nullptr;
  std::vector<char> data;
  std::array<void*, kWindow> requests{};
  std::uint64_t posted = 0;
  std::uint64_t done = 0;
};

class Process {
 public:
  Process(const Arguments& arguments, Shared* shared, std::size_t end)
      : arguments_(arguments), shared_(*shared), end_(end), senders_(SendersOf(end)), receivers_(SendersOf(1 - end)) {
    auto net = Net::Open(arguments.plugin, 0);
    if (!net) Die(net.error().message());
    net_ = std::move(*net);
  }

  void Run() {
    Check("init", net_->Init(&context_, 1, Log,
                             [](void**, abi::EventCall, void*, std::int64_t, void*) { return abi::Result::kSuccess; }));
    int devices = 0;
    Check("devices", net_->Devices(&devices));
    if (devices < 1) Die("the plugin has no device");
    Connect();
    Meet(2);
    const double cpu = CpuSeconds();
    if (arguments_.latency) {
      PingPong();
    } else if (end_ == 0) {
      Send();
    } else {
      Receive();
    }
    shared_.cpu[end_] = CpuSeconds() - cpu;
    Meet(3);
  }

 private:
  /// How many connections lead from `end` to the other one.
  std::size_t SendersOf(std::size_t end) const {
    return arguments_.latency ? 1 : end == 0 ? arguments_.connections : 0;
  }

  void Meet(int times) {
    shared_.arrived.fetch_add(1);
    const double until = Now() + arguments_.seconds + kPatience_s;
    while (shared_.arrived.load() < 2 * times) {
      if (Now() > until) Die("the other end did not come");
      usleep(100);
    }
  }

  void Connect() {
    std::vector<void*> listeners(receivers_.size());
    for (std::size_t i = 0; i < receivers_.size(); ++i) {
      Check("listen", net_->Listen(context_, 0, shared_.handles[end_][i].data(), &listeners[i]));
    }
    Meet(1);
    auto handles = shared_.handles[1 - end_];
    const double until = Now() + kPatience_s;
    for (bool all = false; !all;) {
      all = true;
      for (std::size_t i = 0; i < senders_.size(); ++i) {
        if (senders_[i].comm == nullptr)
          Check("connect", net_->Connect(context_, 0, handles[i].data(), &senders_[i].comm));
        all = all && senders_[i].comm != nullptr;
      }
      for (std::size_t i = 0; i < receivers_.size(); ++i) {
        if (receivers_[i].comm == nullptr) Check("accept", net_->Accept(listeners[i], &receivers_[i].comm));
        all = all && receivers_[i].comm != nullptr;
      }
      if (Now() > until) Die("connections were not made within 30 s");
    }
    for (auto* ends : {&senders_, &receivers_}) {
      for (End& one : *ends) {
        one.data.assign(kWindow * arguments_.size, 'w');
        Check("regMr", net_->Register(one.comm, one.data.data(), one.data.size(), &one.memory));
      }
    }
  }

  /// False: not now.
  bool PostSend(End* end) {
    void*& request = end->requests[end->posted % kWindow];
    char* data = end->data.data() + end->posted % kWindow * arguments_.size;
    request = nullptr;
    Check("isend", net_->Isend(end->comm, data, arguments_.size, kTag, end->memory, nullptr, &request));
    if (request != nullptr) ++end->posted;
    return request != nullptr;
  }

  bool PostReceive(End* end) {
    void*& request = end->requests[end->posted % kWindow];
    void* data = end->data.data() + end->posted % kWindow * arguments_.size;
    int tag = kTag;
    void* phandle = nullptr;
    request = nullptr;
    Check("irecv", net_->Irecv(end->comm, 1, &data, &arguments_.size, &tag, &end->memory, &phandle, &request));
    if (request != nullptr) ++end->posted;
    return request != nullptr;
  }

  /// Looks at the oldest that is under way.
  bool TestOldest(End* end) {
    if (end->done == end->posted) return false;
    int done = 0;
    std::array<int, Net::kReceivesMax> sizes{};
    Check("test", net_->Test(end->requests[end->done % kWindow], &done, sizes.data()));
    end->done += done != 0 ? 1 : 0;
    return done != 0;
  }

  void Send() {
    shared_.begun = Now();
    const double until = shared_.begun + arguments_.seconds;
    for (bool open = true, left = true; open || left;) {
      open = open && Now() < until;
      if (!open && !shared_.last_known.load()) {
        for (std::size_t i = 0; i < senders_.size(); ++i) shared_.messages[i].store(senders_[i].posted);
        shared_.last_known.store(true);
      }
      bool moved = left = false;
      for (End& end : senders_) {
        while (open && end.posted - end.done < kWindow && PostSend(&end)) moved = true;
        moved |= TestOldest(&end);
        left |= end.done < end.posted;
      }
      if (!moved) sched_yield();
    }
  }

  void Receive() {
    for (bool left = true; left;) {
      const bool known = shared_.last_known.load();
      bool moved = left = false;
      for (std::size_t i = 0; i < receivers_.size(); ++i) {
        End& end = receivers_[i];
        while (end.posted - end.done < kWindow && PostReceive(&end)) moved = true;
        moved |= TestOldest(&end);
        left |= !known || end.done < shared_.messages[i].load();
      }
      if (!moved) sched_yield();
    }
    shared_.ended = Now();
  }

  void Wait(End* end) {
    while (!TestOldest(end)) sched_yield();
  }

  /// End 0 decides when it is over, with the last byte of a message.
  void PingPong() {
    End& out = senders_[0];
    End& in = receivers_[0];
    double begun = Now();
    const double warm = begun + arguments_.seconds / 10;
    bool warmed = false;
    std::uint64_t rounds = 0;
    for (bool last = false; !last; ++rounds) {
      while (!PostReceive(&in)) sched_yield();
      char* going = out.data.data() + (out.posted % kWindow + 1) * arguments_.size - 1;
      if (end_ == 0) {
        const double now = Now();
        if (!warmed && now > warm) {
          warmed = true;
          begun = now;
          rounds = 0;
        }
        last = warmed && now > begun + arguments_.seconds;
        *going = last ? 'l' : 'w';
        while (!PostSend(&out)) sched_yield();
        Wait(&out);
        Wait(&in);
      } else {
        Wait(&in);
        last = in.data[((in.done - 1) % kWindow + 1) * arguments_.size - 1] == 'l';
        *going = 'w';
        while (!PostSend(&out)) sched_yield();
        Wait(&out);
      }
    }
    if (end_ == 0) shared_.half_us = (Now() - begun) / static_cast<double>(rounds) / 2 * 1e6;
  }

  const Arguments& arguments_;
  Shared& shared_;
  const std::size_t end_;
  std::unique_ptr<Net> net_;
  void* context_ = nullptr;
  std::vector<End> senders_;
  std::vector<End> receivers_;
};

void Enter(const std::string& name) {
  if (name.empty()) return;
  const int fd = open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) Die("cannot enter the namespace " + name + ": " + std::strerror(errno));
  close(fd);
}

int RunBoth(const Arguments& arguments, Shared* shared) {
  std::array<pid_t, 2> children{};
  for (std::size_t end = 0; end < 2; ++end) {
    children[end] = fork();
    if (children[end] < 0) Die("cannot fork");
    if (children[end] == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Enter(arguments.namespaces[end]);
      Process(arguments, shared, end).Run();
      _exit(0);
    }
  }
  int failed = 0;
  for (int ended = 0; ended < 2; ++ended) {
    int status = 0;
    const pid_t child = wait(&status);
    if (status == 0 || failed != 0) continue;
    failed = 1;
    kill(children[0] == child ? children[1] : children[0], SIGKILL);
  }
  return failed;
}

bool Parse(int argc, char** argv, Arguments* out) {
  if (argc != 6 && argc != 8) return false;
  out->plugin = argv[1];
  out->latency = std::strcmp(argv[2], "latency") == 0;
  out->size = std::strtoul(argv[3], nullptr, 10);
  out->seconds = std::strtod(argv[4], nullptr);
  out->connections = std::strtoul(argv[5], nullptr, 10);
  if (argc == 8) out->namespaces = {argv[6], argv[7]};
  return (out->latency || std::strcmp(argv[2], "bandwidth") == 0) && out->size > 0 && out->seconds > 0 &&
         out->connections >= 1 && out->connections <= kConnectionsMax;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "usage: weir-nccl-speed PLUGIN bandwidth|latency SIZE SECONDS CONNECTIONS [NAMESPACE NAMESPACE]\n"
                 "example: weir-nccl-speed build/release/lib/libnccl-net-weir.so bandwidth 1048576 1 16\n");
    return 2;
  }
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  Shared* shared = new (memory) Shared;
  if (RunBoth(arguments, shared) != 0) return 1;
  if (arguments.latency) {
    std::printf("{\"half_us\": %.3f}\n", shared->half_us);
    return 0;
  }
  double bytes = 0;
  for (const auto& messages : shared->messages) bytes += static_cast<double>(messages.load() * arguments.size);
  std::printf("{\"bytes_per_second\": %.0f, \"cpu_seconds_per_gb\": %.4f}\n", bytes / (shared->ended - shared->begun),
              (shared->cpu[0] + shared->cpu[1]) / (bytes / 1e9));
  return 0;
}
