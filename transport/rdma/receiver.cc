#include "transport/rdma/receiver.h"

#include <fmt/format.h>

#include <utility>

namespace weir::transport::rdma {

RdmaReceiver::RdmaReceiver(Made made)
    : options_(std::move(made.options)),
      ends_(std::move(made.ends)),
      port_(*made.port),
      own_(made.own),
      mtu_(made.mtu),
      records_(std::move(made.incoming)),
      ring_copy_(std::move(made.outgoing)),
      peer_(made.peer),
      slots_(made.slots),
      clock_(*made.clock),
      memory_(&port_.registrations(), Registrations::Use::kReceive),
      watch_(std::move(made.side), &port_, options_.dead_after),
      queues_(std::move(made.queues)) {
  receives_.assign(options_.requests, Receive(this));
  for (std::uint32_t i = options_.requests; i > 0; --i) free_.push_back(i - 1);
}

RdmaReceiver::~RdmaReceiver() {
  queues_.reset();  // From here on the peer cannot write anything.
  for (Receive& receive : receives_) Release(&receive);
}

Result<MemoryId> RdmaReceiver::Register(void* data, Bytes size, MemoryKind kind) {
  return memory_.Register(data, size, kind);
}

Result<MemoryId> RdmaReceiver::RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size) {
  auto memory = memory_.RegisterDmaBuf(fd, offset, data, size);
  // A GPU that needs no flush does not miss it; one that does is told by Flush why there is none.
  if (memory) static_cast<void>(PrepareToFlush());
  return memory;
}

Status RdmaReceiver::PrepareToFlush() {
  if (flushes_ != nullptr) return Status::Ok();
  auto made = FlushQueue::Make(&port_, own_, mtu_, options_, options_.requests, this);
  if (!made) return made.error();
  flushes_ = std::move(*made);
  return Status::Ok();
}

Status RdmaReceiver::Deregister(MemoryId memory) {
  return memory_.Deregister(memory);
}

void RdmaReceiver::Fail(StatusCode code, const std::string& what) noexcept {
  if (!failure_.ok()) return;
  failure_ = Status(code, fmt::format("{}, receiving from {}: {}", ends_.local, ends_.peer, what));
}

}  // namespace weir::transport::rdma
