#include "tools/weir-perf/rendezvous.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace weir::tools {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

Result<std::unique_ptr<addrinfo, FreeAddresses>> Resolve(const std::string& host, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return Error(StatusCode::kUnavailable, fmt::format("no address of \"{}\": {}", host, gai_strerror(error)));
  }
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

Status Failed(const char* what, const std::string& host, std::uint16_t port) {
  return Status(StatusCode::kUnavailable, fmt::format("cannot {} {}:{}: {}", what, host, port, std::strerror(errno)));
}

}  // namespace

Result<std::unique_ptr<Rendezvous>> Rendezvous::Connect(const std::string& host, std::uint16_t port) {
  const auto address = Resolve(host, port, 0);
  if (!address) return tl::unexpected(address.error());
  Status failed;
  for (const addrinfo* at = address->get(); at != nullptr; at = at->ai_next) {
    UniqueFd fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd) {
      failed = Failed("make a socket for", host, port);
      continue;
    }
    auto made = std::make_unique<Rendezvous>(std::move(fd));
    if (connect(made->fd_.get(), at->ai_addr, at->ai_addrlen) == 0) return made;
    failed = Failed("connect to", host, port);
  }
  return tl::unexpected(failed);
}

Rendezvous::Rendezvous(UniqueFd fd) : fd_(std::move(fd)) {
  const timeval patience{kPatience_s, 0};
  setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

Status Rendezvous::Send(const std::string& line) {
  const std::string text = line + "\n";
  if (send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
    return Status(StatusCode::kUnavailable, fmt::format("the other end is gone: {}", std::strerror(errno)));
  }
  return Status::Ok();
}

Result<std::string> Rendezvous::Receive() {
  while (true) {
    const std::size_t end = read_.find('\n');
    if (end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (read_.size() > kLineMax) {
      return Error(StatusCode::kProtocol, fmt::format("a line of more than {} bytes: that is no weir-perf", kLineMax));
    }
    char buffer[512];
    const ssize_t got = recv(fd_.get(), buffer, sizeof(buffer), 0);
    if (got < 0) {
      return Error(StatusCode::kUnavailable, fmt::format("nothing from the other end: {}", std::strerror(errno)));
    }
    if (got == 0) return Error(StatusCode::kUnavailable, "the other end closed the connection");
    read_.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<std::unique_ptr<MeetingPoint>> MeetingPoint::Open(const std::string& address, std::uint16_t port) {
  const auto at = Resolve(address, port, AI_PASSIVE);
  if (!at) return tl::unexpected(at.error());
  UniqueFd fd(socket((*at)->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return tl::unexpected(Failed("make a socket for", address, port));
  const int yes = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  if (bind(fd.get(), (*at)->ai_addr, (*at)->ai_addrlen) != 0 || listen(fd.get(), 8) != 0 ||
      getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return tl::unexpected(Failed("listen on", address, port));
  }
  sockaddr_in in{};
  std::memcpy(&in, &bound, sizeof(in));  // The port is at the same place for IPv6.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return std::make_unique<MeetingPoint>(std::move(fd), ntohs(in.sin_port));
}

Result<std::unique_ptr<Rendezvous>> MeetingPoint::Accept() {
  UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return Error(StatusCode::kUnavailable, fmt::format("cannot accept: {}", std::strerror(errno)));
  return std::make_unique<Rendezvous>(std::move(fd));
}

std::string HandleToText(const transport::Handle& handle) {
  std::string text;
  for (const std::byte byte : handle.bytes) text += fmt::format("{:02x}", std::to_integer<int>(byte));
  return text;
}

Result<transport::Handle> HandleFromText(const std::string& text) {
  transport::Handle handle;
  if (text.size() != 2 * handle.bytes.size() || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return Error(StatusCode::kProtocol, fmt::format("a handle has {} hexadecimal digits, found {} characters",
                                                    2 * handle.bytes.size(), text.size()));
  }
  for (std::size_t i = 0; i < handle.bytes.size(); ++i) {
    handle.bytes[i] = static_cast<std::byte>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return handle;
}

}  // namespace weir::tools
