#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agents/client/segment.h"
#include "agents/host/lane.h"
#include "agents/host/sock_diag.h"
#include "coflow/status.h"

namespace weir::agents {

/// The agent's side of one process's segment: the only place where the agent touches memory that a process can write.
/// Trusts nothing it reads: indices are bounded, torn or overwritten entries are skipped and counted, a value is read
/// once and the copy is used. Its own state (what was armed, what was read last) lies outside the segment.
///
/// Owned by Shell, one per attached process. Thread: the agent's loop. Cost of a look: one cache line a lane and one a
/// socket in use; no system call.
class SegmentHost {
 public:
  static Result<std::unique_ptr<SegmentHost>> Create(Nanoseconds now);
  SegmentHost(const SegmentHost&) = delete;
  SegmentHost& operator=(const SegmentHost&) = delete;
  ~SegmentHost();

  /// To be handed to the process; closed by CloseMemfd once it was.
  int memfd() const { return memfd_; }
  void CloseMemfd();

  struct Message {
    std::uint32_t lane = 0;
    Nanoseconds time = 0;
    Bytes bytes = 0;
    client::KnownBy known_by = client::KnownBy::kWrites;
  };
  /// What changed since the last look.
  struct News {
    std::vector<std::pair<std::uint32_t, std::string>> lanes;  ///< New ones: index, peer address.
    std::vector<std::pair<std::uint32_t, LaneSample>> samples;
    std::vector<Message> messages;
    std::uint64_t messages_lost = 0;
    bool detached = false;
    void Clear();
  };
  /// Adds to `news`; lanes come before their samples and messages.
  void Look(News* news);
  /// One lane as it is now, changed or not.
  LaneSample Sample(std::uint32_t lane);

  void Arm(std::uint32_t lane, bool start, bool drain);
  void Write(std::uint32_t lane, const LaneControl& control);
  /// Makes the process see what was written: its helper thread, and writers blocked at `lanes`.
  void Wake(const std::vector<std::uint32_t>& lanes);
  void Beat(Nanoseconds now);
  /// Opens every gate, takes off every cap and tells the process that it is on its own.
  void Release();

  /// Live sockets of a lane, for SockDiag.
  std::vector<SocketKey> Sockets(std::uint32_t lane) const;
  std::uint64_t sockets_unmanaged() const;

 private:
  SegmentHost(int memfd, client::Segment* segment) : memfd_(memfd), segment_(segment) {}
  std::uint32_t LanesUsed() const;
  std::uint32_t SocketsUsed() const;
  void LookForLanes(News* news);
  void LookForMessages(News* news);
  void AddRests(std::array<LaneSample, client::kMaxLanes>* samples) const;
  LaneSample ReadCounters(std::uint32_t lane);
  std::uint32_t LaneOfSocket(std::uint32_t socket) const;

  int memfd_;
  client::Segment* segment_;
  struct Known {
    bool live = false;
    bool start_armed = false;
    bool drain_armed = false;
    LaneSample last;
  };
  std::array<Known, client::kMaxLanes> known_{};
  std::uint64_t messages_read_ = 0;
};

}  // namespace weir::agents
