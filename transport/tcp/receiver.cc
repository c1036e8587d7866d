#include "transport/tcp/receiver.h"

#include <fmt/format.h>

#include <utility>

namespace weir::transport::tcp {
namespace {

/// Read ahead on the first stream: some dozens of small messages in one call. A large message is read in place.
constexpr std::size_t kAheadBytes = 16 * 1024;
constexpr std::size_t kOpenMessages = 1024;

}  // namespace

TcpReceiver::TcpReceiver(Made made)
    : options_(std::move(made.options)),
      ends_(std::move(made.ends)),
      slots_(made.slots),
      control_(std::move(made.control), options_.dead_after),
      clock_(*made.clock) {
  for (Socket& socket : made.streams) {
    streams_.emplace_back();
    streams_.back().socket = std::move(socket);
    streams_.back().ahead.resize(kAheadBytes);
  }
  receives_.assign(options_.requests, Receive(this));
  for (Receive& receive : receives_) free_.push_back(&receive);
  unmatched_.resize(options_.requests);
  open_.resize(kOpenMessages);
}

Result<MemoryId> TcpReceiver::Register(void* data, Bytes size, MemoryKind kind) {
  return memory_.Register(data, size, kind);
}

Status TcpReceiver::Deregister(MemoryId memory) {
  return memory_.Deregister(memory);
}

std::size_t TcpReceiver::Descriptors(std::span<int> out) const noexcept {
  std::size_t count = 0;
  for (const Stream& stream : streams_) {
    if (count < out.size()) out[count++] = stream.socket.get();
  }
  if (count < out.size()) out[count++] = control_.fd();
  return count;
}

void TcpReceiver::Fail(StatusCode code, const std::string& what) noexcept {
  if (!failure_.ok()) return;
  failure_ = Status(code, fmt::format("{}, receiving from {}: {}", ends_.local, ends_.peer, what));
}

}  // namespace weir::transport::tcp
