// What runs for each transfer: no allocation, no log until the connection has failed.
#include <fmt/format.h>

#include "agents/nccl/comm.h"
#include "agents/nccl/log.h"
#include "agents/nccl/plugin.h"

namespace weir::nccl {

Transfer* Comm::Take(transport::Request* request) noexcept {
  Transfer* transfer = free_.back();
  free_.pop_back();
  transfer->request = request;
  return transfer;
}

abi::Result Comm::Failed() noexcept {
  const Status& failure = channel_->failure();
  if (!failure_said_) {
    failure_said_ = true;
    Warn(fmt::format("communicator {:#x}: {}", context_->comm_id, failure.message()));
  }
  return ResultOf(failure.code());
}

abi::Result Comm::Test(Transfer* transfer, int* done, int* sizes) noexcept {
  const std::lock_guard lock(mutex_);
  *done = 0;
  std::array<Bytes, transport::kMaxSlots> lengths{};
  const transport::Outcome outcome = channel_->Test(transfer->request, lengths);
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) return abi::Result::kSuccess;
  *done = 1;
  if (sizes != nullptr) {
    for (std::size_t i = 0; i < transfer->buffers; ++i) sizes[i] = static_cast<int>(lengths[i]);
  }
  OnDone(transfer);
  free_.push_back(transfer);
  return abi::Result::kSuccess;
}

abi::Result SendComm::Isend(const void* data, std::size_t size, int tag, transport::MemoryId memory,
                            [[maybe_unused]] void* phandle, Transfer** transfer) noexcept {
  const std::lock_guard lock(mutex_);
  *transfer = nullptr;
  if (full()) return abi::Result::kSuccess;
  const transport::Part part{data, size, memory};
  transport::Request* request = nullptr;
  const transport::Outcome outcome = sender_->Isend(std::span(&part, 1), tag, &request);
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) return abi::Result::kSuccess;
  *transfer = Take(request);
  (*transfer)->buffers = 1;
  return abi::Result::kSuccess;
}

void SendComm::OnDone(Transfer*) noexcept {}

abi::Result ReceiveComm::Irecv(std::span<const transport::Slot> slots, Transfer** transfer) noexcept {
  const std::lock_guard lock(mutex_);
  *transfer = nullptr;
  if (full()) return abi::Result::kSuccess;
  transport::Request* request = nullptr;
  const transport::Outcome outcome = receiver_->Irecv(slots, &request);
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) return abi::Result::kSuccess;
  *transfer = Take(request);
  (*transfer)->buffers = static_cast<std::uint32_t>(slots.size());
  return abi::Result::kSuccess;
}

void ReceiveComm::OnDone(Transfer*) noexcept {}

}  // namespace weir::nccl
