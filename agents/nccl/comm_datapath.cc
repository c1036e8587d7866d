// What runs for each transfer: no allocation, and no log but for the first of a kind, until the connection has failed.
#include <fmt/format.h>

#include "agents/nccl/comm.h"
#include "agents/nccl/log.h"
#include "agents/nccl/plugin.h"
#include "transport/clock.h"

namespace weir::nccl {

Transfer* Comm::Take(transport::Request* request) noexcept {
  Transfer* transfer = free_.back();
  free_.pop_back();
  transfer->request = request;
  return transfer;
}

abi::Result Comm::Failed() {
  const Status& failure = channel_->failure();
  if (!failure_said_) {
    failure_said_ = true;
    Warn(fmt::format("communicator {:#x}{}: {}", context_->comm_id, Whereabouts(), failure.message()));
  }
  return ResultOf(failure.code());
}

/// NCCL calls our profiler half back before this returns, with the record that we hand it.
TransferIdentity Comm::Ask(void* phandle) const {
  TransferIdentity found;
  if (phandle == nullptr || context_->callback == nullptr) return found;
  void* event = nullptr;
  context_->callback(&event, abi::EventCall::kStart, phandle, kNetPluginId, &found);
  return found;
}

abi::Result Comm::Test(Transfer* transfer, int* done, int* sizes) {
  const std::lock_guard lock(mutex_);
  *done = 0;
  std::array<Bytes, transport::kMaxSlots> lengths{};
  const transport::Outcome outcome = channel_->Test(transfer->request, lengths);
  OnLook();
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) return abi::Result::kSuccess;
  *done = 1;
  if (sizes != nullptr) {
    for (std::size_t i = 0; i < transfer->buffers; ++i) sizes[i] = static_cast<int>(lengths[i]);
  }
  OnDone();
  free_.push_back(transfer);
  return abi::Result::kSuccess;
}

void SendComm::Identify(void* phandle, Nanoseconds now) {
  if (identified_) return;
  identified_ = true;
  TransferIdentity found = Ask(phandle);
  if (!found.known) found.key = context_->ladder.OnSend(context_->comm_id, now);
  identity_ = found;
  const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(found.key.attribution));
  if ((context_->attributions_said.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((context_->attributions_said.fetch_or(bit) & bit) != 0) return;
  Inform(fmt::format("communicator {:#x}: coflows are known by {}", context_->comm_id,
                     AttributionName(found.key.attribution)));
}

abi::Result SendComm::Isend(const void* data, std::size_t size, int tag, transport::MemoryId memory, void* phandle,
                            Transfer** transfer) {
  const std::lock_guard lock(mutex_);
  *transfer = nullptr;
  if (full()) return abi::Result::kSuccess;
  const Nanoseconds now = transport::SteadyClock().Now();
  Identify(phandle, now);
  if (!managed_.MayBegin(identity_, size, now)) {
    // With nothing under way, only this notices a peer that is gone.
    return sender_->Look() == transport::Outcome::kFailed ? Failed() : abi::Result::kSuccess;
  }
  const transport::Part part{data, size, memory};
  transport::Request* request = nullptr;
  const transport::Outcome outcome = sender_->Isend(std::span(&part, 1), tag, &request);
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) {
    managed_.NotYet(now);
    return abi::Result::kSuccess;
  }
  *transfer = Take(request);
  (*transfer)->buffers = 1;
  identified_ = false;
  managed_.Begun(identity_, size, Left(), now);
  if (CoflowBook* coflows = Plugin::Instance().coflows()) coflows->OnSend(identity_.key, size, now);
  return abi::Result::kSuccess;
}

void SendComm::OnLook() {
  managed_.Moved(Left());
}

void SendComm::OnDone() {
  managed_.Ended(transport::SteadyClock().Now());
}

std::string SendComm::Whereabouts() const {
  if (!identity_.known) return "";
  return fmt::format(", rank {} to rank {}, channel {}, {} {}", identity_.rank, identity_.peer, identity_.channel,
                     FunctionName(identity_.key.function), identity_.key.sequence);
}

abi::Result ReceiveComm::Irecv(std::span<const transport::Slot> slots, void* phandle, Transfer** transfer) {
  const std::lock_guard lock(mutex_);
  *transfer = nullptr;
  if (full()) return abi::Result::kSuccess;
  if (!identity_.known) identity_ = Ask(phandle);
  transport::Request* request = nullptr;
  const transport::Outcome outcome = receiver_->Irecv(slots, &request);
  if (outcome == transport::Outcome::kFailed) return Failed();
  if (outcome == transport::Outcome::kAgain) return abi::Result::kSuccess;
  *transfer = Take(request);
  (*transfer)->buffers = static_cast<std::uint32_t>(slots.size());
  return abi::Result::kSuccess;
}

abi::Result ReceiveComm::Iflush(std::span<const transport::Slot> slots, Transfer** transfer) {
  const std::lock_guard lock(mutex_);
  *transfer = nullptr;
  if (full()) {
    Warn(fmt::format("a flush: {} transfers are under way on this connection, which is the most", kTransfers));
    return abi::Result::kInternal;
  }
  const auto request = receiver_->Flush(slots);
  if (!request) {
    Warn(fmt::format("communicator {:#x}{}: {}", context_->comm_id, Whereabouts(), request.error().message()));
    return ResultOf(request.error().code());
  }
  if (*request == nullptr) return abi::Result::kSuccess;
  *transfer = Take(*request);
  (*transfer)->buffers = 0;
  return abi::Result::kSuccess;
}

void ReceiveComm::OnLook() {}
void ReceiveComm::OnDone() {}

std::string ReceiveComm::Whereabouts() const {
  if (!identity_.known) return "";
  return fmt::format(", rank {} from rank {}, channel {}", identity_.rank, identity_.peer, identity_.channel);
}

}  // namespace weir::nccl
