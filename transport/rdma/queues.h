#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "coflow/directive.h"
#include "coflow/status.h"
#include "transport/rdma/port.h"
#include "transport/rdma/wire.h"

namespace weir::transport::rdma {

/// How many queues a channel has at one end, and how deep they are.
struct QueuePlan {
  std::uint32_t pairs = 1;  ///< Of each traffic class.
  std::uint32_t classes = 1;
  std::array<std::uint8_t, kQueueLevels> traffic_classes{};
  std::uint8_t service_level = 0;
  std::uint32_t first_depth = 1;  ///< Requests to send on the first queue pair,
  std::uint32_t depth = 1;        ///< and on each of the others.
  std::uint32_t incoming = 1;     ///< Marks that may come in at a time, on all together.
};

/// Whom a queue pair is connected to, and how.
struct Route {
  GidEntry own;
  Gid peer_gid{};
  std::uint16_t peer_lid = 0;
  std::uint32_t peer_pair = 0;
  std::uint32_t first_packet = 0;       ///< That we send,
  std::uint32_t peer_first_packet = 0;  ///< and that comes.
  std::uint8_t mtu = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t service_level = 0;
  int access = 0;  ///< What the peer may do.
};

/// Takes a new queue pair to where it sends and receives. Error kUnavailable with what the device refused.
Status StartPair(const Port& port, ibv_qp* pair, const Route& route, const RdmaOptions& options);

/// The queues of one end of a channel: the queue pairs, what comes in (one for all), and completions (one for all).
/// Owned by the channel, or by whoever makes it; the channel's thread. Nothing of its memory is touched by the device
/// once it is gone.
class Queues {
 public:
  /// `wr_id` of requests to receive. Those to send have the number of their queue pair.
  static constexpr std::uint64_t kIncoming = 1ull << 32;

  /// Error kResourceExhausted with what the device refused.
  static Result<std::unique_ptr<Queues>> Make(Port* port, const QueuePlan& plan);
  ~Queues();
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  /// Makes the pairs ready to send to those of the peer. Error kUnavailable with what the device refused.
  Status Connect(const GidEntry& own, const End& peer, std::uint8_t mtu, const RdmaOptions& options);
  /// Writes down address and queue pairs for the peer.
  void Describe(const GidEntry& own, End* end) const;

  ibv_qp* pair(std::size_t i) const { return pairs_[i]; }
  std::size_t size() const { return pairs_.size(); }
  const QueuePlan& plan() const { return plan_; }
  ibv_cq* completions() const { return completions_; }
  std::uint32_t inline_bytes() const { return inline_bytes_; }
  std::uint32_t parts() const { return parts_; }
  std::uint32_t first_packet() const { return first_packet_; }
  /// Room for one more mark. False when the device refuses.
  bool Replenish() noexcept;

 private:
  Queues(Port* port, const QueuePlan& plan);
  Status MakeAll();
  Status MakePair(std::uint32_t depth);

  Port& port_;
  QueuePlan plan_;
  ibv_cq* completions_ = nullptr;
  ibv_srq* incoming_ = nullptr;
  std::vector<ibv_qp*> pairs_;
  std::uint32_t inline_bytes_ = 0;
  std::uint32_t parts_ = 1;
  std::uint32_t first_packet_ = 0;
};

/// Memory of ours that the device knows: whole pages, zeros at first. Owned by a channel.
class Room {
 public:
  static Result<std::unique_ptr<Room>> Make(Port* port, Bytes size, Registrations::Use use);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  std::byte* data() const { return data_; }
  const ibv_mr& memory() const { return *entry_->memory; }

 private:
  explicit Room(Port* port) : port_(*port) {}

  Port& port_;
  std::byte* data_ = nullptr;
  Registrations::Entry* entry_ = nullptr;
};

}  // namespace weir::transport::rdma
