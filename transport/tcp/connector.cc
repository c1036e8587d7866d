#include "transport/tcp/connector.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/tcp/sender.h"

namespace weir::transport::tcp {

Status Draw(Nonce* nonce) {
  if (getrandom(nonce->data(), nonce->size(), 0) == static_cast<ssize_t>(nonce->size())) return Status::Ok();
  return Status(StatusCode::kUnsupported, fmt::format("no random numbers: {}", std::strerror(errno)));
}

TcpConnector::TcpConnector(const TcpOptions& options, const Place& place, Lane* lane, const Clock* clock)
    : options_(options), place_(place), lane_(lane), clock_(*clock), deadline_(clock->Now() + options.connect_within) {}

std::string TcpConnector::Peer() const {
  return fmt::format("{} ({})", place_.identity, SocketAddress::Of(place_.address, place_.port, 0).ToString());
}

Result<std::unique_ptr<Connector>> TcpConnector::Start(const TcpOptions& options, const Interface& device,
                                                       const Place& place, Lane* lane, const Clock* clock) {
  auto connector = std::unique_ptr<TcpConnector>(new TcpConnector(options, place, lane, clock));
  if (Status drawn = Draw(&connector->channel_); !drawn.ok()) return tl::unexpected(drawn);
  const SocketAddress peer = SocketAddress::Of(place.address, place.port, device.index);
  const bool bind = options.bind_source && !device.address.is_loopback() &&
                    device.address.is_v4() == place.address.is_v4() && !place.address.is_loopback();
  const auto interfaces = ListInterfaces();  // Where the system does not say, every path is taken for a network.
  const bool within_host = interfaces && IsWithinHost(*interfaces, place.address);
  for (std::uint32_t i = 0; i <= options.streams; ++i) {
    const PathKind path = within_host && i > 0 ? PathKind::kWithinHost : PathKind::kNetwork;
    auto socket = ConnectTo(peer, bind ? &device.address : nullptr, path);
    if (!socket) {
      return Error(socket.error().code(), fmt::format("{}, connecting to {}: {}", options.identity, connector->Peer(),
                                                      socket.error().message()));
    }
    Link link;
    link.socket = std::move(*socket);
    connector->links_.push_back(std::move(link));
  }
  return connector;
}

Result<std::unique_ptr<Sender>> TcpConnector::Poll() {
  std::size_t welcomed = 0;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (Status status = PollLink(i); !status.ok()) {
      return Error(status.code(), fmt::format("{}, connecting to {}: {}", options_.identity, Peer(), status.message()));
    }
    welcomed += links_[i].welcomed ? 1u : 0u;
  }
  if (welcomed == links_.size()) return Finish();
  if (clock_.Now() >= deadline_) {
    return Error(
        StatusCode::kUnavailable,
        fmt::format("{}, connecting to {}: no answer on {} of {} connections within {:.1f} s", options_.identity,
                    Peer(), links_.size() - welcomed, links_.size(), ToSeconds(options_.connect_within)));
  }
  return nullptr;
}

Status TcpConnector::PollLink(std::size_t stream) {
  Link& link = links_[stream];
  if (link.welcomed) return Status::Ok();
  if (!link.greeted) {
    const int error = ConnectError(link.socket);
    if (error == EINPROGRESS) return Status::Ok();
    if (error != 0) return Status(StatusCode::kUnavailable, std::strerror(error));
    const auto hello = EncodeHello({place_.nonce, channel_, static_cast<std::uint8_t>(stream),
                                    static_cast<std::uint8_t>(options_.streams), options_.identity});
    // A new connection has room for more than this; a part of it would be a system that we do not know.
    if (send(link.socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(hello.size())) {
      return Status(StatusCode::kUnavailable, fmt::format("cannot greet: {}", std::strerror(errno)));
    }
    link.greeted = true;
  }
  return ReadWelcome(&link);
}

Status TcpConnector::ReadWelcome(Link* link) {
  const ssize_t got =
      recv(link->socket.get(), link->answer.data() + link->got, link->answer.size() - link->got, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status::Ok();
  if (got < 0) return Status(StatusCode::kUnavailable, std::strerror(errno));
  if (got == 0) {
    return Status(StatusCode::kUnavailable, "it closed the connection before it answered: no Weir, or gone");
  }
  link->got += static_cast<std::size_t>(got);
  if (link->got < link->answer.size()) return Status::Ok();
  const auto welcome = DecodeWelcome(link->answer);
  if (!welcome) return welcome.error();
  if (Status status = Judge(*welcome); !status.ok()) return status;
  link->welcomed = true;
  slots_ = welcome->slots;
  return Status::Ok();
}

Status TcpConnector::Judge(const Welcome& welcome) {
  switch (welcome.verdict) {
    case Verdict::kWelcome:
      break;
    case Verdict::kOtherVersion:
      return Status(StatusCode::kProtocol, fmt::format("{} there does not speak our version, which is {}; run the same "
                                                       "Weir on both hosts",
                                                       welcome.identity, kVersion));
    case Verdict::kOtherListener:
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("{} listens there now, and did not make this handle", welcome.identity));
    case Verdict::kTaken:
      return Status(StatusCode::kPermissionDenied,
                    fmt::format("{} has been connected to by another already", welcome.identity));
    case Verdict::kMalformed:
      return Status(StatusCode::kProtocol, fmt::format("{} did not understand our greeting", welcome.identity));
  }
  if (welcome.channel != channel_ || welcome.identity != place_.identity) {
    return Status(StatusCode::kPermissionDenied, fmt::format("{} answers there", welcome.identity));
  }
  return Status::Ok();
}

std::unique_ptr<Sender> TcpConnector::Finish() {
  TcpSender::Made made;
  made.options = options_;
  made.ends = {fmt::format("{} ({})", options_.identity, SocketAddress::OwnOf(links_.front().socket).ToString()),
               Peer()};
  made.slots = slots_;
  made.lane = lane_;
  made.clock = &clock_;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    Tune(links_[i].socket, i == 0 ? StreamKind::kControl : StreamKind::kData, options_);
    if (i == 0) {
      made.control = std::move(links_[i].socket);
    } else {
      made.streams.push_back(std::move(links_[i].socket));
    }
  }
  return std::make_unique<TcpSender>(std::move(made));
}

}  // namespace weir::transport::tcp
