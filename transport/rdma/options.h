#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "coflow/units.h"

namespace weir::transport {

/// What an RDMA transport is made with. The names in brackets are the variables of NCCL that set the same.
struct RdmaOptions {
  /// Who we are, in every message about a connection: at most 31 printable characters. Empty: host name and process.
  std::string identity;
  /// Which ports of which devices are used [NCCL_IB_HCA]: prefixes of names separated by commas, each with ":PORT" or
  /// without; "^" in front excludes them, "=" takes whole names. Empty: all.
  std::string devices;
  /// Entry of the port's table of addresses [NCCL_IB_GID_INDEX]; below 0: chosen, see gid.h.
  int gid_index = -1;
  /// Only addresses of this network, "10.0.0.0/8", are chosen from [NCCL_IB_ADDR_RANGE]. Empty: any.
  std::string subnet;
  /// The version of RoCE, 1 or 2, whose addresses go first [NCCL_IB_ROCE_VERSION_NUM].
  std::uint8_t roce_version = 2;
  /// Whose addresses go first, "AF_INET" or "AF_INET6" [NCCL_IB_ADDR_FAMILY]. Empty: IPv4.
  std::string family;
  /// For devices whose addresses are no IP addresses (InfiniBand): the network interfaces that carry the handshake, as
  /// in TcpOptions [NCCL_SOCKET_IFNAME].
  std::string interfaces;
  /// Service level, 0 .. 15 [NCCL_IB_SL].
  std::uint8_t service_level = 0;
  /// Traffic class bytes (DSCP << 2) [NCCL_IB_TC]. One: for everything. Several, up to kQueueLevels: each gets its own
  /// queue pairs, the first is for level 0, the last for its own level and all after it.
  std::vector<std::uint8_t> traffic_classes{0};
  /// How long the device waits for an acknowledgement: 4.096 us * 2^timeout, 1 .. 31 [NCCL_IB_TIMEOUT],
  std::uint8_t timeout = 20;
  /// and how often it tries again, 0 .. 7 [NCCL_IB_RETRY_CNT].
  std::uint8_t retry_count = 7;
  /// Index into the port's table of partitions [NCCL_IB_PKEY].
  std::uint16_t pkey_index = 0;
  /// Queue pairs of each traffic class, 1 .. 16, 16 in all [NCCL_IB_QPS_PER_CONNECTION].
  std::uint32_t queue_pairs = 2;
  /// Large messages are cut into pieces of this for the queue pairs, 4 KiB .. 1 GiB.
  Bytes stripe_bytes = 256 * 1024;
  /// Bytes that a queue pair may have under way, from 4 KiB on: what was handed to the device cannot be called back.
  Bytes window_bytes = 1024 * 1024;
  /// A slow queue pair has less under way: what it gets done in so long, and in the time that a piece takes.
  Nanoseconds window_time = kMillisecond;
  /// Sends or receives that may be under way on a channel, 1 .. 4096.
  std::uint32_t requests = 256;
  /// A link, or a device, from which nothing came back is reported as dead within this time, 200 ms at least. A peer
  /// that is slow or frozen is not dead: its kernel and its device answer.
  Nanoseconds dead_after = 10 * kSecond;
  /// How long Connector::Poll goes on.
  Nanoseconds connect_within = 60 * kSecond;
  /// Is told, in one line each, which address of which port was chosen and why, and what happened to a port. May be
  /// empty. Called where devices are opened and, later, from within any channel's calls; not from two at a time.
  std::function<void(const std::string&)> note;
};

/// Defaults, with the variables above from the environment. Error kInvalidArgument with name, value and what is
/// allowed.
Result<RdmaOptions> RdmaOptionsFromEnvironment();

/// Error kInvalidArgument with what was found and what is allowed.
Status CheckRdmaOptions(const RdmaOptions& options);

}  // namespace weir::transport
