#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agents/client/attachment.h"
#include "agents/nccl/lane_coflows.h"
#include "coflow/units.h"
#include "transport/transport.h"

namespace weir::nccl {

/// This process and its host's agent: attaches once there is a connection to manage, announces lanes and sockets,
/// notices a dead agent, and attaches again. Made once a process, never destroyed.
///
/// Threads: Open and Close from any, never waiting for the agent; the words in the segment are read and written by
/// whoever transfers. One helper, `weir-nccl`, with all signals blocked, does what takes system calls: attaching,
/// watching the agent, marking sockets. The segment has one place for the life of the process: who still looks at the
/// one before finds the next there.
class AgentLink {
 public:
  /// `request` says whom this process works for.
  AgentLink(const client::AttachRequest& request, std::string socket_path, bool manages_loopback);

  /// A connection's part of the memory: its lane, and a slot for each of its sockets. The first slot has the rest of
  /// what the connection was given, whatever socket carries it.
  struct Place {
    std::uint32_t lane = client::kNoLane;  ///< kNoLane: not managed.
    std::vector<std::uint32_t> slots;
  };
  /// For a connection over these sockets, which stay open until Close. Not managed: peers on this host, and what finds
  /// no slot, which is counted in `sockets_unmanaged`. `may_mark`: the agent's marks are put on the sockets.
  Place Open(std::span<const int> fds, bool may_mark);
  /// For one that goes past the kernel: one slot, of which the agent cannot ask the kernel.
  Place Open(const transport::Route& route);
  void Close(const Place& place);

  /// Null while there is no agent.
  client::Segment* segment() const { return segment_.load(std::memory_order_acquire); }
  LaneCoflows& coflows(std::uint32_t lane) { return coflows_[lane]; }
  void RingIfWanted(std::atomic<std::uint32_t>& wanted) noexcept;

 private:
  struct Lane {
    std::uint16_t family = 0;
    std::array<std::uint8_t, 16> address{};
    friend bool operator==(const Lane&, const Lane&) = default;
  };
  struct Slot {
    bool live = false;
    bool may_mark = false;
    std::uint32_t marks = 0;  ///< That the socket has from us.
    int fd = -1;
    std::uint32_t lane = 0;
    std::uint16_t family = 0;  ///< 0: no socket.
    std::uint16_t local_port = 0;
    std::uint16_t peer_port = 0;
    std::array<std::uint8_t, 16> local{};
    std::array<std::uint8_t, 16> peer{};
  };

  bool Add(const Lane& peer, const Slot& slot, Place* place);
  Place Finish(Place place);
  void StartHelper();
  void Run();
  Nanoseconds TryAttach();
  void Watch();
  void Detach();
  bool MoveHome(client::Attachment* attachment);
  std::uint32_t LaneOf(const Lane& peer);
  void Announce(client::Segment* segment, std::uint32_t index) const;
  void AnnounceLane(client::Segment* segment, std::uint32_t index) const;
  void Mark(const client::Segment* segment, Slot* slot);
  void SayOnce(void (*say)(std::string_view), const std::string& text);

  const client::AttachRequest request_;
  const std::string socket_path_;
  const bool manages_loopback_;
  std::atomic<client::Segment*> segment_{nullptr};
  std::atomic<client::Doorbell*> doorbell_{nullptr};
  std::array<LaneCoflows, client::kMaxLanes> coflows_;
  void* home_ = nullptr;  ///< The helper's.
  std::string said_;      ///< The helper's.
  std::mutex mutex_;      ///< Guards what follows.
  bool started_ = false;
  std::vector<Lane> lanes_;
  std::vector<Slot> slots_;
};

}  // namespace weir::nccl
