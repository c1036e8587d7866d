#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "agents/host/sock_diag.h"
#include "coflow/status.h"
#include "coflow/unique_fd.h"

namespace weir::agents {

inline constexpr std::uint64_t kNoPacing = ~std::uint64_t{0};  ///< SO_MAX_PACING_RATE of a socket without a cap.

/// One socket among the descriptors of a process.
struct ForeignSocket {
  int fd = -1;              ///< Its number in that process.
  std::uint64_t inode = 0;  ///< Tells it apart from another one that got the number later.
};

/// Reaches into another process by its pidfd: lists its sockets and borrows one for a moment. Needs what ptrace needs:
/// the same user, or CAP_SYS_PTRACE. A borrowed socket must go back at once: while we hold it, the peer of a process
/// that died sees no end of its connection.
///
/// Thread: any, one at a time.
class ForeignProcess {
 public:
  /// Fails if there is no such process.
  static Result<ForeignProcess> Open(std::int64_t pid);

  std::int64_t pid() const { return pid_; }
  std::uint64_t start_time() const {
    return start_time_;
  }  ///< Clock ticks since boot; with the pid, names it for good.
  std::uint32_t uid() const { return uid_; }
  bool ended() const;
  /// It lives in another network namespace than we do, as in a container: sock_diag knows nothing of its sockets.
  bool other_network() const { return other_network_; }
  std::vector<ForeignSocket> Sockets() const;
  /// Our own duplicate of `socket`. Not found if it was closed meanwhile, permission denied if we may not.
  Result<UniqueFd> Borrow(const ForeignSocket& socket) const;

 private:
  ForeignProcess(UniqueFd pidfd, std::int64_t pid, std::uint64_t start_time, std::uint32_t uid);

  UniqueFd pidfd_;
  std::int64_t pid_;
  std::uint64_t start_time_;
  std::uint32_t uid_;
  bool other_network_;
};

/// False also where we may not look.
bool LivesInAnotherNetwork(std::int64_t pid);

bool IsTcp(int fd);
/// True and the addresses of both ends if `fd` is a connected TCP socket.
bool DescribeTcp(int fd, SocketKey* key);
std::uint64_t PacingRate(int fd);
bool SetPacingRate(int fd, std::uint64_t bytes_per_second);
std::string AddressText(std::uint16_t family, const std::array<std::uint8_t, 16>& address);

}  // namespace weir::agents
