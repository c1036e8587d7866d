#include "agents/host/foreign_process.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace weir::agents {
namespace {

/// Field 22 of /proc/PID/stat; 0 if there is none. The name in field 2 may hold spaces and parentheses.
std::uint64_t ReadStartTime(std::int64_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  std::array<char, 2048> text{};
  if (read(fd.get(), text.data(), text.size() - 1) <= 0) return 0;
  const char* at = std::strrchr(text.data(), ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at + 1, nullptr, 10);
}

void Split(const sockaddr_storage& storage, std::array<std::uint8_t, 16>* address, std::uint16_t* port) {
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &storage, sizeof(v4));
    std::memcpy(address->data(), &v4.sin_addr, sizeof(v4.sin_addr));
    *port = ntohs(v4.sin_port);
    return;
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &storage, sizeof(v6));
  std::memcpy(address->data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
  *port = ntohs(v6.sin6_port);
}

}  // namespace

bool LivesInAnotherNetwork(std::int64_t pid) {
  struct stat ours;
  struct stat its;
  return stat("/proc/self/ns/net", &ours) == 0 &&
         stat(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), &its) == 0 &&
         (ours.st_ino != its.st_ino || ours.st_dev != its.st_dev);
}

ForeignProcess::ForeignProcess(UniqueFd pidfd, std::int64_t pid, std::uint64_t start_time, std::uint32_t uid)
    : pidfd_(std::move(pidfd)),
      pid_(pid),
      start_time_(start_time),
      uid_(uid),
      other_network_(LivesInAnotherNetwork(pid)) {}

Result<ForeignProcess> ForeignProcess::Open(std::int64_t pid) {
  UniqueFd pidfd(pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1);
  struct stat info;
  const std::uint64_t start_time = pidfd ? ReadStartTime(pid) : 0;
  if (start_time == 0 || stat(("/proc/" + std::to_string(pid)).c_str(), &info) != 0) {
    return Error(StatusCode::kNotFound, "there is no process " + std::to_string(pid) + " here");
  }
  return ForeignProcess(std::move(pidfd), pid, start_time, info.st_uid);
}

bool ForeignProcess::ended() const {
  pollfd waiting{pidfd_.get(), POLLIN, 0};
  return poll(&waiting, 1, 0) > 0;
}

std::vector<ForeignSocket> ForeignProcess::Sockets() const {
  std::vector<ForeignSocket> sockets;
  const std::string path = "/proc/" + std::to_string(pid_) + "/fd";
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (directory == nullptr) return sockets;
  while (const dirent* entry = readdir(directory.get())) {
    std::array<char, 64> target{};
    if (readlinkat(dirfd(directory.get()), entry->d_name, target.data(), target.size() - 1) <= 0) continue;
    std::uint64_t inode = 0;
    if (std::sscanf(target.data(), "socket:[%lu]", &inode) != 1) continue;
    sockets.push_back({std::atoi(entry->d_name), inode});
  }
  return sockets;
}

Result<UniqueFd> ForeignProcess::Borrow(const ForeignSocket& socket) const {
  UniqueFd fd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd_.get(), socket.fd, 0)));
  if (!fd && errno == EPERM) {
    return Error(StatusCode::kPermissionDenied, "may not reach into process " + std::to_string(pid_) +
                                                    "; run the agent as its user or with CAP_SYS_PTRACE");
  }
  struct stat info;
  if (!fd || fstat(fd.get(), &info) != 0 || info.st_ino != socket.inode) {
    return Error(StatusCode::kNotFound, "the socket was closed");
  }
  return fd;
}

bool IsTcp(int fd) {
  int protocol = 0;
  socklen_t size = sizeof(protocol);
  return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP;
}

bool DescribeTcp(int fd, SocketKey* key) {
  if (!IsTcp(fd)) return false;
  sockaddr_storage local{};
  sockaddr_storage peer{};
  socklen_t size = sizeof(local);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) return false;
  size = sizeof(peer);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) return false;
  key->family = local.ss_family;
  Split(local, &key->local, &key->local_port);
  Split(peer, &key->peer, &key->peer_port);
  return true;
}

std::uint64_t PacingRate(int fd) {
  std::uint64_t rate = kNoPacing;
  socklen_t size = sizeof(rate);
  getsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size);
  return rate;
}

bool SetPacingRate(int fd, std::uint64_t rate) {
  return setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate)) == 0;
}

std::string AddressText(std::uint16_t family, const std::array<std::uint8_t, 16>& address) {
  static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool mapped = family == AF_INET6 && std::memcmp(address.data(), kMapped, sizeof(kMapped)) == 0;
  inet_ntop(mapped ? AF_INET : family, address.data() + (mapped ? sizeof(kMapped) : 0), text.data(), text.size());
  return text.data();
}

}  // namespace weir::agents
