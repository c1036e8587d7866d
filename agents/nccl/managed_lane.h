#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "agents/nccl/agent_link.h"
#include "agents/nccl/event_book.h"
#include "coflow/units.h"
#include "transport/directive_source.h"
#include "transport/transport.h"

namespace weir::nccl {

/// What one connection is told by the agent, and what it tells: its part of the shared memory. Used by the thread that
/// transfers, under the connection's lock. No system call but the bell, where the agent asked for it.
///
/// A hold is obeyed twice: a new transfer is refused, and one that is under way is interrupted between two pieces. All
/// of a peer's connections have one hold, and a connection keeps its order, so nothing of a communicator overtakes
/// anything on its way to a peer. A hold ends at the agent's time, with the agent, and `hold_max` after it was met
/// first, so that no kernel of NCCL's waits for longer; after that it is void until the gate was open once, or nothing
/// was sent for kPause. No rate is below kRateFloor.
class ManagedLane final : public transport::DirectiveSource {
 public:
  static constexpr Nanoseconds kPause = kSecond;
  static constexpr BytesPerSecond kRateFloor = 125'000;

  /// `link` may be null: nothing is told, and nothing heard.
  ManagedLane(AgentLink* link, Nanoseconds hold_max) : link_(link), hold_max_(hold_max) {}
  ~ManagedLane() override { Close(); }
  ManagedLane(const ManagedLane&) = delete;
  ManagedLane& operator=(const ManagedLane&) = delete;

  /// Over these sockets, which stay open until Close.
  void Connected(std::span<const int> fds, bool may_mark);
  /// Past the kernel.
  void Connected(const transport::Route& route);
  void Close() noexcept;
  /// Whether a transfer of so many bytes may begin. Asked again and again for the same one until it began.
  bool MayBegin(const TransferIdentity& what, Bytes bytes, Nanoseconds now) noexcept;
  /// It may, and the peer has no room for it yet.
  void NotYet(Nanoseconds now) noexcept;
  /// It began. `sent`: as Moved.
  void Begun(const TransferIdentity& what, Bytes bytes, Bytes sent, Nanoseconds now) noexcept;
  /// `sent`: bytes that left since the connection was made.
  void Moved(Bytes sent) noexcept;
  /// A transfer is over.
  void Ended(Nanoseconds now) noexcept;

  std::uint64_t Version() const noexcept override;
  transport::LaneDirective Read() const noexcept override;

 private:
  client::Segment* segment() const noexcept { return place_.lane == client::kNoLane ? nullptr : link_->segment(); }
  /// Until when the lane may not send; 0: it may.
  Nanoseconds HeldUntil(const client::Segment* segment, Nanoseconds now) const noexcept;
  void OnRefusal(client::Segment* segment, const TransferIdentity& what, Bytes bytes, Nanoseconds now) noexcept;
  void OnFirstTry(const CoflowKey& key, Nanoseconds now) noexcept;
  void TellRest(client::Segment* segment) noexcept;
  void TellMessage(client::Segment* segment, const TransferIdentity& what, Bytes bytes, bool held,
                   Nanoseconds now) noexcept;
  void TellEnd(client::Segment* segment) noexcept;
  /// Adds what has passed since `*since` to the lane's account, and sets it to 0; nothing if that is 0.
  void Settle(std::atomic<std::int64_t> client::LaneStalls::*account, Nanoseconds* since, Nanoseconds now) noexcept;

  AgentLink* const link_;
  const Nanoseconds hold_max_;
  AgentLink::Place place_;
  Bytes posted_ = 0;   ///< Of transfers that began.
  Bytes sent_ = 0;     ///< Of them, gone.
  Bytes refused_ = 0;  ///< Of the transfer that waits to begin.
  bool waiting_ = false;
  bool tried_ = false;  ///< The transfer that NCCL tries now was tried before.
  std::uint32_t under_way_ = 0;
  // Since when, each 0 when it is not so:
  Nanoseconds held_since_ = 0;     ///< a transfer is held,
  Nanoseconds credit_since_ = 0;   ///< or waits for room at the peer,
  Nanoseconds network_since_ = 0;  ///< something is under way,
  Nanoseconds idle_since_ = 0;     ///< nothing is, and nothing is tried.
  bool told_ = false;              ///< Of the coflow `told_key_`, by this connection or another of its lane.
  CoflowKey told_key_;
  // Of the hold that is met now.
  mutable Nanoseconds met_at_ = 0;
  mutable Nanoseconds looked_at_ = 0;
};

}  // namespace weir::nccl
