#include "agents/nccl/transport_choice.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "agents/nccl/log.h"
#include "transport/rdma/rdma_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace weir::nccl {
namespace {

Result<std::unique_ptr<transport::Transport>> OpenRdma(const PluginConfig& config) {
  transport::RdmaOptions options = config.rdma;
  options.note = [](const std::string& note) { Inform(note); };
  return transport::MakeRdmaTransport(options);
}

Result<std::unique_ptr<transport::Transport>> OpenDpdk(const PluginConfig& config) {
  if (!config.dpdk) {
    return Error(StatusCode::kInvalidArgument,
                 "WEIR_TRANSPORT=dpdk needs a device: set WEIR_DPDK, for example to "
                 "device=net_af_packet0;iface=eth1,address=10.9.0.1/24");
  }
  return transport::MakeDpdkTransport(*config.dpdk);
}

/// The transport does not know which variables its options come from.
Result<std::unique_ptr<transport::Transport>> OpenTcp(const PluginConfig& config) {
  auto tcp = transport::MakeTcpTransport(config.tcp);
  if (tcp) return tcp;
  return Error(tcp.error().code(), fmt::format("NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY: {}", tcp.error().message()));
}

Result<std::unique_ptr<transport::Transport>> OpenAny(const PluginConfig& config) {
  if (config.dpdk) return OpenDpdk(config);
  if (config.rdma_disabled) {
    Inform("RDMA is not used: NCCL_IB_DISABLE is set");
  } else {
    auto rdma = OpenRdma(config);
    if (rdma || rdma.error().code() == StatusCode::kInvalidArgument) return rdma;
    Inform(fmt::format("RDMA is not used: {}", rdma.error().message()));
  }
  return OpenTcp(config);
}

}  // namespace

Result<std::unique_ptr<transport::Transport>> OpenTransport(const PluginConfig& config) {
  switch (config.transport) {
    case TransportName::kTcp:
      return OpenTcp(config);
    case TransportName::kRdma:
      return OpenRdma(config);
    case TransportName::kDpdk:
      return OpenDpdk(config);
    case TransportName::kAuto:
      break;
  }
  return OpenAny(config);
}

}  // namespace weir::nccl
