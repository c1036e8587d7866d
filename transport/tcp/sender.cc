#include "transport/tcp/sender.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace weir::transport::tcp {

TcpSender::TcpSender(Made made)
    : options_(std::move(made.options)),
      ends_(std::move(made.ends)),
      slots_(made.slots),
      control_(std::move(made.control), options_.dead_after),
      window_({options_.in_kernel_bytes, options_.queue_time}),
      lane_(made.lane),
      lane_share_(made.lane),
      clock_(*made.clock) {
  for (Socket& socket : made.streams) {
    streams_.emplace_back();
    streams_.back().socket = std::move(socket);
  }
  Share(clock_.Now());
  sends_.assign(options_.requests, Send(this));
  for (Send& send : sends_) free_.push_back(&send);
  queue_.resize(options_.requests);
  if (slots_ > 1) posted_.resize(kMaxRequests);
}

TcpSender::~TcpSender() {
  if (lane_ != nullptr) lane_share_.Idle();
}

Result<MemoryId> TcpSender::Register(void* data, Bytes size, MemoryKind kind) {
  return memory_.Register(data, size, kind);
}

Status TcpSender::Deregister(MemoryId memory) {
  return memory_.Deregister(memory);
}

std::size_t TcpSender::Descriptors(std::span<int> out) const noexcept {
  std::size_t count = 0;
  for (const Stream& stream : streams_) {
    if (count < out.size()) out[count++] = stream.socket.get();
  }
  if (count < out.size()) out[count++] = control_.fd();
  return count;
}

void TcpSender::Fail(StatusCode code, const std::string& what) noexcept {
  if (!failure_.ok()) return;
  failure_ = Status(code, fmt::format("{}, sending to {}: {}", ends_.local, ends_.peer, what));
  if (lane_ != nullptr) lane_share_.Idle();
}

}  // namespace weir::transport::tcp
