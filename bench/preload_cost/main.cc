// Nanoseconds of one write as a program sees it, with and without the preload library. Operations: write() of 64 B and
// of 64 KiB into a pipe, a Unix socket and a TCP connection, whose other end is emptied outside the measured time.
//
//   plain      without the library
//   idle       with it, in a program that belongs to no job
//   managed    with it, attached to an agent that lets everything pass; the TCP connection is a data socket
//
// Each is a process of its own; they take turns, and the medians over the rounds are printed with the spread. Time is
// the thread's own (CLOCK_THREAD_CPUTIME_ID), so that a busy machine does not count.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gflags/gflags.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "coflow/check.h"
#include "coflow/command_line.h"
#include "tests/agents/preload/fake_agent.h"

DEFINE_int32(rounds, 9, "How often each variant is measured; the variants take turns.");
DEFINE_string(output, "table", "table or csv.");
DEFINE_bool(measure, false, "Be the process that is measured; used by the program itself.");

namespace {

constexpr std::size_t kSizes[] = {64, 65536};
constexpr std::size_t kBytesAtOnce = 131072;  // fits into every one of the three
constexpr std::int64_t kMeasure_ns = 60'000'000;

struct Channel {
  const char* name;
  int in;
  int out;
};

Channel MakePipe() {
  int ends[2];
  WEIR_CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 4 * kBytesAtOnce) > 0);
  return {"pipe", ends[1], ends[0]};
}

void Enlarge(int fd) {
  const int bytes = 4 * kBytesAtOnce;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

Channel MakeUnix() {
  int ends[2];
  WEIR_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  Enlarge(ends[0]);
  return {"unix", ends[0], ends[1]};
}

Channel MakeTcp() {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int in = socket(AF_INET, SOCK_STREAM, 0);
  WEIR_CHECK(listener >= 0 && in >= 0);
  Enlarge(listener);
  Enlarge(in);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  WEIR_CHECK(bind(listener, generic, length) == 0 && listen(listener, 1) == 0);
  WEIR_CHECK(getsockname(listener, generic, &length) == 0 && connect(in, generic, length) == 0);
  const int out = accept(listener, nullptr, nullptr);
  const int on = 1;
  setsockopt(in, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {"tcp", in, out};
}

void Drain(int fd, std::size_t bytes) {
  static std::vector<char> buffer(kBytesAtOnce);
  while (bytes > 0) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    WEIR_CHECK(got > 0);
    bytes -= static_cast<std::size_t>(got);
  }
}

std::int64_t OwnTimeNs() {
  timespec spent = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return spent.tv_sec * 1'000'000'000 + spent.tv_nsec;
}

/// Mean over the writes of kMeasure_ns.
double MeasureWrite(const Channel& channel, std::size_t size) {
  const std::vector<char> data(size);
  const std::size_t writes = std::min<std::size_t>(kBytesAtOnce / size, 200);
  std::int64_t spent = 0;
  std::size_t count = 0;
  for (bool warm = false; spent < kMeasure_ns; warm = true) {
    const std::int64_t begin = OwnTimeNs();
    for (std::size_t i = 0; i < writes; ++i) {
      WEIR_CHECK(write(channel.in, data.data(), size) == static_cast<ssize_t>(size));
    }
    const std::int64_t end = OwnTimeNs();
    Drain(channel.out, writes * size);
    if (!warm) continue;
    spent += end - begin;
    count += writes;
  }
  return static_cast<double>(spent) / static_cast<double>(count);
}

int Measure() {
  for (const Channel& channel : {MakePipe(), MakeUnix(), MakeTcp()}) {
    // Large first, so that the small writes go to a data socket where there is one.
    for (const std::size_t size : {kSizes[1], kSizes[0]}) {
      std::printf("%s %zu %f\n", channel.name, size, MeasureWrite(channel, size));
    }
  }
  return 0;
}

using Key = std::pair<std::string, std::size_t>;
using Results = std::map<Key, std::map<std::string, std::vector<double>>>;

void RunVariant(const char* self, const std::string& variant, const std::vector<std::string>& environment,
                Results* out) {
  weir::testing::Child child({self, "--measure"}, environment);
  WEIR_CHECK(child.Wait(60) == 0);
  const std::string& text = child.output();
  char name[16];
  std::size_t size = 0;
  double ns = 0;
  int used = 0;
  for (const char* at = text.c_str(); std::sscanf(at, "%15s %zu %lf\n%n", name, &size, &ns, &used) == 3; at += used) {
    (*out)[{name, size}][variant].push_back(ns);
  }
}

void Print(const Results& results) {
  const bool csv = FLAGS_output == "csv";
  std::printf(csv ? "channel,bytes,variant,median_ns,low_ns,high_ns\n"
                  : "channel   bytes variant    median ns        spread   over plain\n");
  for (const auto& [key, variants] : results) {
    double plain = 0;
    for (const char* variant : {"plain", "idle", "managed"}) {
      std::vector<double> values = variants.at(variant);
      std::sort(values.begin(), values.end());
      const double median = values[values.size() / 2];
      if (plain == 0) plain = median;
      if (csv) {
        std::printf("%s,%zu,%s,%.1f,%.1f,%.1f\n", key.first.c_str(), key.second, variant, median, values.front(),
                    values.back());
      } else {
        std::printf("%-7s %7zu %-8s %11.0f %6.0f-%6.0f %+8.0f ns\n", key.first.c_str(), key.second, variant, median,
                    values.front(), values.back(), median - plain);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  weir::ParseCommandLine("measures what the preload library adds to a write\nExample: weir-preload-cost --rounds=9",
                         __FILE__, &argc, &argv);
  if (FLAGS_measure) return Measure();
  if (argc > 1 || FLAGS_rounds < 1 || (FLAGS_output != "table" && FLAGS_output != "csv")) {
    std::fprintf(stderr, "weir-preload-cost: no arguments; --rounds from 1, --output table or csv\n");
    return 2;
  }
  weir::testing::FakeAgent agent;
  const std::string preload = "LD_PRELOAD=" WEIR_PRELOAD_LIBRARY;
  Results results;
  for (int round = 0; round < FLAGS_rounds; ++round) {
    RunVariant(argv[0], "plain", {}, &results);
    RunVariant(argv[0], "idle", {preload}, &results);
    RunVariant(argv[0], "managed",
               {preload, "WEIR_JOB=cost", "WEIR_MANAGE_LOOPBACK=1", "WEIR_AGENT_SOCKET=" + agent.socket_path()},
               &results);
  }
  Print(results);
  return 0;
}
