#include "transport/rdma/queues.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace weir::transport::rdma {
namespace {

/// What is tried for data that travels within the request; devices differ in what they take.
constexpr std::uint32_t kInline[] = {256, 128, 64, 32, kRecordBytes};
constexpr std::uint8_t kRetryReceiverNotReady = 7;  // For ever: it never happens while both ends keep to the rules.
constexpr std::uint8_t kNotReadyTimer = 12;         // 0.64 ms.
constexpr std::uint8_t kHops = 64;

Status Exhausted(const Port& port, const char* what, std::uint64_t wanted, int error) {
  return Status(StatusCode::kResourceExhausted,
                fmt::format("{}: no {} of {} entries: {}; fewer requests, slots or queue pairs need less", port.name(),
                            what, wanted, std::strerror(error)));
}

}  // namespace

Queues::Queues(Port* port, const QueuePlan& plan) : port_(*port), plan_(plan) {
  // Packets of an earlier channel on the same queue pair must not look like ours.
  static_cast<void>(getrandom(&first_packet_, sizeof(first_packet_), 0));
  first_packet_ &= 0xffffff;
}

Result<std::unique_ptr<Queues>> Queues::Make(Port* port, const QueuePlan& plan) {
  std::unique_ptr<Queues> queues(new Queues(port, plan));
  if (Status status = queues->MakeAll(); !status.ok()) return tl::unexpected(status);
  return queues;
}

Queues::~Queues() {
  const Verbs& verbs = port_.verbs();
  for (ibv_qp* pair : pairs_) verbs.destroy_qp(pair);
  if (incoming_ != nullptr) verbs.destroy_srq(incoming_);
  if (completions_ != nullptr) verbs.destroy_cq(completions_);
}

Status Queues::MakeAll() {
  const Verbs& verbs = port_.verbs();
  const std::uint32_t count = plan_.pairs * plan_.classes;
  const std::uint32_t completions = plan_.first_depth + plan_.depth * (count - 1) + plan_.incoming;
  completions_ = verbs.create_cq(port_.context(), static_cast<int>(completions), nullptr, nullptr, 0);
  if (completions_ == nullptr) return Exhausted(port_, "queue of completions", completions, errno);
  ibv_srq_init_attr attributes{};
  attributes.attr.max_wr = plan_.incoming;
  attributes.attr.max_sge = 1;
  incoming_ = verbs.create_srq(port_.domain(), &attributes);
  if (incoming_ == nullptr) return Exhausted(port_, "queue of what comes in", plan_.incoming, errno);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (Status status = MakePair(i == 0 ? plan_.first_depth : plan_.depth); !status.ok()) return status;
  }
  for (std::uint32_t i = 0; i < plan_.incoming; ++i) {
    if (!Replenish()) return Exhausted(port_, "queue of what comes in", plan_.incoming, ENOMEM);
  }
  return Status::Ok();
}

Status Queues::MakePair(std::uint32_t depth) {
  parts_ = std::clamp<std::uint32_t>(port_.limits().parts, 1, kMaxParts);
  for (const std::uint32_t bytes : kInline) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = completions_;
    attributes.recv_cq = completions_;
    attributes.srq = incoming_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap.max_send_wr = depth;
    attributes.cap.max_send_sge = parts_;
    attributes.cap.max_inline_data = bytes;
    errno = 0;
    if (ibv_qp* pair = port_.verbs().create_qp(port_.domain(), &attributes); pair != nullptr) {
      pairs_.push_back(pair);
      inline_bytes_ = bytes;
      return Status::Ok();
    }
  }
  return Exhausted(port_, "queue pair", depth, errno);
}

void Queues::Describe(const GidEntry& own, End* end) const {
  end->gid = own.gid;
  end->lid = port_.lid();
  end->first_packet = first_packet_;
  for (std::size_t i = 0; i < pairs_.size(); ++i) end->queue_pairs[i] = pairs_[i]->qp_num;
}

Status Queues::Connect(const GidEntry& own, const End& peer, std::uint8_t mtu, const RdmaOptions& options) {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    Route route;
    route.own = own;
    route.peer_gid = peer.gid;
    route.peer_lid = peer.lid;
    route.peer_pair = peer.queue_pairs[i];
    route.first_packet = first_packet_;
    route.peer_first_packet = peer.first_packet;
    route.mtu = mtu;
    route.traffic_class = plan_.traffic_classes[i / plan_.pairs];
    route.service_level = plan_.service_level;
    route.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    if (Status status = StartPair(port_, pairs_[i], route, options); !status.ok()) return status;
  }
  return Status::Ok();
}

Status StartPair(const Port& port, ibv_qp* pair, const Route& route, const RdmaOptions& options) {
  const auto refused = [&](const char* state, int error) {
    return Status(StatusCode::kUnavailable, fmt::format("{}: queue pair {} does not get {}: {}", port.name(),
                                                        pair->qp_num, state, std::strerror(error)));
  };
  const Verbs& verbs = port.verbs();
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = options.pkey_index;
  attributes.port_num = port.number();
  attributes.qp_access_flags = static_cast<unsigned>(route.access);
  int error = verbs.modify_qp(pair, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
  if (error != 0) return refused("ready", error);

  attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = static_cast<ibv_mtu>(route.mtu);
  attributes.dest_qp_num = route.peer_pair;
  attributes.rq_psn = route.peer_first_packet;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = kNotReadyTimer;
  attributes.ah_attr.port_num = port.number();
  attributes.ah_attr.sl = route.service_level;
  attributes.ah_attr.dlid = route.peer_lid;
  attributes.ah_attr.is_global = port.ethernet() ? 1 : 0;
  std::memcpy(attributes.ah_attr.grh.dgid.raw, route.peer_gid.data(), route.peer_gid.size());
  attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(route.own.index);
  attributes.ah_attr.grh.hop_limit = kHops;
  attributes.ah_attr.grh.traffic_class = route.traffic_class;
  error = verbs.modify_qp(pair, &attributes,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0) return refused("ready to receive", error);

  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = options.timeout;
  attributes.retry_cnt = options.retry_count;
  attributes.rnr_retry = kRetryReceiverNotReady;
  attributes.sq_psn = route.first_packet;
  attributes.max_rd_atomic = 1;
  error = verbs.modify_qp(
      pair, &attributes,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  return error == 0 ? Status::Ok() : refused("ready to send", error);
}

bool Queues::Replenish() noexcept {
  ibv_recv_wr request{};
  request.wr_id = kIncoming;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_srq_recv(incoming_, &request, &bad) == 0;
}

Result<std::unique_ptr<Room>> Room::Make(Port* port, Bytes size, Registrations::Use use) {
  constexpr Bytes kPage = 4096;
  std::unique_ptr<Room> room(new Room(port));
  const Bytes whole = (size + kPage - 1) / kPage * kPage;
  room->data_ = static_cast<std::byte*>(std::aligned_alloc(kPage, whole));
  if (room->data_ == nullptr) return Error(StatusCode::kResourceExhausted, fmt::format("no {} bytes of memory", whole));
  std::memset(room->data_, 0, whole);
  const auto entry = port->registrations().Hold(room->data_, whole, use);
  if (!entry) return tl::unexpected(entry.error());
  room->entry_ = *entry;
  return room;
}

Room::~Room() {
  if (entry_ != nullptr) port_.registrations().Release(entry_);
  std::free(data_);
}

}  // namespace weir::transport::rdma
