#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "coflow/status.h"
#include "transport/tcp/kernel_queue.h"
#include "transport/tcp/silence_watch.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/wire.h"

namespace weir::transport::tcp {

/// Both ends of a channel, as messages name them.
struct Ends {
  std::string local;  ///< "host/123 (10.0.0.1:4710)"
  std::string peer;   ///< "other/456 (10.0.0.2:4711)"
};

/// The connection of a channel that carries no data: heartbeats both ways, and which receives are posted. As it is
/// never full, bytes that stay unanswered mean here that the link is dead, and never that the peer is slow. The
/// heartbeat gives the peer's kernel something to answer.
///
/// Owned by a channel, on the channel's thread. Holds kBufferBytes each way.
class ControlLink {
 public:
  enum class State { kOpen, kClosed, kBroken };

  ControlLink(Socket socket, Nanoseconds dead_after);

  /// Queues a frame. False when there is no room; it goes out with Poll.
  bool Send(const Control& frame) noexcept;
  /// Asks the kernel for signs of life and sends what is queued and a heartbeat, all if it is time; reads, and gives
  /// each frame of posted receives to `on_posted(const Control&)`, which returns false for one that must not come.
  /// kClosed: the peer is gone in order or not, kBroken: the link is dead or what came is no frame (problem() says
  /// which). Both are final.
  template <typename OnPosted>
  State Poll(Nanoseconds now, OnPosted&& on_posted) noexcept {
    if (state_ != State::kOpen) return state_;
    if (watch_.Due(now)) watch_.OnAsked(now, Silence());
    Flush(now);
    Fill();
    Control frame;
    std::size_t at = 0;
    while (true) {
      const std::size_t size = DecodeControl(std::span(in_).subspan(at, in_size_ - at), &frame);
      if (size == 0) break;
      if (size == kControlBad || (frame.count > 0 && !on_posted(frame))) {
        Break(0);
        return state_;
      }
      at += size;
    }
    Keep(at);
    return state_;
  }

  /// For how long nothing has come back while something of ours waits for an answer, as the kernel counts it, in its
  /// ticks of some milliseconds; 0 when nothing waits. A system call.
  Nanoseconds Silence() const noexcept { return SilenceOf(socket_); }
  /// After Poll at the same time: nothing has come back for so long that the link counts as dead, here nor on any of
  /// `others`, connections of the same channel. A system call for each of them, when it is quiet here.
  template <typename Streams>
  bool Dead(Nanoseconds now, const Streams& others) noexcept {
    if (!watch_.Dead(now)) return false;
    for (const auto& other : others) watch_.OnSign(now - AgeOf(other.socket));
    return watch_.Dead(now);
  }
  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  /// Of kBroken: an errno, or 0 when the peer broke the protocol.
  int problem() const { return problem_; }

 private:
  static constexpr std::size_t kBufferBytes = 32 * 1024;

  void Flush(Nanoseconds now) noexcept;
  void Fill() noexcept;
  void Keep(std::size_t from) noexcept;
  void Break(int problem) noexcept;
  void Judge(int error) noexcept;

  Socket socket_;
  SilenceWatch watch_;
  Nanoseconds heartbeat_at_ = 0;
  State state_ = State::kOpen;
  int problem_ = 0;
  std::size_t in_size_ = 0;
  std::size_t out_size_ = 0;
  std::array<std::byte, 4096> in_;
  std::vector<std::byte> out_;
};

}  // namespace weir::transport::tcp
