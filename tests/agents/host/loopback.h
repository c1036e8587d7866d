#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "agents/host/sock_diag.h"

namespace weir::agents {

/// A TCP connection over loopback, both ends ours.
class Loopback {
 public:
  explicit Loopback(int family = AF_INET, bool mapped = false) {
    const int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage address = Address(family, mapped);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    ok_ = bind(listener, generic, Size(family)) == 0 && listen(listener, 1) == 0;
    socklen_t size = sizeof(address);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    client_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok_ = ok_ && connect(client_, generic, Size(family)) == 0;
    server_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    ok_ = ok_ && server_ >= 0;
    close(listener);
  }
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;
  ~Loopback() {
    close(client_);
    close(server_);
  }

  bool ok() const { return ok_; }
  int client() const { return client_; }
  int server() const { return server_; }
  /// The client's end, as the process would describe it.
  SocketKey Key() const {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    socklen_t size = sizeof(local);
    getsockname(client_, reinterpret_cast<sockaddr*>(&local), &size);
    size = sizeof(peer);
    getpeername(client_, reinterpret_cast<sockaddr*>(&peer), &size);
    SocketKey key;
    key.family = local.ss_family;
    std::tie(key.local, key.local_port) = Split(local);
    std::tie(key.peer, key.peer_port) = Split(peer);
    return key;
  }

 private:
  static socklen_t Size(int family) { return family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6); }
  static sockaddr_storage Address(int family, bool mapped) {
    sockaddr_storage storage{};
    if (family == AF_INET) {
      sockaddr_in v4{};
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::memcpy(&storage, &v4, sizeof(v4));
    } else {
      sockaddr_in6 v6{};
      v6.sin6_family = AF_INET6;
      inet_pton(AF_INET6, mapped ? "::ffff:127.0.0.1" : "::1", &v6.sin6_addr);
      std::memcpy(&storage, &v6, sizeof(v6));
    }
    return storage;
  }
  static std::pair<std::array<std::uint8_t, 16>, std::uint16_t> Split(const sockaddr_storage& storage) {
    std::array<std::uint8_t, 16> address{};
    if (storage.ss_family == AF_INET) {
      sockaddr_in v4;
      std::memcpy(&v4, &storage, sizeof(v4));
      std::memcpy(address.data(), &v4.sin_addr, 4);
      return {address, ntohs(v4.sin_port)};
    }
    sockaddr_in6 v6;
    std::memcpy(&v6, &storage, sizeof(v6));
    std::memcpy(address.data(), &v6.sin6_addr, 16);
    return {address, ntohs(v6.sin6_port)};
  }

  bool ok_ = false;
  int client_ = -1;
  int server_ = -1;
};

}  // namespace weir::agents
