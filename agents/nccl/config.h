#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agents/client/segment.h"
#include "agents/nccl/marks.h"
#include "coflow/status.h"
#include "coflow/units.h"
#include "transport/dpdk/dpdk_transport.h"
#include "transport/rdma/options.h"
#include "transport/tcp/options.h"

namespace weir::nccl {

/// Sends or receives under way on a connection. NCCL has 32 with up to 8 buffers each.
inline constexpr std::uint32_t kTransfersMax = 256;

/// WEIR_TRANSPORT: what moves the bytes.
enum class TransportName : std::uint8_t { kAuto, kTcp, kRdma, kDpdk };

/// What the environment says to the plugin; docs/nccl.md has the list. Read once, when NCCL first loads it.
struct PluginConfig {
  TransportName transport = TransportName::kAuto;
  transport::TcpOptions tcp;
  transport::RdmaOptions rdma;
  bool rdma_disabled = false;                  ///< NCCL_IB_DISABLE: only if it is named.
  std::optional<transport::DpdkOptions> dpdk;  ///< The device that WEIR_DPDK names; none: there is no DPDK.
  bool gpu_memory = false;                     ///< Devices take memory of GPUs, where they can (WEIR_NCCL_GPU_MEMORY).
  int traffic_class = -1;                      ///< Of all packets (WEIR_NCCL_TRAFFIC_CLASS); below 0: the system's.
  std::uint32_t receives = 1;                  ///< Receives that NCCL may group into one (WEIR_NCCL_RECEIVES).
  Nanoseconds hold_max = 10 * kSecond;         ///< The longest that a hold is obeyed (WEIR_NCCL_HOLD_MAX_MS).
  ClassFrom class_from = ClassFrom::kDirective;  ///< WEIR_NCCL_CLASS_FROM.
  bool managed = false;                          ///< A job is named: there may be an agent,
  client::AttachRequest request{};               ///< which is told this,
  std::string agent_socket;                      ///< at this path (WEIR_AGENT_SOCKET).
  bool manages_loopback = false;                 ///< Connections within the host too (WEIR_MANAGE_LOOPBACK).
  const char* report = nullptr;       ///< WEIR_NCCL_REPORT: what each coflow sent is written there; null: nowhere.
  bool disabled = false;              ///< WEIR_DISABLE: NCCL goes on to its own network.
  std::vector<std::string> warnings;  ///< What is wrong and does not keep the plugin from working.
};

/// Errors: kInvalidArgument, naming the variable, what was found and what is allowed.
Result<PluginConfig> ConfigFromEnvironment();

}  // namespace weir::nccl
