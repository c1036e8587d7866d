#include "transport/rdma/connector.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/rdma/side.h"
#include "transport/tcp/connector.h"

namespace weir::transport::rdma {

RdmaConnector::RdmaConnector(const RdmaOptions& options, Port* port, const Place& place, Lane* lane, const Clock* clock)
    : options_(options),
      port_(*port),
      place_(place),
      lane_(lane),
      clock_(*clock),
      deadline_(clock->Now() + options.connect_within) {}

std::string RdmaConnector::Peer() const {
  return fmt::format("{} ({})", place_.identity, tcp::SocketAddress::Of(place_.address, place_.port, 0).ToString());
}

Result<std::unique_ptr<Connector>> RdmaConnector::Start(const RdmaOptions& options, Port* port, const Place& place,
                                                        Lane* lane, const Clock* clock) {
  std::unique_ptr<RdmaConnector> connector(new RdmaConnector(options, port, place, lane, clock));
  if (Status status = connector->Open(); !status.ok()) {
    return Error(status.code(),
                 fmt::format("{}, connecting to {}: {}", options.identity, connector->Peer(), status.message()));
  }
  return connector;
}

Status RdmaConnector::Open() {
  if (Status drawn = tcp::Draw(&channel_); !drawn.ok()) return drawn;
  const auto choice = port_.Choose(place_.address);
  if (!choice) return choice.error();
  own_ = choice->entry;
  const auto side = SideInterface(port_, own_, options_);
  if (!side) return side.error();
  const tcp::SocketAddress peer = tcp::SocketAddress::Of(place_.address, place_.port, side->index);
  auto socket = tcp::ConnectTo(peer, side->address.is_v4() == place_.address.is_v4() ? &side->address : nullptr);
  if (!socket) return socket.error();
  socket_ = std::move(*socket);
  return Status::Ok();
}

Result<std::unique_ptr<Sender>> RdmaConnector::Poll() {
  auto sender = Step();
  if (!sender) {
    return Error(sender.error().code(),
                 fmt::format("{}, connecting to {}: {}", options_.identity, Peer(), sender.error().message()));
  }
  if (*sender == nullptr && clock_.Now() >= deadline_) {
    return Error(StatusCode::kUnavailable, fmt::format("{}, connecting to {}: no answer within {:.1f} s",
                                                       options_.identity, Peer(), ToSeconds(options_.connect_within)));
  }
  return sender;
}

Result<std::unique_ptr<Sender>> RdmaConnector::Step() {
  if (!greeted_) {
    const int error = tcp::ConnectError(socket_);
    if (error == EINPROGRESS) return nullptr;
    if (error != 0) return Error(StatusCode::kUnavailable, std::strerror(error));
    if (Status status = Greet(); !status.ok()) return tl::unexpected(status);
  }
  if (!ReadSide(socket_, answer_, &got_)) {
    return Error(StatusCode::kUnavailable, "it closed the connection before it answered: no Weir, or gone");
  }
  if (got_ < answer_.size()) return nullptr;
  const auto welcome = DecodeWelcome(answer_);
  if (!welcome) return tl::unexpected(welcome.error());
  if (Status status = Judge(*welcome); !status.ok()) return tl::unexpected(status);
  return Join(*welcome);
}

Status RdmaConnector::Greet() {
  Hello hello;
  hello.listener = place_.nonce;
  hello.channel = channel_;
  hello.queue_pairs = static_cast<std::uint8_t>(options_.queue_pairs);
  hello.classes = static_cast<std::uint8_t>(options_.traffic_classes.size());
  hello.service_level = options_.service_level;
  hello.mtu = static_cast<std::uint8_t>(port_.mtu());
  hello.ethernet = port_.ethernet();
  std::copy(options_.traffic_classes.begin(), options_.traffic_classes.end(), hello.traffic_classes.begin());
  hello.identity = options_.identity;
  const auto bytes = EncodeHello(hello);
  // A new connection has room for more than this; a part of it would be a system that we do not know.
  if (send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    return Status(StatusCode::kUnavailable, fmt::format("cannot greet: {}", std::strerror(errno)));
  }
  greeted_ = true;
  return Status::Ok();
}

Status RdmaConnector::Judge(const Welcome& welcome) const {
  const std::string& who = welcome.identity;
  switch (welcome.verdict) {
    case Verdict::kWelcome:
      if (welcome.channel == channel_ && who == place_.identity) return Status::Ok();
      return Status(StatusCode::kPermissionDenied, fmt::format("{} answers there", who));
    case Verdict::kOtherVersion:
      return Status(StatusCode::kProtocol,
                    fmt::format("{} there does not speak our version, which is {}; run the same Weir on both hosts",
                                who, kVersion));
    case Verdict::kOtherListener:
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("{} listens there now, and did not make this handle", who));
    case Verdict::kTaken:
      return Status(StatusCode::kPermissionDenied, fmt::format("{} has been connected to by another already", who));
    case Verdict::kMalformed:
      return Status(StatusCode::kProtocol, fmt::format("{} did not understand our greeting", who));
    case Verdict::kOtherLink:
      return Status(StatusCode::kUnavailable,
                    fmt::format("{} is on {} and we are not; name devices of one kind on both hosts", who,
                                port_.ethernet() ? "InfiniBand" : "Ethernet"));
    case Verdict::kNoRoom:
      return Status(StatusCode::kUnavailable,
                    fmt::format("the device of {} has no room for this channel's queues", who));
  }
  return Status(StatusCode::kInternal, "an answer that was decoded and is unknown");
}

Result<std::unique_ptr<Sender>> RdmaConnector::Join(const Welcome& welcome) {
  QueuePlan plan;
  plan.pairs = options_.queue_pairs;
  plan.classes = static_cast<std::uint32_t>(options_.traffic_classes.size());
  std::copy(options_.traffic_classes.begin(), options_.traffic_classes.end(), plan.traffic_classes.begin());
  plan.service_level = options_.service_level;
  plan.first_depth = plan.depth = RdmaSender::kDepth;
  plan.incoming = welcome.requests;
  auto queues = Queues::Make(&port_, plan);
  if (!queues) return tl::unexpected(queues.error());
  auto ring = Room::Make(&port_, welcome.requests * kPostedStride, Registrations::Use::kReceive);
  if (!ring) return tl::unexpected(ring.error());
  const std::uint8_t mtu = std::min(welcome.mtu, static_cast<std::uint8_t>(port_.mtu()));
  if (Status status = (*queues)->Connect(own_, welcome.end, mtu, options_); !status.ok()) return tl::unexpected(status);
  End end;
  (*queues)->Describe(own_, &end);
  end.memory_address = reinterpret_cast<std::uint64_t>((*ring)->data());
  end.memory_key = (*ring)->memory().rkey;
  const auto bytes = EncodeAttach(end);
  if (send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    return Error(StatusCode::kUnavailable, "it closed the connection before it was ready");
  }
  TuneSide(socket_, options_);
  Made made;
  made.options = options_;
  made.ends = {options_.identity, Peer()};
  made.port = &port_;
  made.queues = std::move(*queues);
  made.incoming = std::move(*ring);
  made.side = std::move(socket_);
  made.peer = welcome.end;
  made.slots = welcome.slots;
  made.requests = welcome.requests;
  made.lane = lane_;
  made.clock = &clock_;
  return std::make_unique<RdmaSender>(std::move(made));
}

}  // namespace weir::transport::rdma
