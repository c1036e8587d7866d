#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coflow/status.h"
#include "transport/rdma/queues.h"
#include "transport/transport.h"

namespace weir::transport::rdma {

/// Makes sure that a GPU sees what a peer wrote into its memory: a read of one byte from there, which the bus answers
/// only after the writes before it. By a queue pair that is connected to itself, so neither the network nor the peer is
/// asked. Owned by a receiver, on its thread.
class FlushQueue {
 public:
  /// A flush under way.
  struct Flush final : Request {
    explicit Flush(Channel* channel) : Request(channel) {}
    std::uint64_t number = 0;
    bool taken = false;
  };

  /// For at most `flushes` at a time of `channel`. Errors: kResourceExhausted, kUnavailable, with what the device
  /// refused.
  static Result<std::unique_ptr<FlushQueue>> Make(Port* port, const GidEntry& own, std::uint8_t mtu,
                                                  const RdmaOptions& options, std::uint32_t flushes, Channel* channel);
  ~FlushQueue();
  FlushQueue(const FlushQueue&) = delete;
  FlushQueue& operator=(const FlushQueue&) = delete;

  /// Of the memory at `at`, which lies within `memory`. Null: as many as there may be are under way, or the device
  /// takes no more work.
  Flush* Post(const Registrations::Entry& memory, const void* at, Nanoseconds now) noexcept;
  bool Owns(const Request* request) const noexcept;
  /// kDone: it is over, and the request is dead. kFailed: the device gave up; why() says how.
  Outcome Test(Flush* flush, Nanoseconds now) noexcept;
  /// Since when the device has had work and did not get any of it done.
  Nanoseconds busy_since() const noexcept { return busy_since_; }
  const char* why() const { return why_; }

 private:
  explicit FlushQueue(Port* port) : port_(*port) {}
  Status MakePair(std::uint32_t flushes);

  Port& port_;
  std::unique_ptr<Room> landing_;  ///< What is read goes here.
  ibv_cq* completions_ = nullptr;
  ibv_qp* pair_ = nullptr;
  std::vector<Flush> flushes_;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;  ///< In the order of posting.
  Nanoseconds busy_since_ = 0;
  const char* why_ = "";
};

}  // namespace weir::transport::rdma
