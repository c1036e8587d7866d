#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <utility>

#include "coflow/ip_address.h"
#include "coflow/status.h"
#include "coflow/unique_fd.h"
#include "coflow/units.h"
#include "transport/tcp/options.h"

namespace weir::transport::tcp {

/// A socket's descriptor, closed when it goes.
using Socket = UniqueFd;

/// An address and port as the kernel takes them.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  /// `scope` is the interface's index; used for link-local IPv6 only.
  static SocketAddress Of(const IpAddress& address, std::uint16_t port, unsigned scope);
  /// Our end of a connection; of no family when the kernel does not say.
  static SocketAddress OwnOf(const Socket& socket);
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  std::string ToString() const;
};

/// A socket that listens on a free port of `address`. Errors: kResourceExhausted, kUnavailable with the address.
Result<Socket> ListenOn(const IpAddress& address, unsigned scope, std::uint16_t* port);

/// Takes connections from a socket that listens. Thread: one at a time.
class Acceptor {
 public:
  static constexpr Nanoseconds kShortMax = 2 * kSecond;

  Acceptor() = default;
  explicit Acceptor(Socket listener) : listener_(std::move(listener)) {}
  /// The next connection and who it is from; an empty socket when there is none. That this host is short of descriptors
  /// or memory for one that waits is no error until it has lasted for kShortMax, for others may give some back; then
  /// kResourceExhausted, with what to raise. The connection waits on.
  Result<Socket> Next(Nanoseconds now, std::string* peer);

 private:
  Socket listener_;
  Nanoseconds short_since_ = -1;  // -1: it is not short
};

/// Where a connection leads. Within this host there is no network to be spared: the kernel hands what is sent to the
/// receiver in the same call. A congestion control that spaces packets by a timer, as bbr does, costs up to a quarter
/// of the throughput there (docs/decisions/0021), so the one that does least is taken, "reno"; else it is the system's.
enum class PathKind { kNetwork, kWithinHost };

/// Begins to connect. `source` may be null. Errors: kResourceExhausted, kUnavailable.
Result<Socket> ConnectTo(const SocketAddress& peer, const IpAddress* source, PathKind path = PathKind::kNetwork);

/// 0 when connected, EINPROGRESS when not yet, else why it failed. Never waits.
int ConnectError(const Socket& socket);

enum class StreamKind { kData, kControl };

/// Sets what `options` say on a connection. What the system refuses stays as it was: none of it is needed for
/// correctness.
void Tune(const Socket& socket, StreamKind kind, const TcpOptions& options);

}  // namespace weir::transport::tcp
