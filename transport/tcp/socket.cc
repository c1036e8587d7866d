#include "transport/tcp/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weir::transport::tcp {
namespace {

/// What may be done about a limit of this host's; empty where it is none, or all there is to say was said.
const char* Advice(int error) {
  switch (error) {
    case EMFILE:
      return "; raise the limit of open files of this process (ulimit -n)";
    case ENFILE:
      return "; raise fs.file-max";
    default:
      return "";
  }
}

bool IsLimit(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

Status FromErrno(const char* what, const std::string& where) {
  const int error = errno;
  return Status(IsLimit(error) ? StatusCode::kResourceExhausted : StatusCode::kUnavailable,
                fmt::format("{} {}: {}{}", what, where, std::strerror(error), Advice(error)));
}

/// TCP_RTO_MAX_MS of Linux 6.15 and its range; the headers here are older. A kernel that does not know it refuses.
constexpr int kRtoMax_ms = 44;
constexpr int kRtoMaxLeast_ms = 1000;
constexpr int kRtoMaxMost_ms = 120'000;

/// Linux has it always, and lets everybody use it.
constexpr char kReno[] = "reno";

void Set(const Socket& socket, int level, int option, int value) {
  // Best effort, see Tune().
  static_cast<void>(setsockopt(socket.get(), level, option, &value, sizeof(value)));
}

}  // namespace

SocketAddress SocketAddress::Of(const IpAddress& address, std::uint16_t port, unsigned scope) {
  SocketAddress made;
  if (address.is_v4()) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, address.bytes().data(), 4);
    std::memcpy(&made.storage, &in, sizeof(in));
    made.size = sizeof(in);
  } else {
    sockaddr_in6 in{};
    in.sin6_family = AF_INET6;
    in.sin6_port = htons(port);
    in.sin6_scope_id = address.is_link_local() ? scope : 0;
    std::memcpy(&in.sin6_addr, address.bytes().data(), 16);
    std::memcpy(&made.storage, &in, sizeof(in));
    made.size = sizeof(in);
  }
  return made;
}

SocketAddress SocketAddress::OwnOf(const Socket& socket) {
  SocketAddress own;
  own.size = sizeof own.storage;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own.storage), &own.size) != 0) own = {};
  return own;
}

std::string SocketAddress::ToString() const {
  char text[INET6_ADDRSTRLEN] = "?";
  if (storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &storage, sizeof(in));
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    return fmt::format("{}:{}", text, ntohs(in.sin_port));
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &storage, sizeof(in));
  inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof(text));
  return fmt::format("[{}]:{}", text, ntohs(in.sin6_port));
}

Result<Socket> ListenOn(const IpAddress& address, unsigned scope, std::uint16_t* port) {
  SocketAddress at = SocketAddress::Of(address, 0, scope);
  Socket socket(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  const std::string where = address.ToString();
  if (!socket) return tl::unexpected(FromErrno("cannot make a socket for", where));
  if (bind(socket.get(), at.get(), at.size) != 0 || listen(socket.get(), SOMAXCONN) != 0) {
    return tl::unexpected(FromErrno("cannot listen on", where));
  }
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.size) != 0) {
    return tl::unexpected(FromErrno("cannot ask for the port of", where));
  }
  sockaddr_in in{};
  sockaddr_in6 in6{};
  std::memcpy(&in, &at.storage, sizeof(in));
  std::memcpy(&in6, &at.storage, sizeof(in6));
  *port = ntohs(address.is_v4() ? in.sin_port : in6.sin6_port);
  return socket;
}

Result<Socket> Acceptor::Next(Nanoseconds now, std::string* peer) {
  SocketAddress from;
  from.size = sizeof(from.storage);
  Socket socket(
      accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket) *peer = from.ToString();
  const int error = errno;
  pollfd waiting{listener_.get(), POLLIN, 0};
  // The kernel looks for a descriptor before it looks for a connection.
  if (socket || !IsLimit(error) || poll(&waiting, 1, 0) <= 0) {
    short_since_ = -1;
    return socket;
  }
  short_since_ = short_since_ < 0 ? now : short_since_;
  if (now - short_since_ < kShortMax) return socket;
  errno = error;
  return tl::unexpected(FromErrno("cannot accept a connection at", SocketAddress::OwnOf(listener_).ToString()));
}

Result<Socket> ConnectTo(const SocketAddress& peer, const IpAddress* source, PathKind path) {
  Socket socket(::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket) return tl::unexpected(FromErrno("cannot make a socket for", peer.ToString()));
  if (source != nullptr) {
    Set(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    const SocketAddress from = SocketAddress::Of(*source, 0, 0);
    if (bind(socket.get(), from.get(), from.size) != 0) {
      return tl::unexpected(FromErrno("cannot connect from", from.ToString()));
    }
  }
  if (path == PathKind::kWithinHost) {
    // Before the connection is there: bbr, once begun, leaves its timer behind. What the system refuses stays as it
    // was.
    static_cast<void>(setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof(kReno) - 1));
  }
  if (connect(socket.get(), peer.get(), peer.size) != 0 && errno != EINPROGRESS) {
    if (errno == EADDRNOTAVAIL) {  // The address of this end was there a moment ago: it is the ports.
      return Error(
          StatusCode::kResourceExhausted,
          fmt::format("cannot connect to {}: no port of this host is free; widen net.ipv4.ip_local_port_range, or use "
                      "fewer streams",
                      peer.ToString()));
    }
    return tl::unexpected(FromErrno("cannot connect to", peer.ToString()));
  }
  return socket;
}

int ConnectError(const Socket& socket) {
  pollfd ready{socket.get(), POLLOUT, 0};
  if (poll(&ready, 1, 0) <= 0) return EINPROGRESS;
  int error = 0;
  socklen_t size = sizeof(error);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  return error;
}

void Tune(const Socket& socket, StreamKind kind, const TcpOptions& options) {
  Set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  const int bound_ms = static_cast<int>(std::clamp<Nanoseconds>(options.dead_after / kMillisecond, 1, 1 << 30));
  // For a channel that nobody asks about any more. Not before the bound: an interruption that is shorter must pass, on
  // connections with nothing under way as well.
  const int idle_s = std::clamp(bound_ms / 1000, 1, 3600);
  Set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  Set(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
  Set(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(idle_s / 3, 1));
  Set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
  // Segments that nobody answers are sent ever more rarely; when a link is back, that must not cost much of the bound.
  const int rarely_ms = bound_ms / (kind == StreamKind::kControl ? 8 : 4);
  Set(socket, IPPROTO_TCP, kRtoMax_ms, std::clamp(rarely_ms, kRtoMaxLeast_ms, kRtoMaxMost_ms));
  if (kind == StreamKind::kData && options.unsent_bytes > 0) {
    Set(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, static_cast<int>(std::min(options.unsent_bytes, 1u << 30)));
  }
  if (options.traffic_class >= 0) {
    Set(socket, IPPROTO_IP, IP_TOS, options.traffic_class);
    Set(socket, IPPROTO_IPV6, IPV6_TCLASS, options.traffic_class);
  }
}

}  // namespace weir::transport::tcp
