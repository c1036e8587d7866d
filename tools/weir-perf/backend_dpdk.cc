// DPDK: our own protocol over a device that DPDK drives; how it is made, and what the doctor looks at.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/weir-perf/backends.h"
#include "tools/weir-perf/pci_cards.h"
#include "transport/dpdk/dpdk_transport.h"
#include "transport/dpdk/settings.h"

namespace weir::tools {
namespace {

using Weight = Finding::Weight;

Result<std::unique_ptr<transport::Transport>> Make(const BackendSettings& settings) {
  if (settings.loopback) {
    return Error(StatusCode::kInvalidArgument,
                 "dpdk has one device a process, so both ends cannot be in this one: run weir-perf serve elsewhere and "
                 "name it with --server");
  }
  auto options = transport::DpdkOptionsFrom(settings.options);
  if (!options) return tl::unexpected(options.error());
  if (settings.streams != 0) options->endpoint.paths = settings.streams;
  if (settings.dead_after != 0) options->endpoint.dead_after = settings.dead_after;
  return transport::MakeDpdkTransport(*options);
}

/// Whether a raw socket can be had; it is closed again.
Finding RawSockets() {
  const int socket_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_fd >= 0) {
    close(socket_fd);
    return {Weight::kGood, "raw sockets", "allowed: net_af_packet can be used", ""};
  }
  return {Weight::kAdvice, "raw sockets", std::strerror(errno),
          "net_af_packet needs CAP_NET_RAW and CAP_NET_ADMIN; net_memif needs no privilege"};
}

Finding XdpSockets() {
  const int socket_fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (socket_fd >= 0) {
    close(socket_fd);
    return {Weight::kGood, "sockets of AF_XDP", "allowed: net_af_xdp can be used", ""};
  }
  return {Weight::kAdvice, "sockets of AF_XDP", std::strerror(errno),
          errno == EAFNOSUPPORT ? "this kernel is built without CONFIG_XDP_SOCKETS; use net_af_packet"
                                : "net_af_xdp needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF; net_af_packet is slower "
                                  "and does without the last"};
}

std::vector<Finding> Examine(const BackendSettings&) {
  std::vector<Finding> findings;
  const Status there = transport::dpdk::EthdevAvailable();
  if (!there.ok()) {
    return {{Weight::kMissing, "libweir-ethdev.so", there.message(),
             "install libdpdk-dev where Weir is built, and build again"}};
  }
  findings.push_back({Weight::kGood, "libweir-ethdev.so", "loaded", ""});
  findings.push_back(RawSockets());
  findings.push_back(XdpSockets());
  for (Finding& finding : ExaminePciCards("/")) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

Backend DpdkBackend() {
  FaultSupport faults;
  faults.mtu = 1500;
  faults.options = {"device=net_af_packet0;iface=weir0,address=10.77.1.11",
                    "device=net_af_packet0;iface=weir0,address=10.77.1.12"};
  faults.told_of_exit = false;
  return {"dpdk", "our own protocol over a device that DPDK drives; set it with --options", Make, Examine, faults};
}

}  // namespace weir::tools
