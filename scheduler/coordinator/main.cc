// weir-coordinator: decides for all agents who may send, how fast and when.
#include <gflags/gflags.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "coflow/command_line.h"
#include "coflow/log.h"
#include "coflow/topology.h"
#include "scheduler/coordinator/shell.h"

DEFINE_string(topology, "", "the fabric: sites, hosts and links (TOML, see docs/topology.md); required");
DEFINE_string(listen, "127.0.0.1:7070", "address and port for agents; port 0 picks one");
DEFINE_string(http, "127.0.0.1:7071", "address and port for status (JSON); empty for none");
DEFINE_bool(plaintext, false, "allow addresses other than loopback, without encryption, on a trusted network");
DEFINE_string(policy, "turns", "turns, fifo, max-min or none (docs/policies.md)");
DEFINE_string(log, "info", "debug, info, warn, error or off");
DEFINE_int32(nice, -10, "scheduling priority to ask for, -20 to 19; decisions are worth most when they are early");

namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

int Usage(const std::string& message) {
  std::fprintf(stderr, "weir-coordinator: %s\nTry weir-coordinator --help.\n", message.c_str());
  return kExitUsage;
}

void AskForPriority(int nice) {
  if (setpriority(PRIO_PROCESS, 0, nice) != 0) {
    weir::log::Info("priority_refused", {{"nice", nice}, {"reason", std::strerror(errno)}});
  }
}

/// The usual limit of 1024 descriptors is below the number of agents that one coordinator takes.
void AllowManyDescriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    weir::log::Info("descriptors_refused", {{"wanted", limit.rlim_max}, {"reason", std::strerror(errno)}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  weir::ParseCommandLine(
      "decides for all agents who may send, how fast and when.\n\n"
      "Example:\n"
      "  weir-coordinator --topology fabric.toml --listen 127.0.0.1:7070 --http 127.0.0.1:7071\n"
      "  curl http://127.0.0.1:7071/v1/status\n\n"
      "Prints one line, \"listening agents=ADDR:PORT http=ADDR:PORT\", when it is ready. SIGINT and SIGTERM end it.\n"
      "Exit status: 0 ended, 1 failed, 2 wrong usage.",
      __FILE__, &argc, &argv);
  if (argc > 1) return Usage("unexpected argument \"" + std::string(argv[1]) + "\"");
  if (!weir::log::SetLevel(FLAGS_log)) {
    return Usage("--log is \"" + FLAGS_log + "\"; use debug, info, warn, error or off");
  }
  if (FLAGS_topology.empty()) return Usage("--topology FILE is required; docs/topology.md has an example");
  const auto topology = weir::Topology::Load(FLAGS_topology);
  if (!topology) return Usage(topology.error().message());
  auto policy = weir::scheduler::MakePolicy(FLAGS_policy);
  if (!policy) return Usage(policy.error().message());

  weir::scheduler::CoordinatorShell shell(*topology, std::move(*policy), {FLAGS_listen, FLAGS_http, FLAGS_plaintext});
  if (const weir::Status status = shell.Listen(); !status.ok()) {
    if (status.code() == weir::StatusCode::kInvalidArgument) return Usage(status.message());
    std::fprintf(stderr, "weir-coordinator: %s\n", status.message().c_str());
    return kExitFailed;
  }
  AskForPriority(FLAGS_nice);
  AllowManyDescriptors();
  std::printf("listening agents=%s http=%s\n", shell.agents_address().c_str(), shell.http_address().c_str());
  std::fflush(stdout);
  shell.Run();
  return 0;
}
