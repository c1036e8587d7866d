#include "transport/rdma/flush_queue.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

namespace weir::transport::rdma {

Result<std::unique_ptr<FlushQueue>> FlushQueue::Make(Port* port, const GidEntry& own, std::uint8_t mtu,
                                                     const RdmaOptions& options, std::uint32_t flushes,
                                                     Channel* channel) {
  std::unique_ptr<FlushQueue> queue(new FlushQueue(port));
  auto landing = Room::Make(port, 1, Registrations::Use::kReceive);
  if (!landing) return tl::unexpected(landing.error());
  queue->landing_ = std::move(*landing);
  if (Status status = queue->MakePair(flushes); !status.ok()) return tl::unexpected(status);
  Route route;
  route.own = own;
  route.peer_gid = own.gid;
  route.peer_lid = port->lid();
  route.peer_pair = queue->pair_->qp_num;
  route.mtu = mtu;
  route.service_level = options.service_level;
  route.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  if (Status status = StartPair(*port, queue->pair_, route, options); !status.ok()) return tl::unexpected(status);
  queue->flushes_.assign(flushes, Flush(channel));
  return queue;
}

Status FlushQueue::MakePair(std::uint32_t flushes) {
  const auto refused = [&](const char* what) {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("{}: no {} of {} entries to flush memory of GPUs with: {}", port_.name(), what, flushes,
                              std::strerror(errno)));
  };
  const Verbs& verbs = port_.verbs();
  completions_ = verbs.create_cq(port_.context(), static_cast<int>(flushes), nullptr, nullptr, 0);
  if (completions_ == nullptr) return refused("queue of completions");
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_;
  attributes.recv_cq = completions_;
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap = {flushes, 1, 1, 1, 0};
  pair_ = verbs.create_qp(port_.domain(), &attributes);
  return pair_ == nullptr ? refused("queue pair") : Status::Ok();
}

FlushQueue::~FlushQueue() {
  const Verbs& verbs = port_.verbs();
  if (pair_ != nullptr) verbs.destroy_qp(pair_);
  if (completions_ != nullptr) verbs.destroy_cq(completions_);
}

FlushQueue::Flush* FlushQueue::Post(const Registrations::Entry& memory, const void* at, Nanoseconds now) noexcept {
  Flush* const flush = &flushes_[posted_ % flushes_.size()];
  if (flush->taken) return nullptr;
  ibv_sge piece{reinterpret_cast<std::uint64_t>(landing_->data()), 1, landing_->memory().lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_READ;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = reinterpret_cast<std::uint64_t>(at);
  request.wr.rdma.rkey = memory.memory->rkey;
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(pair_, &request, &bad) != 0) return nullptr;
  if (completed_ == posted_) busy_since_ = now;
  flush->taken = true;
  flush->number = posted_++;
  return flush;
}

bool FlushQueue::Owns(const Request* request) const noexcept {
  const auto* begin = static_cast<const Request*>(flushes_.data());
  const auto* end = static_cast<const Request*>(flushes_.data() + flushes_.size());
  return !std::less<>()(request, begin) && std::less<>()(request, end);
}

Outcome FlushQueue::Test(Flush* flush, Nanoseconds now) noexcept {
  std::array<ibv_wc, 16> completions;
  int count = 1;
  while (flush->number >= completed_ && count > 0) {
    count = ibv_poll_cq(completions_, static_cast<int>(completions.size()), completions.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc_status status = completions[static_cast<std::size_t>(i)].status;
      if (status != IBV_WC_SUCCESS) {
        why_ = port_.verbs().wc_status_str(status);
        return Outcome::kFailed;
      }
      ++completed_;
      busy_since_ = now;
    }
  }
  if (count < 0) {
    why_ = "the device does not say what it got done";
    return Outcome::kFailed;
  }
  if (flush->number >= completed_) return Outcome::kAgain;
  flush->taken = false;
  return Outcome::kDone;
}

}  // namespace weir::transport::rdma
