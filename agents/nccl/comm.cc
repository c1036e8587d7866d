// Making and closing ends of connections. What runs for each transfer is in comm_datapath.cc.
#include "agents/nccl/comm.h"

#include <algorithm>

#include "agents/nccl/fork_guard.h"
#include "agents/nccl/plugin.h"

namespace weir::nccl {
namespace {

constexpr std::size_t kDescriptorsMax = 32;

}  // namespace

Comm::Comm(Context* context) : context_(context) {
  for (Transfer& transfer : transfers_) {
    transfer.comm = this;
    free_.push_back(&transfer);
  }
}

Comm::~Comm() = default;

void Comm::Attach(transport::Channel* channel) {
  channel_ = channel;
  std::array<int, kDescriptorsMax> fds;
  CloseInChildren(std::span(fds).first(channel_->Descriptors(fds)));
}

void Comm::Detach() noexcept {
  if (channel_ == nullptr) return;
  std::array<int, kDescriptorsMax> fds;
  ForgetInChildren(std::span(fds).first(channel_->Descriptors(fds)));
  channel_ = nullptr;
}

Result<transport::MemoryId> Comm::Register(void* data, std::size_t size, int kind) {
  const std::lock_guard lock(mutex_);
  return channel_->Register(data, size, static_cast<transport::MemoryKind>(kind));
}

Result<transport::MemoryId> Comm::RegisterDmaBuf(int fd, Bytes offset, void* data, std::size_t size) {
  const std::lock_guard lock(mutex_);
  return channel_->RegisterDmaBuf(fd, offset, data, size);
}

Status Comm::Deregister(transport::MemoryId memory) {
  const std::lock_guard lock(mutex_);
  return channel_->Deregister(memory);
}

SendComm::~SendComm() {
  Detach();
  managed_.Close();
  if (sender_ != nullptr) Plugin::Instance().OnSendClosed();
}

void SendComm::Connected(std::unique_ptr<transport::Sender> sender) {
  sender_ = std::move(sender);
  Attach(sender_.get());
  std::array<int, kDescriptorsMax> fds;
  const std::size_t count = sender_->Descriptors(fds);
  if (marking_.traffic_class >= 0) {
    for (const int fd : std::span(fds).first(count)) SetTrafficClass(fd, marking_.traffic_class);
  }
  // The last one is for control: nothing of a message waits there. Where a device carries the messages it is the only
  // one, and says which peer this is; or there is none, and the channel says so itself.
  if (count > 0) {
    managed_.Connected(std::span(fds).first(std::max<std::size_t>(count - 1, 1)), marking_.directive_may);
  } else if (const auto route = sender_->route()) {
    managed_.Connected(*route);
  }
}

ReceiveComm::ReceiveComm(Context* context, std::unique_ptr<transport::Receiver> receiver)
    : Comm(context), receiver_(std::move(receiver)) {
  Attach(receiver_.get());
}

ReceiveComm::~ReceiveComm() {
  Detach();
}

}  // namespace weir::nccl
