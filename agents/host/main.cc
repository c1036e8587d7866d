// weir-agent: one per host. Follows the training processes that attach, and carries out what the coordinator decides.
#include <gflags/gflags.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "agents/host/coordinator_link.h"
#include "agents/host/guardian.h"
#include "agents/host/shell.h"
#include "agents/host/status_json.h"
#include "coflow/command_line.h"
#include "coflow/ip_address.h"
#include "coflow/log.h"

DEFINE_string(host, "", "this host's name in the coordinator's topology; default: the host name");
DEFINE_string(coordinator, "127.0.0.1:7070", "the coordinator's address and port");
DEFINE_string(socket, "/run/weir/agent.sock", "where training processes attach");
DEFINE_string(
    http, "",
    "address and port for metrics (Prometheus) and status (JSON), for example 127.0.0.1:7072; empty for none");
DEFINE_bool(plaintext, false, "allow --http on an address that other hosts can reach; there is no TLS yet");
DEFINE_string(local_policy, "none", "without a coordinator: none (everybody goes) or fifo (turns on this host)");
DEFINE_double(lowat_ms, 2, "how much a socket may hold unsent, as time at its rate; less reacts faster and costs CPU");
DEFINE_bool(marks, false, "set DSCP and priority of data sockets from their level");
DEFINE_int32(nice, -10, "scheduling priority to ask for, -20 to 19");
DEFINE_string(log, "info", "debug, info, warn, error or off");
DEFINE_int64(pid, 0, "of `weir-agent adopt`: the process to pace from outside");
DEFINE_string(job, "", "of `weir-agent adopt`: the job the process works for");
DEFINE_string(tenant, "", "of `weir-agent adopt`: who the job belongs to");
DEFINE_string(class, "", "of `weir-agent adopt`: guaranteed, best-effort or scavenger");
DEFINE_string(output, "table", "of `weir-agent status`: table or json");

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnreachable = 3;
constexpr int kExitRefused = 4;

int Usage(const std::string& message) {
  std::fprintf(stderr, "weir-agent: %s\nTry weir-agent --help.\n", message.c_str());
  return kExitUsage;
}

std::vector<std::string> LocalAddresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    weir::IpAddress address;
    if (each->ifa_addr->sa_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, each->ifa_addr, sizeof v4);
      std::array<std::uint8_t, 4> bytes;
      std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
      address = weir::IpAddress::V4(bytes);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 v6;
      std::memcpy(&v6, each->ifa_addr, sizeof v6);
      std::array<std::uint8_t, 16> bytes;
      std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
      address = weir::IpAddress::V6(bytes);
    } else {
      continue;
    }
    if (!address.is_loopback()) addresses.push_back(address.ToString());
  }
  freeifaddrs(list);
  return addresses;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

constexpr timeval kAnswerPatience = {2, 0};  // An agent answers within a millisecond, unless it is frozen.

/// Sends one line to a running agent and returns its answer; empty, and errno says why, if there is none.
std::string Ask(const std::string& path, const std::string& line) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string answer;
  if (path.size() >= sizeof address.sun_path) errno = ENAMETOOLONG;
  if (fd >= 0 && path.size() < sizeof address.sun_path) {
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const std::string request = line + "\n";
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      ssize_t got = 0;
      while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0) answer.append(buffer, static_cast<std::size_t>(got));
    }
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return answer;
}

int Unreachable() {
  const char* reason = errno == EAGAIN ? "it said nothing for 2 s; is it stopped?" : std::strerror(errno);
  std::fprintf(stderr, "weir-agent: no agent answers at %s: %s\n", FLAGS_socket.c_str(), reason);
  return kExitUnreachable;
}

int AskToAdopt() {
  if (FLAGS_pid <= 0 || FLAGS_job.empty()) return Usage("adopt needs --pid and --job");
  const std::string answer =
      Ask(FLAGS_socket, weir::agents::WriteAdoptRequest({FLAGS_pid, {FLAGS_job, FLAGS_tenant, FLAGS_class, 0, 0}}));
  if (answer.empty()) return Unreachable();
  const weir::Status outcome = weir::agents::ReadOutcome(answer);
  if (outcome.ok()) return 0;
  std::fprintf(stderr, "weir-agent: process %ld was not adopted: %s\n", FLAGS_pid, outcome.message().c_str());
  return kExitRefused;
}

