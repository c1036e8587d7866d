#include "transport/rdma/sender.h"

#include <fmt/format.h>

#include <utility>

namespace weir::transport::rdma {

RdmaSender::RdmaSender(Made made)
    : options_(std::move(made.options)),
      ends_(std::move(made.ends)),
      port_(*made.port),
      ring_(std::move(made.incoming)),
      peer_(made.peer),
      slots_(made.slots),
      lane_(made.lane),
      lane_share_(made.lane),
      clock_(*made.clock),
      memory_(&port_.registrations(), Registrations::Use::kSend),
      watch_(std::move(made.side), &port_, options_.dead_after),
      queues_(std::move(made.queues)) {
  pairs_.resize(queues_->size());
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    pairs_[i].pair = queues_->pair(i);
    pairs_[i].window = options_.window_bytes;
  }
  sends_.assign(options_.requests, Send(this));
  for (Send& send : sends_) free_.push_back(&send);
  queue_.resize(options_.requests);
  open_.resize(made.requests);
}

RdmaSender::~RdmaSender() {
  if (lane_ != nullptr) lane_share_.Idle();
  queues_.reset();  // From here on the device touches nothing.
  for (Send& send : sends_) Release(&send);
}

Result<MemoryId> RdmaSender::Register(void* data, Bytes size, MemoryKind kind) {
  return memory_.Register(data, size, kind);
}

Result<MemoryId> RdmaSender::RegisterDmaBuf(int fd, Bytes offset, void* data, Bytes size) {
  return memory_.RegisterDmaBuf(fd, offset, data, size);
}

Status RdmaSender::Deregister(MemoryId memory) {
  return memory_.Deregister(memory);
}

void RdmaSender::Fail(StatusCode code, const std::string& what) noexcept {
  if (!failure_.ok()) return;
  failure_ = Status(code, fmt::format("{}, sending to {}: {}", ends_.local, ends_.peer, what));
  if (lane_ != nullptr) lane_share_.Idle();
}

}  // namespace weir::transport::rdma
