// TCP, the backend that is always there: how it is made, and what the doctor looks at.
#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <fstream>

#include "tools/weir-perf/backends.h"
#include "transport/tcp/interfaces.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::tools {
namespace {

using Weight = Finding::Weight;

constexpr std::array<std::string_view, 2> kKeys{"in_kernel_kb", "unsent_kb"};
/// A channel has streams + 1 descriptors at each end, and a rank of a large job some hundreds of channels.
constexpr rlim_t kDescriptorsMin = 4096;
/// What 100 Gbit/s over 1 ms needs in flight.
constexpr std::uint64_t kBufferMin = 12'500'000;

Result<transport::TcpOptions> Options(const BackendSettings& settings) {
  if (Status status = settings.options.AllowOnly(kKeys); !status.ok()) return tl::unexpected(status);
  auto options = transport::TcpOptionsFromEnvironment();
  if (settings.loopback) options.interfaces = "=lo";
  if (!settings.interfaces.empty()) options.interfaces = settings.interfaces;
  if (settings.streams != 0) options.streams = settings.streams;
  if (settings.stripe_bytes != 0) options.stripe_bytes = settings.stripe_bytes;
  if (settings.dead_after != 0) options.dead_after = settings.dead_after;
  const auto unsent_kb = settings.options.Number("unsent_kb", options.unsent_bytes / 1024, 0, 1 << 20);
  if (!unsent_kb) return tl::unexpected(unsent_kb.error());
  options.unsent_bytes = static_cast<std::uint32_t>(*unsent_kb * 1024);
  const auto in_kernel_kb = settings.options.Number("in_kernel_kb", options.in_kernel_bytes / 1024, 16, 1 << 20);
  if (!in_kernel_kb) return tl::unexpected(in_kernel_kb.error());
  options.in_kernel_bytes = *in_kernel_kb * 1024;
  return options;
}

Result<std::unique_ptr<transport::Transport>> Make(const BackendSettings& settings) {
  const auto options = Options(settings);
  if (!options) return tl::unexpected(options.error());
  return transport::MakeTcpTransport(*options);
}

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void ExamineInterfaces(const BackendSettings& settings, std::vector<Finding>* findings) {
  const auto options = Options(settings);
  if (!options) {
    findings->push_back({Weight::kMissing, "settings", options.error().message(), "correct the flag"});
    return;
  }
  const auto made = transport::MakeTcpTransport(*options);
  if (!made) {
    findings->push_back({Weight::kMissing, "network interfaces", made.error().message(),
                         "name one that is up, with --interfaces or NCCL_SOCKET_IFNAME"});
    return;
  }
  for (const transport::Device& device : (*made)->devices()) {
    const std::string mtu = FirstLine("/sys/class/net/" + device.name + "/mtu");
    const std::string found = fmt::format("{}, MTU {}", device.address, mtu.empty() ? "unknown" : mtu);
    const bool small = !mtu.empty() && mtu.size() < 5 && std::stoi(mtu) < 9000;
    findings->push_back({small ? Weight::kAdvice : Weight::kGood, device.name, found,
                         small ? "an MTU of 9000 costs less CPU where all switches on the way take it" : ""});
  }
}

/// The last number of a sysctl with three (least, usual, most).
void ExamineBuffer(const char* name, std::vector<Finding>* findings) {
  const std::string line = FirstLine(std::string("/proc/sys/net/ipv4/") + name);
  if (line.empty()) return;
  const std::uint64_t most = std::stoull(line.substr(line.find_last_of("\t ") + 1));
  const bool enough = most >= kBufferMin;
  findings->push_back({enough ? Weight::kGood : Weight::kAdvice, name, fmt::format("at most {} bytes", most),
                       enough ? ""
                              : fmt::format("long fast paths need more in flight: sysctl -w net.ipv4.{}='4096 131072 "
                                            "67108864'",
                                            name)});
}

void ExamineBursts(std::vector<Finding>* findings) {
  const std::string line = FirstLine("/proc/sys/net/ipv4/tcp_tso_rtt_log");
  if (line.empty()) return;
  const bool smooth = line == "0";
  findings->push_back({smooth ? Weight::kGood : Weight::kAdvice, "tcp_tso_rtt_log", line,
                       smooth ? ""
                              : "on short paths the kernel sends 64 KiB in one go whatever the rate: sysctl -w "
                                "net.ipv4.tcp_tso_rtt_log=0"});
}

void ExamineDescriptors(std::vector<Finding>* findings) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const bool enough = limit.rlim_cur >= kDescriptorsMin;
  findings->push_back({enough ? Weight::kGood : Weight::kAdvice, "open files",
                       fmt::format("at most {}", limit.rlim_cur),
                       enough ? "" : fmt::format("large jobs need more: ulimit -n {}", kDescriptorsMin)});
}

std::vector<Finding> Examine(const BackendSettings& settings) {
  std::vector<Finding> findings;
  ExamineInterfaces(settings, &findings);
  ExamineDescriptors(&findings);
  ExamineBuffer("tcp_wmem", &findings);
  ExamineBuffer("tcp_rmem", &findings);
  ExamineBursts(&findings);
  findings.push_back({Weight::kGood, "congestion control", FirstLine("/proc/sys/net/ipv4/tcp_congestion_control"), ""});
  return findings;
}

}  // namespace

Backend TcpBackend() {
  return {"tcp", "the kernel's TCP; always there, needs no privilege", Make, Examine, {}};
}

}  // namespace weir::tools