int ShowStatus() {
  if (FLAGS_output != "table" && FLAGS_output != "json")
    return Usage("--output is \"" + FLAGS_output + "\"; use table or json");
  const std::string answer = Ask(FLAGS_socket, R"({"op":"status"})");
  if (answer.empty()) return Unreachable();
  std::fputs(FLAGS_output == "json" ? answer.c_str() : weir::agents::StatusTable(answer).c_str(), stdout);
  return 0;
}

int Serve() {
  weir::agents::ShellOptions options;
  options.coordinator = FLAGS_coordinator;
  options.socket = FLAGS_socket;
  options.http = FLAGS_http;
  options.plaintext = FLAGS_plaintext;
  options.engine.host = FLAGS_host.empty() ? HostName() : FLAGS_host;
  options.engine.addresses = LocalAddresses();
  options.engine.instance = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  options.engine.lowat_window = static_cast<weir::Nanoseconds>(FLAGS_lowat_ms * 1e6);
  options.engine.marks = FLAGS_marks;
  if (FLAGS_local_policy == "fifo") {
    options.engine.local_policy = weir::agents::LocalPolicy::kFifo;
  } else if (FLAGS_local_policy != "none") {
    return Usage("--local_policy is \"" + FLAGS_local_policy + "\"; use none or fifo");
  }
  if (!(FLAGS_lowat_ms > 0 && FLAGS_lowat_ms <= 1000)) return Usage("--lowat_ms must be above 0 and at most 1000");
  if (const auto split = weir::agents::SplitAddress(FLAGS_coordinator); !split) return Usage(split.error().message());
  // Before the doorbell's thread starts: a priority is the thread's own and inherited by those it starts.
  if (setpriority(PRIO_PROCESS, 0, FLAGS_nice) != 0) {
    weir::log::Info("priority_refused", {{"nice", FLAGS_nice}, {"reason", std::strerror(errno)}});
  }
  weir::agents::AgentShell shell(options);
  if (const weir::Status status = shell.Start(); !status.ok()) {
    std::fprintf(stderr, "weir-agent: %s\n", status.message().c_str());
    return status.code() == weir::StatusCode::kInvalidArgument ? kExitUsage : kExitFailed;
  }
  std::printf("ready socket=%s http=%s\n", FLAGS_socket.c_str(), shell.http_address().c_str());
  std::fflush(stdout);
  shell.Run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  weir::ParseCommandLine(
      "follows the training processes of this host and carries out what the coordinator decides.\n\n"
      "Examples:\n"
      "  weir-agent --host node1 --coordinator 10.0.0.1:7070 --socket /run/weir/agent.sock\n"
      "  LD_PRELOAD=libweir-preload.so WEIR_JOB=llama python3 train.py    (a process that attaches)\n"
      "  weir-agent status --socket /run/weir/agent.sock --output json\n"
      "  weir-agent adopt --socket /run/weir/agent.sock --pid 4711 --job llama    (paced from outside)\n\n"
      "Prints one line, \"ready socket=PATH http=ADDR:PORT\", when processes can attach. SIGINT and SIGTERM end it; "
      "processes then go "
      "on\n"
      "unmanaged. Exit status: 0 ended, 1 failed, 2 wrong usage, 3 no agent answers, 4 refused.",
      __FILE__, &argc, &argv);
  if (!weir::log::SetLevel(FLAGS_log))
    return Usage("--log is \"" + FLAGS_log + "\"; use debug, info, warn, error or off");
  if (argc == 1) return Serve();
  if (argc == 2 && std::string(argv[1]) == "status") return ShowStatus();
  if (argc == 2 && std::string(argv[1]) == "adopt") return AskToAdopt();
  if (argc == 2 && std::string(argv[1]) == "guardian") return weir::agents::RunGuardian(STDIN_FILENO);
  return Usage("\"" + std::string(argv[1]) + "\" is not known; there is \"status\" and \"adopt\", or nothing to serve");
}
