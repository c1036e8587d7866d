#include "transport/tcp/control_link.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace weir::transport::tcp {

ControlLink::ControlLink(Socket socket, Nanoseconds dead_after) : socket_(std::move(socket)), watch_(dead_after) {
  out_.resize(kBufferBytes);
}

bool ControlLink::Send(const Control& frame) noexcept {
  if (out_.size() - out_size_ < kControlBytesMax) return false;
  out_size_ += EncodeControl(frame, std::span<std::byte, kControlBytesMax>(out_.data() + out_size_, kControlBytesMax));
  return true;
}

void ControlLink::Flush(Nanoseconds now) noexcept {
  if (now >= heartbeat_at_) {
    // When the queue is full the peer has not read for long, and what lies there is waiting for an answer already.
    static_cast<void>(Send(Control{}));
    heartbeat_at_ = now + watch_.heartbeat_every();
  }
  if (out_size_ == 0) return;
  const ssize_t sent = send(socket_.get(), out_.data(), out_size_, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return Judge(errno);
  out_size_ -= static_cast<std::size_t>(sent);
  std::memmove(out_.data(), out_.data() + sent, out_size_);
}

void ControlLink::Fill() noexcept {
  const ssize_t got = recv(socket_.get(), in_.data() + in_size_, in_.size() - in_size_, MSG_DONTWAIT);
  if (got < 0) return Judge(errno);
  if (got == 0) {
    state_ = State::kClosed;
    return;
  }
  in_size_ += static_cast<std::size_t>(got);
}

void ControlLink::Keep(std::size_t from) noexcept {
  in_size_ -= from;
  std::memmove(in_.data(), in_.data() + from, in_size_);
}

void ControlLink::Judge(int error) noexcept {
  if (error == EAGAIN || error == EINTR || state_ != State::kOpen) return;
  if (error == ECONNRESET || error == EPIPE) {
    state_ = State::kClosed;  // It went without reading our last heartbeat.
  } else {
    Break(error);
  }
}

void ControlLink::Break(int problem) noexcept {
  state_ = State::kBroken;
  problem_ = problem;
}

}  // namespace weir::transport::tcp
