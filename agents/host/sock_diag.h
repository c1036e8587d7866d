#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "agents/host/lane.h"
#include "coflow/status.h"
#include "coflow/unique_fd.h"

namespace weir::agents {

/// Names one TCP socket of this network namespace. Addresses in network order, the first 4 bytes for AF_INET; an
/// IPv4-mapped pair of an AF_INET6 socket may be given either way. Ports in host order.
struct SocketKey {
  std::uint16_t family = 0;
  std::uint16_t local_port = 0;
  std::uint16_t peer_port = 0;
  std::array<std::uint8_t, 16> local{};
  std::array<std::uint8_t, 16> peer{};
  friend bool operator==(const SocketKey&, const SocketKey&) = default;
};

/// What the kernel knows of one socket. `found` is false for a socket that is closed, or never was.
struct SocketQueue {
  bool found = false;
  Bytes outstanding = 0;  ///< Unacknowledged and unsent.
  Bytes unsent = 0;
  Bytes segment = 1448;
  Nanoseconds min_rtt = 0;  ///< 0 if unknown.
};

/// Asks the kernel about sockets of other processes, by address and without privileges (NETLINK_SOCK_DIAG, one exact
/// lookup a socket, no dump). Owned by Shell. Thread: the agent's loop. Cost: two system calls a batch of kBatch, about
/// 2 us a socket.
class SockDiag {
 public:
  static constexpr std::size_t kBatch = 32;

  static Result<SockDiag> Open();

  /// One answer per key, in order. An error means the kernel could not be asked at all.
  Result<std::vector<SocketQueue>> Query(std::span<const SocketKey> keys);

  /// Adds up what Query said of the sockets of one lane; closed sockets have nothing outstanding.
  static QueueSample Sum(std::span<const SocketQueue> queues);

 private:
  explicit SockDiag(UniqueFd fd) : fd_(std::move(fd)) {}
  Status QueryBatch(std::span<const SocketKey> keys, std::span<SocketQueue> queues);
  Status Receive(std::uint32_t first_sequence, std::span<SocketQueue> queues);

  UniqueFd fd_;
  std::uint32_t sequence_ = 1;
};

/// The same of a socket that we hold ourselves, in whatever network namespace it was made.
SocketQueue QueueOf(int fd);

}  // namespace weir::agents
